//! ListConfigResources (key 74): the resources that have configuration; only client metrics in version 0.

use crate::ErrorCode;
use crate::message::message;

message! {
    ListConfigResourcesRequest: key 74, versions 0..=1, flexible 0..;

    struct ListConfigResourcesRequest {
        resource_types: Vec<i8>, 1..;
    }
}

message! {
    ListConfigResourcesResponse: key 74, versions 0..=1, flexible 0..;

    struct ListConfigResourcesResponse {
        throttle_time_ms: i32,                 0..;
        error_code:       ErrorCode,           0..;
        config_resources: Vec<ConfigResource>, 0..;
    }

    struct ConfigResource {
        resource_name: String, 0..;
        resource_type: i8,     1.., = 16;
    }
}
