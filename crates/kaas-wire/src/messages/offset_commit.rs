//! OffsetCommit (key 8): store offsets for a group.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    OffsetCommitRequest: key 8, versions 2..=10, flexible 8..;

    struct OffsetCommitRequest {
        group_id:                      String,                        0..;
        generation_id_or_member_epoch: i32,                           1.., = -1;
        member_id:                     String,                        1..;
        group_instance_id:             Option<String>,                7..;
        retention_time_ms:             i64,                           2..=4, = -1;
        topics:                        Vec<OffsetCommitRequestTopic>, 0..;
    }

    struct OffsetCommitRequestTopic {
        name:       String,                            0..=9;
        topic_id:   Uuid,                              10..;
        partitions: Vec<OffsetCommitRequestPartition>, 0..;
    }

    struct OffsetCommitRequestPartition {
        partition_index:        i32,            0..;
        committed_offset:       i64,            0..;
        committed_leader_epoch: i32,            6.., = -1;
        committed_metadata:     Option<String>, 0.., = Some(String::new());
    }
}

message! {
    OffsetCommitResponse: key 8, versions 2..=10, flexible 8..;

    struct OffsetCommitResponse {
        throttle_time_ms: i32,                            3..;
        topics:           Vec<OffsetCommitResponseTopic>, 0..;
    }

    struct OffsetCommitResponseTopic {
        name:       String,                             0..=9;
        topic_id:   Uuid,                               10..;
        partitions: Vec<OffsetCommitResponsePartition>, 0..;
    }

    struct OffsetCommitResponsePartition {
        partition_index: i32,       0..;
        error_code:      ErrorCode, 0..;
    }
}
