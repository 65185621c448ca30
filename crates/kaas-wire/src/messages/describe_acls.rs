//! DescribeAcls (key 29): the access control entries that match a filter.

use crate::ErrorCode;
use crate::message::message;

message! {
    DescribeAclsRequest: key 29, versions 1..=3, flexible 2..;

    struct DescribeAclsRequest {
        resource_type_filter: i8,             0..;
        resource_name_filter: Option<String>, 0.., = Some(String::new());
        pattern_type_filter:  i8,             1.., = 3;
        principal_filter:     Option<String>, 0.., = Some(String::new());
        host_filter:          Option<String>, 0.., = Some(String::new());
        operation:            i8,             0..;
        permission_type:      i8,             0..;
    }
}

message! {
    DescribeAclsResponse: key 29, versions 1..=3, flexible 2..;

    struct DescribeAclsResponse {
        throttle_time_ms: i32,                       0..;
        error_code:       ErrorCode,                 0..;
        error_message:    Option<String>,            0.., = Some(String::new());
        resources:        Vec<DescribeAclsResource>, 0..;
    }

    struct DescribeAclsResource {
        resource_type: i8,                  0..;
        resource_name: String,              0..;
        pattern_type:  i8,                  1.., = 3;
        acls:          Vec<AclDescription>, 0..;
    }

    struct AclDescription {
        principal:       String, 0..;
        host:            String, 0..;
        operation:       i8,     0..;
        permission_type: i8,     0..;
    }
}
