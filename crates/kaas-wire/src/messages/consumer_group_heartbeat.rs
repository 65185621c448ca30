//! ConsumerGroupHeartbeat (key 68): join, stay in and leave a group of the consumer protocol (KIP-848).

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    ConsumerGroupHeartbeatRequest: key 68, versions 0..=1, flexible 0..;

    struct ConsumerGroupHeartbeatRequest {
        group_id:               String,                       0..;
        member_id:              String,                       0..;
        member_epoch:           i32,                          0..;
        instance_id:            Option<String>,               0..;
        rack_id:                Option<String>,               0..;
        rebalance_timeout_ms:   i32,                          0.., = -1;
        subscribed_topic_names: Option<Vec<String>>,          0..;
        subscribed_topic_regex: Option<String>,               1..;
        server_assignor:        Option<String>,               0..;
        topic_partitions:       Option<Vec<TopicPartitions>>, 0..;
    }

    struct TopicPartitions {
        topic_id:   Uuid,     0..;
        partitions: Vec<i32>, 0..;
    }
}

message! {
    ConsumerGroupHeartbeatResponse: key 68, versions 0..=1, flexible 0..;

    struct ConsumerGroupHeartbeatResponse {
        throttle_time_ms:      i32,                0..;
        error_code:            ErrorCode,          0..;
        error_message:         Option<String>,     0..;
        member_id:             Option<String>,     0..;
        member_epoch:          i32,                0..;
        heartbeat_interval_ms: i32,                0..;
        assignment:            Option<Assignment>, 0..;
    }

    struct Assignment {
        topic_partitions: Vec<TopicPartitions>, 0..;
    }
}
