//! DeleteShareGroupState (key 86): delete the state of share partitions.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    DeleteShareGroupStateRequest: key 86, versions 0..=0, flexible 0..;

    struct DeleteShareGroupStateRequest {
        group_id: String,               0..;
        topics:   Vec<DeleteStateData>, 0..;
    }

    struct DeleteStateData {
        topic_id:   Uuid,               0..;
        partitions: Vec<PartitionData>, 0..;
    }

    struct PartitionData {
        partition: i32, 0..;
    }
}

message! {
    DeleteShareGroupStateResponse: key 86, versions 0..=0, flexible 0..;

    struct DeleteShareGroupStateResponse {
        results: Vec<DeleteStateResult>, 0..;
    }

    struct DeleteStateResult {
        topic_id:   Uuid,                 0..;
        partitions: Vec<PartitionResult>, 0..;
    }

    struct PartitionResult {
        partition:     i32,            0..;
        error_code:    ErrorCode,      0..;
        error_message: Option<String>, 0..;
    }
}
