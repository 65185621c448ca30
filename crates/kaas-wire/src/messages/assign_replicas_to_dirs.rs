//! AssignReplicasToDirs (key 73): a broker says in which directory its replicas lie.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    AssignReplicasToDirsRequest: key 73, versions 0..=0, flexible 0..;

    struct AssignReplicasToDirsRequest {
        broker_id:    i32,                0..;
        broker_epoch: i64,                0.., = -1;
        directories:  Vec<DirectoryData>, 0..;
    }

    struct DirectoryData {
        id:     Uuid,           0..;
        topics: Vec<TopicData>, 0..;
    }

    struct TopicData {
        topic_id:   Uuid,               0..;
        partitions: Vec<PartitionData>, 0..;
    }

    struct PartitionData {
        partition_index: i32, 0..;
    }
}

message! {
    AssignReplicasToDirsResponse: key 73, versions 0..=0, flexible 0..;

    struct AssignReplicasToDirsResponse {
        throttle_time_ms: i32,                        0..;
        error_code:       ErrorCode,                  0..;
        directories:      Vec<DirectoryDataResponse>, 0..;
    }

    struct DirectoryDataResponse {
        id:     Uuid,                   0..;
        topics: Vec<TopicDataResponse>, 0..;
    }

    struct TopicDataResponse {
        topic_id:   Uuid,                       0..;
        partitions: Vec<PartitionDataResponse>, 0..;
    }

    struct PartitionDataResponse {
        partition_index: i32,       0..;
        error_code:      ErrorCode, 0..;
    }
}
