//! JoinGroup (key 11): become a member of a classic group's next generation.

use bytes::Bytes;

use crate::ErrorCode;
use crate::message::message;

message! {
    JoinGroupRequest: key 11, versions 0..=9, flexible 6..;

    struct JoinGroupRequest {
        group_id:             String,                        0..;
        session_timeout_ms:   i32,                           0..;
        rebalance_timeout_ms: i32,                           1.., = -1;
        member_id:            String,                        0..;
        group_instance_id:    Option<String>,                5..;
        protocol_type:        String,                        0..;
        protocols:            Vec<JoinGroupRequestProtocol>, 0..;
        reason:               Option<String>,                8..;
    }

    struct JoinGroupRequestProtocol {
        name:     String, 0..;
        metadata: Bytes,  0..;
    }
}

message! {
    JoinGroupResponse: key 11, versions 0..=9, flexible 6..;

    struct JoinGroupResponse {
        throttle_time_ms: i32,                          2..;
        error_code:       ErrorCode,                    0..;
        generation_id:    i32,                          0.., = -1;
        protocol_type:    Option<String>,               7..;
        protocol_name:    Option<String>,               0.., null 7.., = Some(String::new());
        leader:           String,                       0..;
        skip_assignment:  bool,                         9..;
        member_id:        String,                       0..;
        members:          Vec<JoinGroupResponseMember>, 0..;
    }

    struct JoinGroupResponseMember {
        member_id:         String,         0..;
        group_instance_id: Option<String>, 5..;
        metadata:          Bytes,          0..;
    }
}
