//! ElectLeaders (key 43): elect the preferred or an unclean leader for partitions.

use crate::ErrorCode;
use crate::message::message;

message! {
    ElectLeadersRequest: key 43, versions 0..=2, flexible 2..;

    struct ElectLeadersRequest {
        election_type:    i8,                           1..;
        topic_partitions: Option<Vec<TopicPartitions>>, 0.., = Some(Vec::new());
        timeout_ms:       i32,                          0.., = 60000;
    }

    struct TopicPartitions {
        topic:      String,   0..;
        partitions: Vec<i32>, 0..;
    }
}

message! {
    ElectLeadersResponse: key 43, versions 0..=2, flexible 2..;

    struct ElectLeadersResponse {
        throttle_time_ms:         i32,                        0..;
        error_code:               ErrorCode,                  1..;
        replica_election_results: Vec<ReplicaElectionResult>, 0..;
    }

    struct ReplicaElectionResult {
        topic:            String,               0..;
        partition_result: Vec<PartitionResult>, 0..;
    }

    struct PartitionResult {
        partition_id:  i32,            0..;
        error_code:    ErrorCode,      0..;
        error_message: Option<String>, 0.., = Some(String::new());
    }
}
