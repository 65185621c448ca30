//! InitProducerId (key 22): a producer id and epoch for an idempotent or transactional producer.

use crate::ErrorCode;
use crate::message::message;

message! {
    InitProducerIdRequest: key 22, versions 0..=6, flexible 2..;

    struct InitProducerIdRequest {
        transactional_id:       Option<String>, 0.., = Some(String::new());
        transaction_timeout_ms: i32,            0..;
        producer_id:            i64,            3.., = -1;
        producer_epoch:         i16,            3.., = -1;
        enable2_pc:             bool,           6..;
        keep_prepared_txn:      bool,           6..;
    }
}

message! {
    InitProducerIdResponse: key 22, versions 0..=6, flexible 2..;

    struct InitProducerIdResponse {
        throttle_time_ms:           i32,       0..;
        error_code:                 ErrorCode, 0..;
        producer_id:                i64,       0.., = -1;
        producer_epoch:             i16,       0..;
        ongoing_txn_producer_id:    i64,       6.., = -1;
        ongoing_txn_producer_epoch: i16,       6.., = -1;
    }
}
