//! DeleteRecords (key 21): move the start of partitions forward.

use crate::ErrorCode;
use crate::message::message;

message! {
    DeleteRecordsRequest: key 21, versions 0..=2, flexible 2..;

    struct DeleteRecordsRequest {
        topics:     Vec<DeleteRecordsTopic>, 0..;
        timeout_ms: i32,                     0..;
    }

    struct DeleteRecordsTopic {
        name:       String,                      0..;
        partitions: Vec<DeleteRecordsPartition>, 0..;
    }

    struct DeleteRecordsPartition {
        partition_index: i32, 0..;
        offset:          i64, 0..;
    }
}

message! {
    DeleteRecordsResponse: key 21, versions 0..=2, flexible 2..;

    struct DeleteRecordsResponse {
        throttle_time_ms: i32,                           0..;
        topics:           Vec<DeleteRecordsTopicResult>, 0..;
    }

    struct DeleteRecordsTopicResult {
        name:       String,                            0..;
        partitions: Vec<DeleteRecordsPartitionResult>, 0..;
    }

    struct DeleteRecordsPartitionResult {
        partition_index: i32,       0..;
        low_watermark:   i64,       0..;
        error_code:      ErrorCode, 0..;
    }
}
