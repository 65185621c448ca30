//! ListGroups (key 16): the groups this broker coordinates.

use crate::ErrorCode;
use crate::message::message;

message! {
    ListGroupsRequest: key 16, versions 0..=5, flexible 3..;

    struct ListGroupsRequest {
        states_filter: Vec<String>, 4..;
        types_filter:  Vec<String>, 5..;
    }
}

message! {
    ListGroupsResponse: key 16, versions 0..=5, flexible 3..;

    struct ListGroupsResponse {
        throttle_time_ms: i32,              1..;
        error_code:       ErrorCode,        0..;
        groups:           Vec<ListedGroup>, 0..;
    }

    struct ListedGroup {
        group_id:      String, 0..;
        protocol_type: String, 0..;
        group_state:   String, 4..;
        group_type:    String, 5..;
    }
}
