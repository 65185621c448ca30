//! DeleteTopics (key 20): delete topics by name, or by name or id since version 6.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    DeleteTopicsRequest: key 20, versions 1..=6, flexible 4..;

    struct DeleteTopicsRequest {
        topics:      Vec<DeleteTopicState>, 6..;
        topic_names: Vec<String>,           0..=5;
        timeout_ms:  i32,                   0..;
    }

    struct DeleteTopicState {
        name:     Option<String>, 6..;
        topic_id: Uuid,           6..;
    }
}

message! {
    DeleteTopicsResponse: key 20, versions 1..=6, flexible 4..;

    struct DeleteTopicsResponse {
        throttle_time_ms: i32,                       1..;
        responses:        Vec<DeletableTopicResult>, 0..;
    }

    struct DeletableTopicResult {
        name:          Option<String>, 0.., null 6.., = Some(String::new());
        topic_id:      Uuid,           6..;
        error_code:    ErrorCode,      0..;
        error_message: Option<String>, 5..;
    }
}
