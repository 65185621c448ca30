//! What a client may append: the checks of Kafka's `ProduceRequest`, `UnifiedLog` and `LogValidator` that can be made
//! without decompressing, in their order.

use bytes::Bytes;
use kaas_wire::ErrorCode;
use kaas_wire::batch::{self, BatchHeader, Compression, ControlType, EndTxn};

use super::config::{LogConfig, TimestampType};
use super::producers::{Marker, ProducerBatch};
use super::{AppendOptions, LogError};

const MAGIC_AT: usize = 16;

/// A batch on its way into the log: its header is copied, so that the broker's fields can be set, and its records are
/// a slice of the request.
pub(crate) struct Batch {
    pub header: BatchHeader,
    pub head: [u8; batch::HEADER_LEN],
    pub body: Bytes,
}

impl Batch {
    /// `records` is one whole batch.
    fn of(records: &Bytes, header: BatchHeader) -> Batch {
        Batch {
            head: header.to_bytes(),
            header,
            body: records.slice(batch::HEADER_LEN..),
        }
    }

    pub fn producer(&self) -> Option<ProducerBatch> {
        (self.header.producer_id >= 0).then(|| producer_batch(&self.header))
    }
}

pub(crate) fn producer_batch(header: &BatchHeader) -> ProducerBatch {
    ProducerBatch {
        producer_id: header.producer_id,
        epoch: header.producer_epoch,
        first_sequence: header.base_sequence,
        last_sequence: header.last_sequence(),
        last_offset_delta: header.last_offset_delta,
        transactional: header.is_transactional(),
        max_timestamp: header.max_timestamp,
    }
}

/// One batch from a client, fit to be appended.
pub(crate) fn client_batch(
    records: &Bytes,
    config: &LogConfig,
    options: &AppendOptions,
) -> Result<Batch, LogError> {
    let invalid = |why: String| Err(LogError::new(ErrorCode::INVALID_RECORD, why));
    let corrupt = |why: String| Err(LogError::new(ErrorCode::CORRUPT_MESSAGE, why));
    if records.is_empty() {
        return invalid(
            "a produce request must have a record batch for each of its partitions".to_owned(),
        );
    }
    if records.len() <= MAGIC_AT {
        return corrupt(format!("{} bytes are no record batch", records.len()));
    }
    let magic = records[MAGIC_AT] as i8;
    if magic != 2 {
        return invalid(format!(
            "the record batch has magic {magic}; only magic 2 is taken"
        ));
    }
    let header = match BatchHeader::parse(records) {
        Ok(header) => header,
        Err(error) => return corrupt(error.to_string()),
    };
    if header.compression() == Ok(Compression::Zstd) && !options.zstd {
        return Err(LogError::new(
            ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
            "produce requests below version 7 cannot carry zstd".to_owned(),
        ));
    }
    let len = header.total_len();
    if len < records.len() {
        return invalid(
            "a produce request carries exactly one record batch for each of its partitions"
                .to_owned(),
        );
    }
    if len > records.len() {
        return corrupt(format!(
            "the record batch has {} of its {len} bytes",
            records.len()
        ));
    }
    if header.base_offset != 0 {
        return invalid(format!(
            "the base offset of a batch to append must be 0, but it is {}",
            header.base_offset
        ));
    }
    if records.len() > config.max_message_bytes {
        return Err(LogError::new(
            ErrorCode::MESSAGE_TOO_LARGE,
            format!(
                "the record batch has {} bytes, max.message.bytes is {}",
                records.len(),
                config.max_message_bytes
            ),
        ));
    }
    if records.len() as u64 > config.segment_bytes {
        return Err(LogError::new(
            ErrorCode::RECORD_LIST_TOO_LARGE,
            format!(
                "the record batch has {} bytes, segment.bytes is {}",
                records.len(),
                config.segment_bytes
            ),
        ));
    }
    if let Err(error) = batch::verify_crc(records) {
        return corrupt(error.to_string());
    }
    let count_from_offsets = i64::from(header.last_offset_delta) + 1;
    if count_from_offsets <= 0 || i64::from(header.record_count) != count_from_offsets {
        return invalid(format!(
            "the record batch spans {count_from_offsets} offsets but says it holds {} records",
            header.record_count
        ));
    }
    if header.is_control() {
        return invalid("clients are not allowed to write control records".to_owned());
    }
    if header.producer_id >= 0 && header.base_sequence < 0 {
        return invalid(format!(
            "sequence {} in a batch with producer id {}",
            header.base_sequence, header.producer_id
        ));
    }
    if let Err(error) = header.compression() {
        return corrupt(error.to_string());
    }
    if config.cleanup_policy.compact {
        check_keys(&batch::Batch {
            header: header.clone(),
            bytes: records,
        })?;
    }
    match config.message_timestamp_type {
        TimestampType::CreateTime => {
            check_timestamps(&header, config, options.now_ms)?;
            Ok(Batch::of(records, header))
        }
        TimestampType::LogAppendTime => {
            let whole = batch::Batch {
                header,
                bytes: records,
            };
            let head = batch::stamped_header(&whole, 0, -1, Some(options.now_ms));
            let header =
                BatchHeader::parse(&head).expect("a valid header with another time is valid");
            Ok(Batch::of(records, header))
        }
    }
}

/// Records without a key cannot be compacted. The one check that must look into the batch.
fn check_keys(batch: &batch::Batch<'_>) -> Result<(), LogError> {
    const MAX_UNPACKED_BYTES: usize = 64 << 20;
    let invalid = |why: String| LogError::new(ErrorCode::INVALID_RECORD, why);
    let body = batch
        .body(MAX_UNPACKED_BYTES)
        .map_err(|error| invalid(error.to_string()))?;
    for record in batch.records(&body) {
        if record
            .map_err(|error| invalid(error.to_string()))?
            .key
            .is_none()
        {
            return Err(invalid(
                "a compacted topic takes no record without a key".to_owned(),
            ));
        }
    }
    Ok(())
}

/// The control batch that ends a transaction.
pub(crate) fn marker_batch(marker: &Marker) -> Batch {
    let end = if marker.commit {
        EndTxn::Commit
    } else {
        EndTxn::Abort
    };
    let records = batch::marker_batch(
        end,
        marker.producer_id,
        marker.epoch,
        marker.coordinator_epoch,
        marker.timestamp,
    );
    let header = BatchHeader::parse(&records).expect("a marker that was just built is a batch");
    Batch::of(&records, header)
}

/// What the control batch in `bytes` says; `None` if it ends no transaction.
pub(crate) fn parse_marker(bytes: &[u8]) -> Option<Marker> {
    const MAX_MARKER_BYTES: usize = 4096;
    let whole = batch::Batch::parse(bytes).ok()?;
    let body = whole.body(MAX_MARKER_BYTES).ok()?;
    let record = whole.records(&body).next()?.ok()?;
    let ControlType::EndTxn(end) = batch::control_type(&record).ok()? else {
        return None;
    };
    Some(Marker {
        producer_id: whole.header.producer_id,
        epoch: whole.header.producer_epoch,
        coordinator_epoch: batch::end_txn(&record).ok()?.coordinator_epoch,
        commit: end == EndTxn::Commit,
        timestamp: whole.header.max_timestamp,
    })
}

/// Only what the header says is looked at: the first record's time and the highest.
fn check_timestamps(header: &BatchHeader, config: &LogConfig, now_ms: i64) -> Result<(), LogError> {
    for timestamp in [header.base_timestamp, header.max_timestamp] {
        if timestamp < 0 {
            continue;
        }
        let early = now_ms.saturating_sub(timestamp) > config.message_timestamp_before_max_ms;
        let late = timestamp.saturating_sub(now_ms) > config.message_timestamp_after_max_ms;
        if early || late {
            return Err(LogError::new(
                ErrorCode::INVALID_TIMESTAMP,
                format!(
                    "timestamp {timestamp} is out of range: the broker's time is {now_ms}, message.timestamp.before.max.ms \
                     {} and message.timestamp.after.max.ms {}",
                    config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
                ),
            ));
        }
    }
    Ok(())
}
