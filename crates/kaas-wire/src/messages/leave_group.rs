//! LeaveGroup (key 13): members leave a classic group; a list of them since version 3.

use crate::ErrorCode;
use crate::message::message;

message! {
    LeaveGroupRequest: key 13, versions 0..=5, flexible 4..;

    struct LeaveGroupRequest {
        group_id:  String,              0..;
        member_id: String,              0..=2;
        members:   Vec<MemberIdentity>, 3..;
    }

    struct MemberIdentity {
        member_id:         String,         3..;
        group_instance_id: Option<String>, 3..;
        reason:            Option<String>, 5..;
    }
}

message! {
    LeaveGroupResponse: key 13, versions 0..=5, flexible 4..;

    struct LeaveGroupResponse {
        throttle_time_ms: i32,                 1..;
        error_code:       ErrorCode,           0..;
        members:          Vec<MemberResponse>, 3..;
    }

    struct MemberResponse {
        member_id:         String,         3..;
        group_instance_id: Option<String>, 3.., = Some(String::new());
        error_code:        ErrorCode,      3..;
    }
}
