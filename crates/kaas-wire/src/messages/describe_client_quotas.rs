//! DescribeClientQuotas (key 48): the client quotas that match a filter.

use crate::ErrorCode;
use crate::message::message;

message! {
    DescribeClientQuotasRequest: key 48, versions 0..=1, flexible 1..;

    struct DescribeClientQuotasRequest {
        components: Vec<ComponentData>, 0..;
        strict:     bool,               0..;
    }

    struct ComponentData {
        entity_type: String,         0..;
        match_type:  i8,             0..;
        r#match:     Option<String>, 0.., = Some(String::new());
    }
}

message! {
    DescribeClientQuotasResponse: key 48, versions 0..=1, flexible 1..;

    struct DescribeClientQuotasResponse {
        throttle_time_ms: i32,                    0..;
        error_code:       ErrorCode,              0..;
        error_message:    Option<String>,         0.., = Some(String::new());
        entries:          Option<Vec<EntryData>>, 0.., = Some(Vec::new());
    }

    struct EntryData {
        entity: Vec<EntityData>, 0..;
        values: Vec<ValueData>,  0..;
    }

    struct EntityData {
        entity_type: String,         0..;
        entity_name: Option<String>, 0.., = Some(String::new());
    }

    struct ValueData {
        key:   String, 0..;
        value: f64,    0..;
    }
}
