//! Control batches: the records by which a log tells itself that a transaction ended.

use bytes::Bytes;

use super::{BatchBuilder, BatchError, Record};
use crate::message::{decode_versioned, encode_versioned};
use crate::messages::end_txn_marker::EndTxnMarker;
use crate::writer::Writer;

/// The version of keys and values that is written; newer ones only add fields behind.
const VERSION: i16 = 0;

const ABORT: i16 = 0;
const COMMIT: i16 = 1;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndTxn {
    Abort,
    Commit,
}

/// What a control record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlType {
    EndTxn(EndTxn),
    /// One of KRaft's, or one of a Kafka yet to come: a consumer passes over it.
    Other(i16),
}

/// What the control record with this key says.
pub fn control_type(record: &Record<'_>) -> Result<ControlType, BatchError> {
    let &[_, _, high, low, ..] = record.key.unwrap_or(&[]) else {
        return Err(BatchError::InvalidRecord {
            index: 0,
            reason: "has no control type in its key",
        });
    };
    Ok(match i16::from_be_bytes([high, low]) {
        ABORT => ControlType::EndTxn(EndTxn::Abort),
        COMMIT => ControlType::EndTxn(EndTxn::Commit),
        other => ControlType::Other(other),
    })
}

/// The value of a record that ends a transaction.
pub fn end_txn(record: &Record<'_>) -> Result<EndTxnMarker, BatchError> {
    let value = Bytes::copy_from_slice(record.value.unwrap_or(&[]));
    decode_versioned(&value).map_err(|_| BatchError::InvalidRecord {
        index: 0,
        reason: "has no transaction marker in its value",
    })
}

/// The batch that ends the transaction of a producer in one partition. The log assigns the offset.
pub fn marker_batch(
    end: EndTxn,
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
    timestamp: i64,
) -> Bytes {
    let mut key = Writer::default();
    key.i16(VERSION);
    key.i16(match end {
        EndTxn::Abort => ABORT,
        EndTxn::Commit => COMMIT,
    });
    let value = encode_versioned(&EndTxnMarker { coordinator_epoch }, VERSION);
    BatchBuilder::new(0)
        .producer(producer_id, producer_epoch, -1)
        .transactional()
        .control()
        .record(timestamp, Some(key.as_slice()), Some(&value))
        .build()
}
