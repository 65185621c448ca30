//! AlterConfigs (key 33): replace the whole configuration of a resource.

use crate::ErrorCode;
use crate::message::message;

message! {
    AlterConfigsRequest: key 33, versions 0..=2, flexible 2..;

    struct AlterConfigsRequest {
        resources:     Vec<AlterConfigsResource>, 0..;
        validate_only: bool,                      0..;
    }

    struct AlterConfigsResource {
        resource_type: i8,                   0..;
        resource_name: String,               0..;
        configs:       Vec<AlterableConfig>, 0..;
    }

    struct AlterableConfig {
        name:  String,         0..;
        value: Option<String>, 0.., = Some(String::new());
    }
}

message! {
    AlterConfigsResponse: key 33, versions 0..=2, flexible 2..;

    struct AlterConfigsResponse {
        throttle_time_ms: i32,                               0..;
        responses:        Vec<AlterConfigsResourceResponse>, 0..;
    }

    struct AlterConfigsResourceResponse {
        error_code:    ErrorCode,      0..;
        error_message: Option<String>, 0.., = Some(String::new());
        resource_type: i8,             0..;
        resource_name: String,         0..;
    }
}
