//! OffsetFetch (key 9): the committed offsets of one group, or of several since version 8.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    OffsetFetchRequest: key 9, versions 1..=10, flexible 6..;

    struct OffsetFetchRequest {
        group_id:       String,                               0..=7;
        topics:         Option<Vec<OffsetFetchRequestTopic>>, 0..=7, null 2..=7, = Some(Vec::new());
        groups:         Vec<OffsetFetchRequestGroup>,         8..;
        require_stable: bool,                                 7..;
    }

    struct OffsetFetchRequestTopic {
        name:              String,   0..=7;
        partition_indexes: Vec<i32>, 0..=7;
    }

    struct OffsetFetchRequestGroup {
        group_id:     String,                                8..;
        member_id:    Option<String>,                        9..;
        member_epoch: i32,                                   9.., = -1;
        topics:       Option<Vec<OffsetFetchRequestTopics>>, 8.., = Some(Vec::new());
    }

    struct OffsetFetchRequestTopics {
        name:              String,   8..=9;
        topic_id:          Uuid,     10..;
        partition_indexes: Vec<i32>, 8..;
    }
}

message! {
    OffsetFetchResponse: key 9, versions 1..=10, flexible 6..;

    struct OffsetFetchResponse {
        throttle_time_ms: i32,                           3..;
        topics:           Vec<OffsetFetchResponseTopic>, 0..=7;
        error_code:       ErrorCode,                     2..=7;
        groups:           Vec<OffsetFetchResponseGroup>, 8..;
    }

    struct OffsetFetchResponseTopic {
        name:       String,                            0..=7;
        partitions: Vec<OffsetFetchResponsePartition>, 0..=7;
    }

    struct OffsetFetchResponsePartition {
        partition_index:        i32,            0..=7;
        committed_offset:       i64,            0..=7;
        committed_leader_epoch: i32,            5..=7, = -1;
        metadata:               Option<String>, 0..=7, = Some(String::new());
        error_code:             ErrorCode,      0..=7;
    }

    struct OffsetFetchResponseGroup {
        group_id:   String,                         8..;
        topics:     Vec<OffsetFetchResponseTopics>, 8..;
        error_code: ErrorCode,                      8..;
    }

    struct OffsetFetchResponseTopics {
        name:       String,                             8..=9;
        topic_id:   Uuid,                               10..;
        partitions: Vec<OffsetFetchResponsePartitions>, 8..;
    }

    struct OffsetFetchResponsePartitions {
        partition_index:        i32,            8..;
        committed_offset:       i64,            8..;
        committed_leader_epoch: i32,            8.., = -1;
        metadata:               Option<String>, 8.., = Some(String::new());
        error_code:             ErrorCode,      8..;
    }
}
