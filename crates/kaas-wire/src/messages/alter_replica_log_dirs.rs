//! AlterReplicaLogDirs (key 34): move replicas between log directories of a broker.

use crate::ErrorCode;
use crate::message::message;

message! {
    AlterReplicaLogDirsRequest: key 34, versions 1..=2, flexible 2..;

    struct AlterReplicaLogDirsRequest {
        dirs: Vec<AlterReplicaLogDir>, 0..;
    }

    struct AlterReplicaLogDir {
        path:   String,                       0..;
        topics: Vec<AlterReplicaLogDirTopic>, 0..;
    }

    struct AlterReplicaLogDirTopic {
        name:       String,   0..;
        partitions: Vec<i32>, 0..;
    }
}

message! {
    AlterReplicaLogDirsResponse: key 34, versions 1..=2, flexible 2..;

    struct AlterReplicaLogDirsResponse {
        throttle_time_ms: i32,                                0..;
        results:          Vec<AlterReplicaLogDirTopicResult>, 0..;
    }

    struct AlterReplicaLogDirTopicResult {
        topic_name: String,                                 0..;
        partitions: Vec<AlterReplicaLogDirPartitionResult>, 0..;
    }

    struct AlterReplicaLogDirPartitionResult {
        partition_index: i32,       0..;
        error_code:      ErrorCode, 0..;
    }
}
