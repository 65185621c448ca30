//! UnregisterController (key 94): remove a controller's registration.

use crate::ErrorCode;
use crate::message::message;

message! {
    UnregisterControllerRequest: key 94, versions 0..=0, flexible 0..;

    struct UnregisterControllerRequest {
        controller_id: i32, 0..;
    }
}

message! {
    UnregisterControllerResponse: key 94, versions 0..=0, flexible 0..;

    struct UnregisterControllerResponse {
        throttle_time_ms: i32,            0..;
        error_code:       ErrorCode,      0..;
        error_message:    Option<String>, 0.., = Some(String::new());
    }
}
