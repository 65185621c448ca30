//! OffsetDelete (key 47): delete a group's offsets of some partitions.

use crate::ErrorCode;
use crate::message::message;

message! {
    OffsetDeleteRequest: key 47, versions 0..=0;

    struct OffsetDeleteRequest {
        group_id: String,                        0..;
        topics:   Vec<OffsetDeleteRequestTopic>, 0..;
    }

    struct OffsetDeleteRequestTopic {
        name:       String,                            0..;
        partitions: Vec<OffsetDeleteRequestPartition>, 0..;
    }

    struct OffsetDeleteRequestPartition {
        partition_index: i32, 0..;
    }
}

message! {
    OffsetDeleteResponse: key 47, versions 0..=0;

    struct OffsetDeleteResponse {
        error_code:       ErrorCode,                      0..;
        throttle_time_ms: i32,                            0..;
        topics:           Vec<OffsetDeleteResponseTopic>, 0..;
    }

    struct OffsetDeleteResponseTopic {
        name:       String,                             0..;
        partitions: Vec<OffsetDeleteResponsePartition>, 0..;
    }

    struct OffsetDeleteResponsePartition {
        partition_index: i32,       0..;
        error_code:      ErrorCode, 0..;
    }
}
