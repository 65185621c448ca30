//! DescribeTopicPartitions (key 75): topics and partitions, page by page.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    DescribeTopicPartitionsRequest: key 75, versions 0..=0, flexible 0..;

    struct DescribeTopicPartitionsRequest {
        topics:                   Vec<TopicRequest>, 0..;
        response_partition_limit: i32,               0.., = 2000;
        cursor:                   Option<Cursor>,    0..;
    }

    struct TopicRequest {
        name: String, 0..;
    }

    struct Cursor {
        topic_name:      String, 0..;
        partition_index: i32,    0..;
    }
}

message! {
    DescribeTopicPartitionsResponse: key 75, versions 0..=0, flexible 0..;

    struct DescribeTopicPartitionsResponse {
        throttle_time_ms: i32,                                       0..;
        topics:           Vec<DescribeTopicPartitionsResponseTopic>, 0..;
        next_cursor:      Option<Cursor>,                            0..;
    }

    struct DescribeTopicPartitionsResponseTopic {
        error_code:                  ErrorCode,                                     0..;
        name:                        Option<String>,                                0.., = Some(String::new());
        topic_id:                    Uuid,                                          0..;
        is_internal:                 bool,                                          0..;
        partitions:                  Vec<DescribeTopicPartitionsResponsePartition>, 0..;
        topic_authorized_operations: i32,                                           0.., = i32::MIN;
    }

    struct DescribeTopicPartitionsResponsePartition {
        error_code:               ErrorCode,        0..;
        partition_index:          i32,              0..;
        leader_id:                i32,              0..;
        leader_epoch:             i32,              0.., = -1;
        replica_nodes:            Vec<i32>,         0..;
        isr_nodes:                Vec<i32>,         0..;
        eligible_leader_replicas: Option<Vec<i32>>, 0..;
        last_known_elr:           Option<Vec<i32>>, 0..;
        offline_replicas:         Vec<i32>,         0..;
    }
}
