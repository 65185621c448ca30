//! ListTransactions (key 66): the transactional ids a broker coordinates.

use crate::ErrorCode;
use crate::message::message;

message! {
    ListTransactionsRequest: key 66, versions 0..=2, flexible 0..;

    struct ListTransactionsRequest {
        state_filters:            Vec<String>,    0..;
        producer_id_filters:      Vec<i64>,       0..;
        duration_filter:          i64,            1.., = -1;
        transactional_id_pattern: Option<String>, 2..;
    }
}

message! {
    ListTransactionsResponse: key 66, versions 0..=2, flexible 0..;

    struct ListTransactionsResponse {
        throttle_time_ms:      i32,                   0..;
        error_code:            ErrorCode,             0..;
        unknown_state_filters: Vec<String>,           0..;
        transaction_states:    Vec<TransactionState>, 0..;
    }

    struct TransactionState {
        transactional_id:  String, 0..;
        producer_id:       i64,    0..;
        transaction_state: String, 0..;
    }
}
