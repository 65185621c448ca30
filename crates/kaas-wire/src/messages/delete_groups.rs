//! DeleteGroups (key 42): delete empty groups.

use crate::ErrorCode;
use crate::message::message;

message! {
    DeleteGroupsRequest: key 42, versions 0..=3, flexible 2..;

    struct DeleteGroupsRequest {
        groups_names: Vec<String>, 0..;
    }
}

message! {
    DeleteGroupsResponse: key 42, versions 0..=3, flexible 2..;

    struct DeleteGroupsResponse {
        throttle_time_ms: i32,                       0..;
        results:          Vec<DeletableGroupResult>, 0..;
    }

    struct DeletableGroupResult {
        group_id:      String,         0..;
        error_code:    ErrorCode,      0..;
        error_message: Option<String>, 3..;
    }
}
