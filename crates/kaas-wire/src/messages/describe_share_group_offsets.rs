//! DescribeShareGroupOffsets (key 90): where share groups start in partitions.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    DescribeShareGroupOffsetsRequest: key 90, versions 0..=1, flexible 0..;

    struct DescribeShareGroupOffsetsRequest {
        groups: Vec<DescribeShareGroupOffsetsRequestGroup>, 0..;
    }

    struct DescribeShareGroupOffsetsRequestGroup {
        group_id: String,                                             0..;
        topics:   Option<Vec<DescribeShareGroupOffsetsRequestTopic>>, 0.., = Some(Vec::new());
    }

    struct DescribeShareGroupOffsetsRequestTopic {
        topic_name: String,   0..;
        partitions: Vec<i32>, 0..;
    }
}

message! {
    DescribeShareGroupOffsetsResponse: key 90, versions 0..=1, flexible 0..;

    struct DescribeShareGroupOffsetsResponse {
        throttle_time_ms: i32,                                         0..;
        groups:           Vec<DescribeShareGroupOffsetsResponseGroup>, 0..;
    }

    struct DescribeShareGroupOffsetsResponseGroup {
        group_id:      String,                                      0..;
        topics:        Vec<DescribeShareGroupOffsetsResponseTopic>, 0..;
        error_code:    ErrorCode,                                   0..;
        error_message: Option<String>,                              0..;
    }

    struct DescribeShareGroupOffsetsResponseTopic {
        topic_name: String,                                          0..;
        topic_id:   Uuid,                                            0..;
        partitions: Vec<DescribeShareGroupOffsetsResponsePartition>, 0..;
    }

    struct DescribeShareGroupOffsetsResponsePartition {
        partition_index: i32,            0..;
        start_offset:    i64,            0..;
        leader_epoch:    i32,            0..;
        lag:             i64,            1.., = -1;
        error_code:      ErrorCode,      0..;
        error_message:   Option<String>, 0..;
    }
}
