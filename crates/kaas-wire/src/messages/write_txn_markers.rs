//! WriteTxnMarkers (key 27): a transaction coordinator has the outcome written to partitions.

use crate::ErrorCode;
use crate::message::message;

message! {
    WriteTxnMarkersRequest: key 27, versions 1..=2, flexible 1..;

    struct WriteTxnMarkersRequest {
        markers: Vec<WritableTxnMarker>, 0..;
    }

    struct WritableTxnMarker {
        producer_id:         i64,                         0..;
        producer_epoch:      i16,                         0..;
        transaction_result:  bool,                        0..;
        topics:              Vec<WritableTxnMarkerTopic>, 0..;
        coordinator_epoch:   i32,                         0..;
        transaction_version: i8,                          2..;
    }

    struct WritableTxnMarkerTopic {
        name:              String,   0..;
        partition_indexes: Vec<i32>, 0..;
    }
}

message! {
    WriteTxnMarkersResponse: key 27, versions 1..=2, flexible 1..;

    struct WriteTxnMarkersResponse {
        markers: Vec<WritableTxnMarkerResult>, 0..;
    }

    struct WritableTxnMarkerResult {
        producer_id: i64,                               0..;
        topics:      Vec<WritableTxnMarkerTopicResult>, 0..;
    }

    struct WritableTxnMarkerTopicResult {
        name:       String,                                0..;
        partitions: Vec<WritableTxnMarkerPartitionResult>, 0..;
    }

    struct WritableTxnMarkerPartitionResult {
        partition_index: i32,       0..;
        error_code:      ErrorCode, 0..;
    }
}
