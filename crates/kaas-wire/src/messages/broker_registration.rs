//! BrokerRegistration (key 62): a broker registers its incarnation with the controller.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    BrokerRegistrationRequest: key 62, versions 0..=4, flexible 0..;

    struct BrokerRegistrationRequest {
        broker_id:              i32,            0..;
        cluster_id:             String,         0..;
        incarnation_id:         Uuid,           0..;
        listeners:              Vec<Listener>,  0..;
        features:               Vec<Feature>,   0..;
        rack:                   Option<String>, 0.., = Some(String::new());
        is_migrating_zk_broker: bool,           1..;
        log_dirs:               Vec<Uuid>,      2..;
        previous_broker_epoch:  i64,            3.., = -1;
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
    BrokerRegistrationResponse: key 62, versions 0..=4, flexible 0..;

    struct BrokerRegistrationResponse {
        throttle_time_ms: i32,       0..;
        error_code:       ErrorCode, 0..;
        broker_epoch:     i64,       0.., = -1;
    }
}
