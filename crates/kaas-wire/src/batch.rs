//! Record batches in format 2: the header, the fields a broker assigns, and the way to the records.
//!
//! ```text
//!  0 base offset      i64    17 crc-32c           u32    43 producer id    i64
//!  8 batch length     i32    21 attributes        i16    51 producer epoch i16
//! 12 leader epoch     i32    23 last offset delta i32    53 base sequence  i32
//! 16 magic            i8     27 base timestamp    i64    57 record count   i32
//!                            35 max timestamp     i64    61 records
//! ```
//!
//! The batch length counts from the leader epoch on, the crc covers everything from the attributes on. So a broker
//! assigns offset and leader epoch without touching the crc. The older formats 0 and 1 are refused.

mod builder;
mod compression;
mod control;
mod record;

use std::borrow::Cow;

pub use builder::BatchBuilder;
pub use compression::Compression;
pub use control::{ControlType, EndTxn, control_type, end_txn, marker_batch};
pub use record::{Record, RecordHeader, RecordIter};

/// Bytes in front of the records.
pub const HEADER_LEN: usize = 61;

/// The only format that is understood.
pub const MAGIC: i8 = 2;

/// Bytes in front of what the batch length counts.
const LENGTH_OVERHEAD: usize = 12;

const LEADER_EPOCH_AT: usize = 12;
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const MAX_TIMESTAMP_AT: usize = 35;

const COMPRESSION_MASK: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 0x08;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
const DELETE_HORIZON: i16 = 0x40;

/// Why bytes are not a record batch, or not one that may be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The bytes end inside the batch: at the end of a log or of a fetch that is no fault.
    #[error("record batch needs {needed} bytes, {have} are there")]
    Truncated { needed: usize, have: usize },
    #[error("record batch cannot have length {0}")]
    InvalidLength(i32),
    #[error("record batch has magic {0}, only {MAGIC} is understood")]
    UnsupportedMagic(i8),
    #[error("record batch has crc {stored:#010x}, its bytes give {computed:#010x}")]
    Corrupt { stored: u32, computed: u32 },
    #[error("record batch has the unknown compression codec {0}")]
    UnknownCompression(i16),
    #[error("records do not decompress as {codec}: {reason}")]
    Undecompressable { codec: Compression, reason: String },
    #[error("records take more than {limit} bytes when decompressed")]
    TooLarge { limit: usize },
    #[error("record {index} of the batch {reason}")]
    InvalidRecord { index: usize, reason: &'static str },
}

/// Who sets the timestamps of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

/// The header of a batch. Times are milliseconds since the epoch; ids are -1 when there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: i64,
    pub batch_length: i32,
    pub partition_leader_epoch: i32,
    pub magic: i8,
    pub crc: u32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`. The records need not be there; neither they nor the crc are looked at.
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        // The magic decides what the other bytes mean, so an old batch shorter than a header is still named as such.
        if let Some(&magic) = bytes.get(16)
            && magic as i8 != MAGIC
        {
            return Err(BatchError::UnsupportedMagic(magic as i8));
        }
        let Some((header, _)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(BatchError::Truncated {
                needed: HEADER_LEN,
                have: bytes.len(),
            });
        };
        let header = BatchHeader {
            base_offset: i64::from_be_bytes(at(header, 0)),
            batch_length: i32::from_be_bytes(at(header, 8)),
            partition_leader_epoch: i32::from_be_bytes(at(header, LEADER_EPOCH_AT)),
            magic: header[16] as i8,
            crc: u32::from_be_bytes(at(header, CRC_AT)),
            attributes: i16::from_be_bytes(at(header, ATTRIBUTES_AT)),
            last_offset_delta: i32::from_be_bytes(at(header, 23)),
            base_timestamp: i64::from_be_bytes(at(header, 27)),
            max_timestamp: i64::from_be_bytes(at(header, MAX_TIMESTAMP_AT)),
            producer_id: i64::from_be_bytes(at(header, 43)),
            producer_epoch: i16::from_be_bytes(at(header, 51)),
            base_sequence: i32::from_be_bytes(at(header, 53)),
            record_count: i32::from_be_bytes(at(header, 57)),
        };
        if header.batch_length < (HEADER_LEN - LENGTH_OVERHEAD) as i32 {
            return Err(BatchError::InvalidLength(header.batch_length));
        }
        Ok(header)
    }

    /// The bytes of this header.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0..8].copy_from_slice(&self.base_offset.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.batch_length.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.partition_leader_epoch.to_be_bytes());
        bytes[16] = self.magic as u8;
        bytes[17..21].copy_from_slice(&self.crc.to_be_bytes());
        bytes[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        bytes[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        bytes[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        bytes[35..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        bytes[43..51].copy_from_slice(&self.producer_id.to_be_bytes());
        bytes[51..53].copy_from_slice(&self.producer_epoch.to_be_bytes());
        bytes[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        bytes[57..61].copy_from_slice(&self.record_count.to_be_bytes());
        bytes
    }

    /// Bytes of the whole batch.
    pub fn total_len(&self) -> usize {
        LENGTH_OVERHEAD + self.batch_length as usize
    }

    pub fn last_offset(&self) -> i64 {
        self.base_offset
            .wrapping_add(i64::from(self.last_offset_delta))
    }

    /// The sequence number of the last record, which wraps to 0 behind `i32::MAX`; -1 without sequence numbers.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        (last & i64::from(i32::MAX)) as i32
    }

    pub fn compression(&self) -> Result<Compression, BatchError> {
        Compression::from_id(self.attributes & COMPRESSION_MASK)
    }

    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether the batch holds markers for the log itself, not records for consumers.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    pub fn has_producer_id(&self) -> bool {
        self.producer_id >= 0
    }

    /// When compaction may drop the tombstones of the batch: it takes the place of the base timestamp.
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    fn set_timestamps(&mut self, timestamp_type: TimestampType, max_timestamp: i64) {
        match timestamp_type {
            TimestampType::CreateTime => self.attributes &= !LOG_APPEND_TIME,
            TimestampType::LogAppendTime => self.attributes |= LOG_APPEND_TIME,
        }
        self.max_timestamp = max_timestamp;
    }
}

/// `N` bytes of a header.
fn at<const N: usize>(header: &[u8; HEADER_LEN], position: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[position..position + N]);
    bytes
}

/// One whole batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    pub header: BatchHeader,
    /// The header's bytes and the records.
    pub bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// The batch at the start of `bytes`. The crc is not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Batch<'a>, BatchError> {
        let header = BatchHeader::parse(bytes)?;
        match bytes.get(..header.total_len()) {
            Some(bytes) => Ok(Batch { header, bytes }),
            None => Err(BatchError::Truncated {
                needed: header.total_len(),
                have: bytes.len(),
            }),
        }
    }

    pub fn verify_crc(&self) -> Result<(), BatchError> {
        let computed = crc32c::crc32c(&self.bytes[ATTRIBUTES_AT..]);
        if computed == self.header.crc {
            Ok(())
        } else {
            Err(BatchError::Corrupt {
                stored: self.header.crc,
                computed,
            })
        }
    }

    /// The bytes of the records, decompressed if need be. More than `limit` is an error.
    pub fn body(&self, limit: usize) -> Result<Cow<'a, [u8]>, BatchError> {
        let body = &self.bytes[HEADER_LEN..];
        match self.header.compression()? {
            Compression::None if body.len() > limit => Err(BatchError::TooLarge { limit }),
            Compression::None => Ok(Cow::Borrowed(body)),
            codec => codec.decompress(body, limit).map(Cow::Owned),
        }
    }

    /// The records in `body`, which is what [`body`](Batch::body) gave.
    pub fn records<'b>(&self, body: &'b [u8]) -> RecordIter<'b> {
        RecordIter::new(&self.header, body)
    }
}

/// Checks the crc of the batch at the start of `bytes`.
pub fn verify_crc(bytes: &[u8]) -> Result<(), BatchError> {
    Batch::parse(bytes)?.verify_crc()
}

/// The batches that lie one behind the other in `bytes`. An error is the last item.
pub fn batches(bytes: &[u8]) -> Batches<'_> {
    Batches { rest: bytes }
}

/// See [`batches`].
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let batch = Batch::parse(self.rest);
        self.rest = match &batch {
            Ok(batch) => &self.rest[batch.bytes.len()..],
            Err(_) => &[],
        };
        Some(batch)
    }
}

/// Sets the offset of the first record. `batch` holds at least the header.
pub fn set_base_offset(batch: &mut [u8], base_offset: i64) {
    batch[..8].copy_from_slice(&base_offset.to_be_bytes());
}

/// Sets the leader epoch. `batch` holds at least the header.
pub fn set_partition_leader_epoch(batch: &mut [u8], leader_epoch: i32) {
    batch[LEADER_EPOCH_AT..LEADER_EPOCH_AT + 4].copy_from_slice(&leader_epoch.to_be_bytes());
}

/// Sets timestamp type and greatest timestamp, and the crc with them. `batch` is one whole batch.
///
/// With [`TimestampType::LogAppendTime`] the greatest timestamp is that of every record.
pub fn set_timestamps(
    batch: &mut [u8],
    timestamp_type: TimestampType,
    max_timestamp: i64,
) -> Result<(), BatchError> {
    let Batch { mut header, bytes } = Batch::parse(batch)?;
    let total_len = bytes.len();
    header.set_timestamps(timestamp_type, max_timestamp);
    batch[..HEADER_LEN].copy_from_slice(&header.to_bytes());
    let crc = crc32c::crc32c(&batch[ATTRIBUTES_AT..total_len]);
    batch[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    Ok(())
}

/// The header a broker stores in front of the records of `batch`, for one who must not touch or copy the batch.
/// `append_time` replaces the timestamps.
pub fn stamped_header(
    batch: &Batch<'_>,
    base_offset: i64,
    leader_epoch: i32,
    append_time: Option<i64>,
) -> [u8; HEADER_LEN] {
    let mut header = batch.header.clone();
    header.base_offset = base_offset;
    header.partition_leader_epoch = leader_epoch;
    if let Some(append_time) = append_time {
        header.set_timestamps(TimestampType::LogAppendTime, append_time);
        let crc = crc32c::crc32c(&header.to_bytes()[ATTRIBUTES_AT..]);
        header.crc = crc32c::crc32c_append(crc, &batch.bytes[HEADER_LEN..]);
    }
    header.to_bytes()
}

#[cfg(test)]
mod tests;
