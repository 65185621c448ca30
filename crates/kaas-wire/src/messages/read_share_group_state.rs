//! ReadShareGroupState (key 84): read the state of share partitions.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    ReadShareGroupStateRequest: key 84, versions 0..=0, flexible 0..;

    struct ReadShareGroupStateRequest {
        group_id: String,             0..;
        topics:   Vec<ReadStateData>, 0..;
    }

    struct ReadStateData {
        topic_id:   Uuid,               0..;
        partitions: Vec<PartitionData>, 0..;
    }

    struct PartitionData {
        partition:    i32, 0..;
        leader_epoch: i32, 0..;
    }
}

message! {
    ReadShareGroupStateResponse: key 84, versions 0..=0, flexible 0..;

    struct ReadShareGroupStateResponse {
        results: Vec<ReadStateResult>, 0..;
    }

    struct ReadStateResult {
        topic_id:   Uuid,                 0..;
        partitions: Vec<PartitionResult>, 0..;
    }

    struct PartitionResult {
        partition:     i32,             0..;
        error_code:    ErrorCode,       0..;
        error_message: Option<String>,  0..;
        state_epoch:   i32,             0..;
        start_offset:  i64,             0..;
        state_batches: Vec<StateBatch>, 0..;
    }

    struct StateBatch {
        first_offset:   i64, 0..;
        last_offset:    i64, 0..;
        delivery_state: i8,  0..;
        delivery_count: i16, 0..;
    }
}
