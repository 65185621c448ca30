//! RenewDelegationToken (key 39): extend the life of a delegation token.

use bytes::Bytes;

use crate::ErrorCode;
use crate::message::message;

message! {
    RenewDelegationTokenRequest: key 39, versions 1..=2, flexible 2..;

    struct RenewDelegationTokenRequest {
        hmac:            Bytes, 0..;
        renew_period_ms: i64,   0..;
    }
}

message! {
    RenewDelegationTokenResponse: key 39, versions 1..=2, flexible 2..;

    struct RenewDelegationTokenResponse {
        error_code:          ErrorCode, 0..;
        expiry_timestamp_ms: i64,       0..;
        throttle_time_ms:    i32,       0..;
    }
}
