//! UnregisterBroker (key 64): remove a broker from the cluster for good.

use crate::ErrorCode;
use crate::message::message;

message! {
    UnregisterBrokerRequest: key 64, versions 0..=0, flexible 0..;

    struct UnregisterBrokerRequest {
        broker_id: i32, 0..;
    }
}

message! {
    UnregisterBrokerResponse: key 64, versions 0..=0, flexible 0..;

    struct UnregisterBrokerResponse {
        throttle_time_ms: i32,            0..;
        error_code:       ErrorCode,      0..;
        error_message:    Option<String>, 0.., = Some(String::new());
    }
}
