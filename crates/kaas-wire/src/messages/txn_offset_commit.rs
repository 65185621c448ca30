//! TxnOffsetCommit (key 28): store a group's offsets as part of a transaction.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    TxnOffsetCommitRequest: key 28, versions 0..=6, flexible 3..;

    struct TxnOffsetCommitRequest {
        transactional_id:              String,                           0..;
        group_id:                      String,                           0..;
        producer_id:                   i64,                              0..;
        producer_epoch:                i16,                              0..;
        generation_id_or_member_epoch: i32,                              3.., = -1;
        member_id:                     String,                           3..;
        group_instance_id:             Option<String>,                   3..;
        topics:                        Vec<TxnOffsetCommitRequestTopic>, 0..;
    }

    struct TxnOffsetCommitRequestTopic {
        name:       String,                               0..=5;
        topic_id:   Uuid,                                 6..;
        partitions: Vec<TxnOffsetCommitRequestPartition>, 0..;
    }

    struct TxnOffsetCommitRequestPartition {
        partition_index:        i32,            0..;
        committed_offset:       i64,            0..;
        committed_leader_epoch: i32,            2.., = -1;
        committed_metadata:     Option<String>, 0.., = Some(String::new());
    }
}

message! {
    TxnOffsetCommitResponse: key 28, versions 0..=6, flexible 3..;

    struct TxnOffsetCommitResponse {
        throttle_time_ms: i32,                               0..;
        topics:           Vec<TxnOffsetCommitResponseTopic>, 0..;
    }

    struct TxnOffsetCommitResponseTopic {
        name:       String,                                0..=5;
        topic_id:   Uuid,                                  6..;
        partitions: Vec<TxnOffsetCommitResponsePartition>, 0..;
    }

    struct TxnOffsetCommitResponsePartition {
        partition_index: i32,       0..;
        error_code:      ErrorCode, 0..;
    }
}
