//! AllocateProducerIds (key 67): a broker takes a block of producer ids from the controller.

use crate::ErrorCode;
use crate::message::message;

message! {
    AllocateProducerIdsRequest: key 67, versions 0..=0, flexible 0..;

    struct AllocateProducerIdsRequest {
        broker_id:    i32, 0..;
        broker_epoch: i64, 0.., = -1;
    }
}

message! {
    AllocateProducerIdsResponse: key 67, versions 0..=0, flexible 0..;

    struct AllocateProducerIdsResponse {
        throttle_time_ms:  i32,       0..;
        error_code:        ErrorCode, 0..;
        producer_id_start: i64,       0..;
        producer_id_len:   i32,       0..;
    }
}
