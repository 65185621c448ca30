//! BrokerHeartbeat (key 63): a registered broker is alive; fencing and shutdown are agreed here.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    BrokerHeartbeatRequest: key 63, versions 0..=2, flexible 0..;

    struct BrokerHeartbeatRequest {
        broker_id:               i32,  0..;
        broker_epoch:            i64,  0.., = -1;
        current_metadata_offset: i64,  0..;
        want_fence:              bool, 0..;
        want_shut_down:          bool, 0..;
    }
    tagged {
        0: offline_log_dirs:  Vec<Uuid>,         1..;
        1: cordoned_log_dirs: Option<Vec<Uuid>>, 2..;
    }
}

message! {
    BrokerHeartbeatResponse: key 63, versions 0..=2, flexible 0..;

    struct BrokerHeartbeatResponse {
        throttle_time_ms: i32,       0..;
        error_code:       ErrorCode, 0..;
        is_caught_up:     bool,      0..;
        is_fenced:        bool,      0.., = true;
        should_shut_down: bool,      0..;
    }
}
