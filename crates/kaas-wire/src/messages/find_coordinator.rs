//! FindCoordinator (key 10): which broker coordinates a group or a transactional id; a list of keys since version 4.

use crate::ErrorCode;
use crate::message::message;

message! {
    FindCoordinatorRequest: key 10, versions 0..=6, flexible 3..;

    struct FindCoordinatorRequest {
        key:              String,      0..=3;
        key_type:         i8,          1..;
        coordinator_keys: Vec<String>, 4..;
    }
}

message! {
    FindCoordinatorResponse: key 10, versions 0..=6, flexible 3..;

    struct FindCoordinatorResponse {
        throttle_time_ms: i32,              1..;
        error_code:       ErrorCode,        0..=3;
        error_message:    Option<String>,   1..=3, = Some(String::new());
        node_id:          i32,              0..=3;
        host:             String,           0..=3;
        port:             i32,              0..=3;
        coordinators:     Vec<Coordinator>, 4..;
    }

    struct Coordinator {
        key:           String,         4..;
        node_id:       i32,            4..;
        host:          String,         4..;
        port:          i32,            4..;
        error_code:    ErrorCode,      4..;
        error_message: Option<String>, 4.., = Some(String::new());
    }
}
