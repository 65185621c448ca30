//! Envelope (key 58): a request that a broker forwards to the controller for a client.

use bytes::Bytes;

use crate::ErrorCode;
use crate::message::message;

message! {
    EnvelopeRequest: key 58, versions 0..=0, flexible 0..;

    struct EnvelopeRequest {
        request_data:        Bytes,         0..;
        request_principal:   Option<Bytes>, 0.., = Some(Bytes::new());
        client_host_address: Bytes,         0..;
    }
}

message! {
    EnvelopeResponse: key 58, versions 0..=0, flexible 0..;

    struct EnvelopeResponse {
        response_data: Option<Bytes>, 0..;
        error_code:    ErrorCode,     0..;
    }
}
