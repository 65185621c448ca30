//! What classic consumers put into JoinGroup and SyncGroup: a version in 16 bits, then one of these. No api of its own.

use bytes::Bytes;

use crate::message::message;

message! {
    ConsumerProtocolSubscription: versions 0..=3;

    struct ConsumerProtocolSubscription {
        topics:           Vec<String>,         0..;
        user_data:        Option<Bytes>,       0..;
        owned_partitions: Vec<TopicPartition>, 1..;
        generation_id:    i32,                 2.., = -1;
        rack_id:          Option<String>,      3..;
    }

    struct TopicPartition {
        topic:      String,   1..;
        partitions: Vec<i32>, 1..;
    }
}

message! {
    ConsumerProtocolAssignment: versions 0..=3;

    struct ConsumerProtocolAssignment {
        assigned_partitions: Vec<TopicPartitionResponse>, 0..;
        user_data:           Option<Bytes>,               0..;
    }

    struct TopicPartitionResponse {
        topic:      String,   0..;
        partitions: Vec<i32>, 0..;
    }
}
