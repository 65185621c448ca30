//! Heartbeat (key 12): a classic member is alive; the answer tells it of a rebalance.

use crate::ErrorCode;
use crate::message::message;

message! {
    HeartbeatRequest: key 12, versions 0..=4, flexible 4..;

    struct HeartbeatRequest {
        group_id:          String,         0..;
        generation_id:     i32,            0..;
        member_id:         String,         0..;
        group_instance_id: Option<String>, 3..;
    }
}

message! {
    HeartbeatResponse: key 12, versions 0..=4, flexible 4..;

    struct HeartbeatResponse {
        throttle_time_ms: i32,       1..;
        error_code:       ErrorCode, 0..;
    }
}
