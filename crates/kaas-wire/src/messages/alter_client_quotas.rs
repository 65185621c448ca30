//! AlterClientQuotas (key 49): set or remove client quotas.

use crate::ErrorCode;
use crate::message::message;

message! {
    AlterClientQuotasRequest: key 49, versions 0..=1, flexible 1..;

    struct AlterClientQuotasRequest {
        entries:       Vec<EntryData>, 0..;
        validate_only: bool,           0..;
    }

    struct EntryData {
        entity: Vec<EntityData>, 0..;
        ops:    Vec<OpData>,     0..;
    }

    struct EntityData {
        entity_type: String,         0..;
        entity_name: Option<String>, 0.., = Some(String::new());
    }

    struct OpData {
        key:    String, 0..;
        value:  f64,    0..;
        remove: bool,   0..;
    }
}

message! {
    AlterClientQuotasResponse: key 49, versions 0..=1, flexible 1..;

    struct AlterClientQuotasResponse {
        throttle_time_ms: i32,                    0..;
        entries:          Vec<EntryDataResponse>, 0..;
    }

    struct EntryDataResponse {
        error_code:    ErrorCode,       0..;
        error_message: Option<String>,  0.., = Some(String::new());
        entity:        Vec<EntityData>, 0..;
    }
}
