//! EndTxn (key 26): commit or abort a transaction.

use crate::ErrorCode;
use crate::message::message;

message! {
    EndTxnRequest: key 26, versions 0..=5, flexible 3..;

    struct EndTxnRequest {
        transactional_id: String, 0..;
        producer_id:      i64,    0..;
        producer_epoch:   i16,    0..;
        committed:        bool,   0..;
    }
}

message! {
    EndTxnResponse: key 26, versions 0..=5, flexible 3..;

    struct EndTxnResponse {
        throttle_time_ms: i32,       0..;
        error_code:       ErrorCode, 0..;
        producer_id:      i64,       5.., = -1;
        producer_epoch:   i16,       5.., = -1;
    }
}
