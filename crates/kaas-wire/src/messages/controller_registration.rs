//! ControllerRegistration (key 70): a controller registers with the active one.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    ControllerRegistrationRequest: key 70, versions 0..=0, flexible 0..;

    struct ControllerRegistrationRequest {
        controller_id:      i32,           0..;
        incarnation_id:     Uuid,          0..;
        zk_migration_ready: bool,          0..;
        listeners:          Vec<Listener>, 0..;
        features:           Vec<Feature>,  0..;
    }

    struct Listener {
        name:              String, 0..;
        host:              String, 0..;
        port:              u16,    0..;
        security_protocol: i16,    0..;
    }

    struct Feature {
        name:                  String, 0..;
        min_supported_version: i16,    0..;
        max_supported_version: i16,    0..;
    }
}

message! {
    ControllerRegistrationResponse: key 70, versions 0..=0, flexible 0..;

    struct ControllerRegistrationResponse {
        throttle_time_ms: i32,            0..;
        error_code:       ErrorCode,      0..;
        error_message:    Option<String>, 0.., = Some(String::new());
    }
}
