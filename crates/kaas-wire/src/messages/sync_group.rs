//! SyncGroup (key 14): the leader hands in the assignment, every member gets its own.

use bytes::Bytes;

use crate::ErrorCode;
use crate::message::message;

message! {
    SyncGroupRequest: key 14, versions 0..=5, flexible 4..;

    struct SyncGroupRequest {
        group_id:          String,                          0..;
        generation_id:     i32,                             0..;
        member_id:         String,                          0..;
        group_instance_id: Option<String>,                  3..;
        protocol_type:     Option<String>,                  5..;
        protocol_name:     Option<String>,                  5..;
        assignments:       Vec<SyncGroupRequestAssignment>, 0..;
    }

    struct SyncGroupRequestAssignment {
        member_id:  String, 0..;
        assignment: Bytes,  0..;
    }
}

message! {
    SyncGroupResponse: key 14, versions 0..=5, flexible 4..;

    struct SyncGroupResponse {
        throttle_time_ms: i32,            1..;
        error_code:       ErrorCode,      0..;
        protocol_type:    Option<String>, 5..;
        protocol_name:    Option<String>, 5..;
        assignment:       Bytes,          0..;
    }
}
