//! ExpireDelegationToken (key 40): end the life of a delegation token.

use bytes::Bytes;

use crate::ErrorCode;
use crate::message::message;

message! {
    ExpireDelegationTokenRequest: key 40, versions 1..=2, flexible 2..;

    struct ExpireDelegationTokenRequest {
        hmac:                  Bytes, 0..;
        expiry_time_period_ms: i64,   0..;
    }
}

message! {
    ExpireDelegationTokenResponse: key 40, versions 1..=2, flexible 2..;

    struct ExpireDelegationTokenResponse {
        error_code:          ErrorCode, 0..;
        expiry_timestamp_ms: i64,       0..;
        throttle_time_ms:    i32,       0..;
    }
}
