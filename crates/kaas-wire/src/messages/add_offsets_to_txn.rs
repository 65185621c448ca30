//! AddOffsetsToTxn (key 25): a group's offsets join a transaction.

use crate::ErrorCode;
use crate::message::message;

message! {
    AddOffsetsToTxnRequest: key 25, versions 0..=4, flexible 3..;

    struct AddOffsetsToTxnRequest {
        transactional_id: String, 0..;
        producer_id:      i64,    0..;
        producer_epoch:   i16,    0..;
        group_id:         String, 0..;
    }
}

message! {
    AddOffsetsToTxnResponse: key 25, versions 0..=4, flexible 3..;

    struct AddOffsetsToTxnResponse {
        throttle_time_ms: i32,       0..;
        error_code:       ErrorCode, 0..;
    }
}
