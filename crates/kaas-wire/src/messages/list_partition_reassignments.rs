//! ListPartitionReassignments (key 46): the reassignments under way.

use crate::ErrorCode;
use crate::message::message;

message! {
    ListPartitionReassignmentsRequest: key 46, versions 0..=0, flexible 0..;

    struct ListPartitionReassignmentsRequest {
        timeout_ms: i32,                                           0.., = 60000;
        topics:     Option<Vec<ListPartitionReassignmentsTopics>>, 0..;
    }

    struct ListPartitionReassignmentsTopics {
        name:              String,   0..;
        partition_indexes: Vec<i32>, 0..;
    }
}

message! {
    ListPartitionReassignmentsResponse: key 46, versions 0..=0, flexible 0..;

    struct ListPartitionReassignmentsResponse {
        throttle_time_ms: i32,                           0..;
        error_code:       ErrorCode,                     0..;
        error_message:    Option<String>,                0.., = Some(String::new());
        topics:           Vec<OngoingTopicReassignment>, 0..;
    }

    struct OngoingTopicReassignment {
        name:       String,                            0..;
        partitions: Vec<OngoingPartitionReassignment>, 0..;
    }

    struct OngoingPartitionReassignment {
        partition_index:   i32,      0..;
        replicas:          Vec<i32>, 0..;
        adding_replicas:   Vec<i32>, 0..;
        removing_replicas: Vec<i32>, 0..;
    }
}
