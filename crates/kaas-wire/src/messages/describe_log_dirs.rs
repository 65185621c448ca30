//! DescribeLogDirs (key 35): the log directories of a broker and what lies in them.

use crate::ErrorCode;
use crate::message::message;

message! {
    DescribeLogDirsRequest: key 35, versions 1..=5, flexible 2..;

    struct DescribeLogDirsRequest {
        topics: Option<Vec<DescribableLogDirTopic>>, 0.., = Some(Vec::new());
    }

    struct DescribableLogDirTopic {
        topic:      String,   0..;
        partitions: Vec<i32>, 0..;
    }
}

message! {
    DescribeLogDirsResponse: key 35, versions 1..=5, flexible 2..;

    struct DescribeLogDirsResponse {
        throttle_time_ms: i32,                        0..;
        error_code:       ErrorCode,                  3..;
        results:          Vec<DescribeLogDirsResult>, 0..;
    }

    struct DescribeLogDirsResult {
        error_code:   ErrorCode,                 0..;
        log_dir:      String,                    0..;
        topics:       Vec<DescribeLogDirsTopic>, 0..;
        total_bytes:  i64,                       4.., = -1;
        usable_bytes: i64,                       4.., = -1;
        is_cordoned:  bool,                      5..;
    }

    struct DescribeLogDirsTopic {
        name:       String,                        0..;
        partitions: Vec<DescribeLogDirsPartition>, 0..;
    }

    struct DescribeLogDirsPartition {
        partition_index: i32,  0..;
        partition_size:  i64,  0..;
        offset_lag:      i64,  0..;
        is_future_key:   bool, 0..;
    }
}
