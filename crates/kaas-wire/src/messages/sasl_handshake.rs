//! SaslHandshake (key 17): agree on a SASL mechanism.

use crate::ErrorCode;
use crate::message::message;

message! {
    SaslHandshakeRequest: key 17, versions 0..=1;

    struct SaslHandshakeRequest {
        mechanism: String, 0..;
    }
}

message! {
    SaslHandshakeResponse: key 17, versions 0..=1;

    struct SaslHandshakeResponse {
        error_code: ErrorCode,   0..;
        mechanisms: Vec<String>, 0..;
    }
}
