//! PushTelemetry (key 72): a client hands in its metrics.

use bytes::Bytes;

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    PushTelemetryRequest: key 72, versions 0..=0, flexible 0..;

    struct PushTelemetryRequest {
        client_instance_id: Uuid,  0..;
        subscription_id:    i32,   0..;
        terminating:        bool,  0..;
        compression_type:   i8,    0..;
        metrics:            Bytes, 0..;
    }
}

message! {
    PushTelemetryResponse: key 72, versions 0..=0, flexible 0..;

    struct PushTelemetryResponse {
        throttle_time_ms: i32,       0..;
        error_code:       ErrorCode, 0..;
    }
}
