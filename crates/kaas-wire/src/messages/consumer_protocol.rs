//! What classic consumers put into JoinGroup and SyncGroup; no api of its own. The version stands in front:
//! [`decode_versioned`](crate::message::decode_versioned).

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
        topic:      String,   0..;
        partitions: Vec<i32>, 0..;
    }
}

message! {
    ConsumerProtocolAssignment: versions 0..=3;

    struct ConsumerProtocolAssignment {
        assigned_partitions: Vec<TopicPartition>, 0..;
        user_data:           Option<Bytes>,       0..;
    }
}
