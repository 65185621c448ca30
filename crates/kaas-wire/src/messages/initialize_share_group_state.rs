//! InitializeShareGroupState (key 83): a group coordinator starts the state of share partitions.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    InitializeShareGroupStateRequest: key 83, versions 0..=0, flexible 0..;

    struct InitializeShareGroupStateRequest {
        group_id: String,                   0..;
        topics:   Vec<InitializeStateData>, 0..;
    }

    struct InitializeStateData {
        topic_id:   Uuid,               0..;
        partitions: Vec<PartitionData>, 0..;
    }

    struct PartitionData {
        partition:    i32, 0..;
        state_epoch:  i32, 0..;
        start_offset: i64, 0..;
    }
}

message! {
    InitializeShareGroupStateResponse: key 83, versions 0..=0, flexible 0..;

    struct InitializeShareGroupStateResponse {
        results: Vec<InitializeStateResult>, 0..;
    }

    struct InitializeStateResult {
        topic_id:   Uuid,                 0..;
        partitions: Vec<PartitionResult>, 0..;
    }

    struct PartitionResult {
        partition:     i32,            0..;
        error_code:    ErrorCode,      0..;
        error_message: Option<String>, 0..;
    }
}
