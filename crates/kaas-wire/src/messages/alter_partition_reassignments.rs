//! AlterPartitionReassignments (key 45): start or cancel moving partitions to other replicas.

use crate::ErrorCode;
use crate::message::message;

message! {
    AlterPartitionReassignmentsRequest: key 45, versions 0..=1, flexible 0..;

    struct AlterPartitionReassignmentsRequest {
        timeout_ms:                      i32,                    0.., = 60000;
        allow_replication_factor_change: bool,                   1.., = true;
        topics:                          Vec<ReassignableTopic>, 0..;
    }

    struct ReassignableTopic {
        name:       String,                     0..;
        partitions: Vec<ReassignablePartition>, 0..;
    }

    struct ReassignablePartition {
        partition_index: i32,              0..;
        replicas:        Option<Vec<i32>>, 0..;
    }
}

message! {
    AlterPartitionReassignmentsResponse: key 45, versions 0..=1, flexible 0..;

    struct AlterPartitionReassignmentsResponse {
        throttle_time_ms:                i32,                            0..;
        allow_replication_factor_change: bool,                           1.., = true;
        error_code:                      ErrorCode,                      0..;
        error_message:                   Option<String>,                 0.., = Some(String::new());
        responses:                       Vec<ReassignableTopicResponse>, 0..;
    }

    struct ReassignableTopicResponse {
        name:       String,                             0..;
        partitions: Vec<ReassignablePartitionResponse>, 0..;
    }

    struct ReassignablePartitionResponse {
        partition_index: i32,            0..;
        error_code:      ErrorCode,      0..;
        error_message:   Option<String>, 0.., = Some(String::new());
    }
}
