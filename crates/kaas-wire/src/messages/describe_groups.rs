//! DescribeGroups (key 15): state and members of classic groups.

use bytes::Bytes;

use crate::ErrorCode;
use crate::message::message;

message! {
    DescribeGroupsRequest: key 15, versions 0..=6, flexible 5..;

    struct DescribeGroupsRequest {
        groups:                        Vec<String>, 0..;
        include_authorized_operations: bool,        3..;
    }
}

message! {
    DescribeGroupsResponse: key 15, versions 0..=6, flexible 5..;

    struct DescribeGroupsResponse {
        throttle_time_ms: i32,                 1..;
        groups:           Vec<DescribedGroup>, 0..;
    }

    struct DescribedGroup {
        error_code:            ErrorCode,                 0..;
        error_message:         Option<String>,            6..;
        group_id:              String,                    0..;
        group_state:           String,                    0..;
        protocol_type:         String,                    0..;
        protocol_data:         String,                    0..;
        members:               Vec<DescribedGroupMember>, 0..;
        authorized_operations: i32,                       3.., = i32::MIN;
    }

    struct DescribedGroupMember {
        member_id:         String,         0..;
        group_instance_id: Option<String>, 4..;
        client_id:         String,         0..;
        client_host:       String,         0..;
        member_metadata:   Bytes,          0..;
        member_assignment: Bytes,          0..;
    }
}
