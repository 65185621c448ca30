//! SaslAuthenticate (key 36): one round of a SASL exchange.

use bytes::Bytes;

use crate::ErrorCode;
use crate::message::message;

message! {
    SaslAuthenticateRequest: key 36, versions 0..=2, flexible 2..;

    struct SaslAuthenticateRequest {
        auth_bytes: Bytes, 0..;
    }
}

message! {
    SaslAuthenticateResponse: key 36, versions 0..=2, flexible 2..;

    struct SaslAuthenticateResponse {
        error_code:          ErrorCode,      0..;
        error_message:       Option<String>, 0.., = Some(String::new());
        auth_bytes:          Bytes,          0..;
        session_lifetime_ms: i64,            1..;
    }
}
