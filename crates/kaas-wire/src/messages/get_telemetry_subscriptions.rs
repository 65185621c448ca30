//! GetTelemetrySubscriptions (key 71): which client metrics the broker wants.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    GetTelemetrySubscriptionsRequest: key 71, versions 0..=0, flexible 0..;

    struct GetTelemetrySubscriptionsRequest {
        client_instance_id: Uuid, 0..;
    }
}

message! {
    GetTelemetrySubscriptionsResponse: key 71, versions 0..=0, flexible 0..;

    struct GetTelemetrySubscriptionsResponse {
        throttle_time_ms:           i32,         0..;
        error_code:                 ErrorCode,   0..;
        client_instance_id:         Uuid,        0..;
        subscription_id:            i32,         0..;
        accepted_compression_types: Vec<i8>,     0..;
        push_interval_ms:           i32,         0..;
        telemetry_max_bytes:        i32,         0..;
        delta_temporality:          bool,        0..;
        requested_metrics:          Vec<String>, 0..;
    }
}
