//! DeleteShareGroupOffsets (key 92): delete where a share group starts.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    DeleteShareGroupOffsetsRequest: key 92, versions 0..=0, flexible 0..;

    struct DeleteShareGroupOffsetsRequest {
        group_id: String,                                   0..;
        topics:   Vec<DeleteShareGroupOffsetsRequestTopic>, 0..;
    }

    struct DeleteShareGroupOffsetsRequestTopic {
        topic_name: String, 0..;
    }
}

message! {
    DeleteShareGroupOffsetsResponse: key 92, versions 0..=0, flexible 0..;

    struct DeleteShareGroupOffsetsResponse {
        throttle_time_ms: i32,                                       0..;
        error_code:       ErrorCode,                                 0..;
        error_message:    Option<String>,                            0..;
        responses:        Vec<DeleteShareGroupOffsetsResponseTopic>, 0..;
    }

    struct DeleteShareGroupOffsetsResponseTopic {
        topic_name:    String,         0..;
        topic_id:      Uuid,           0..;
        error_code:    ErrorCode,      0..;
        error_message: Option<String>, 0..;
    }
}
