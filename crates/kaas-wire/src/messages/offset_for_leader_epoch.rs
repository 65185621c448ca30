//! OffsetForLeaderEpoch (key 23): where a leader epoch ends, so that a consumer notices truncation.

use crate::ErrorCode;
use crate::message::message;

message! {
    OffsetForLeaderEpochRequest: key 23, versions 2..=4, flexible 4..;

    struct OffsetForLeaderEpochRequest {
        replica_id: i32,                       3.., = -2;
        topics:     Vec<OffsetForLeaderTopic>, 0..;
    }

    struct OffsetForLeaderTopic {
        topic:      String,                        0..;
        partitions: Vec<OffsetForLeaderPartition>, 0..;
    }

    struct OffsetForLeaderPartition {
        partition:            i32, 0..;
        current_leader_epoch: i32, 2.., = -1;
        leader_epoch:         i32, 0..;
    }
}

message! {
    OffsetForLeaderEpochResponse: key 23, versions 2..=4, flexible 4..;

    struct OffsetForLeaderEpochResponse {
        throttle_time_ms: i32,                             2..;
        topics:           Vec<OffsetForLeaderTopicResult>, 0..;
    }

    struct OffsetForLeaderTopicResult {
        topic:      String,              0..;
        partitions: Vec<EpochEndOffset>, 0..;
    }

    struct EpochEndOffset {
        error_code:   ErrorCode, 0..;
        partition:    i32,       0..;
        leader_epoch: i32,       1.., = -1;
        end_offset:   i64,       0.., = -1;
    }
}
