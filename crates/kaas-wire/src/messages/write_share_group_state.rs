//! WriteShareGroupState (key 85): write the state of share partitions.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    WriteShareGroupStateRequest: key 85, versions 0..=1, flexible 0..;

    struct WriteShareGroupStateRequest {
        group_id: String,              0..;
        topics:   Vec<WriteStateData>, 0..;
    }

    struct WriteStateData {
        topic_id:   Uuid,               0..;
        partitions: Vec<PartitionData>, 0..;
    }

    struct PartitionData {
        partition:               i32,             0..;
        state_epoch:             i32,             0..;
        leader_epoch:            i32,             0..;
        start_offset:            i64,             0..;
        delivery_complete_count: i32,             1.., = -1;
        state_batches:           Vec<StateBatch>, 0..;
    }

    struct StateBatch {
        first_offset:   i64, 0..;
        last_offset:    i64, 0..;
        delivery_state: i8,  0..;
        delivery_count: i16, 0..;
    }
}

message! {
    WriteShareGroupStateResponse: key 85, versions 0..=1, flexible 0..;

    struct WriteShareGroupStateResponse {
        results: Vec<WriteStateResult>, 0..;
    }

    struct WriteStateResult {
        topic_id:   Uuid,                 0..;
        partitions: Vec<PartitionResult>, 0..;
    }

    struct PartitionResult {
        partition:     i32,            0..;
        error_code:    ErrorCode,      0..;
        error_message: Option<String>, 0..;
    }
}
