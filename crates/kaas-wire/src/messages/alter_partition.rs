//! AlterPartition (key 56): a leader changes the in-sync replicas of partitions.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    AlterPartitionRequest: key 56, versions 2..=3, flexible 0..;

    struct AlterPartitionRequest {
        broker_id:    i32,            0..;
        broker_epoch: i64,            0.., = -1;
        topics:       Vec<TopicData>, 0..;
    }

    struct TopicData {
        topic_id:   Uuid,               2..;
        partitions: Vec<PartitionData>, 0..;
    }

    struct PartitionData {
        partition_index:       i32,              0..;
        leader_epoch:          i32,              0..;
        new_isr:               Vec<i32>,         0..=2;
        new_isr_with_epochs:   Vec<BrokerState>, 3..;
        leader_recovery_state: i8,               1..;
        partition_epoch:       i32,              0..;
    }

    struct BrokerState {
        broker_id:    i32, 3..;
        broker_epoch: i64, 3.., = -1;
    }
}

message! {
    AlterPartitionResponse: key 56, versions 2..=3, flexible 0..;

    struct AlterPartitionResponse {
        throttle_time_ms: i32,                    0..;
        error_code:       ErrorCode,              0..;
        topics:           Vec<TopicDataResponse>, 0..;
    }

    struct TopicDataResponse {
        topic_id:   Uuid,                       2..;
        partitions: Vec<PartitionDataResponse>, 0..;
    }

    struct PartitionDataResponse {
        partition_index:       i32,       0..;
        error_code:            ErrorCode, 0..;
        leader_id:             i32,       0..;
        leader_epoch:          i32,       0..;
        isr:                   Vec<i32>,  0..;
        leader_recovery_state: i8,        1..;
        partition_epoch:       i32,       0..;
    }
}
