//! Makes batches: for markers, for compaction, and for tools and tests.

use bytes::Bytes;

use super::record;
use super::{
    ATTRIBUTES_AT, BatchHeader, CONTROL, Compression, DELETE_HORIZON, HEADER_LEN, LENGTH_OVERHEAD,
    MAGIC, Record, TRANSACTIONAL, TimestampType,
};

/// A batch in the making. Unless told otherwise: no compression, create time, no producer, leader epoch -1.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    header: BatchHeader,
    compression: Compression,
    append_time: Option<i64>,
    records: Vec<u8>,
}

impl BatchBuilder {
    pub fn new(base_offset: i64) -> BatchBuilder {
        BatchBuilder {
            header: BatchHeader {
                base_offset,
                batch_length: 0,
                partition_leader_epoch: -1,
                magic: MAGIC,
                crc: 0,
                attributes: 0,
                last_offset_delta: -1,
                base_timestamp: -1,
                max_timestamp: -1,
                producer_id: -1,
                producer_epoch: -1,
                base_sequence: -1,
                record_count: 0,
            },
            compression: Compression::None,
            append_time: None,
            records: Vec::new(),
        }
    }

    /// A batch for some of the records of another, as compaction leaves it: it spans the same offsets, and what it says
    /// of producer, transaction and leader stays.
    pub fn remainder_of(header: &BatchHeader, compression: Compression) -> BatchBuilder {
        let append_time = match header.timestamp_type() {
            TimestampType::CreateTime => None,
            TimestampType::LogAppendTime => Some(header.max_timestamp),
        };
        BatchBuilder {
            header: BatchHeader {
                record_count: 0,
                ..header.clone()
            },
            compression,
            append_time,
            records: Vec::new(),
        }
    }

    pub fn compression(mut self, compression: Compression) -> BatchBuilder {
        self.compression = compression;
        self
    }

    /// `base_sequence` is -1 for records that are not numbered, as in control batches.
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> BatchBuilder {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self
    }

    pub fn transactional(mut self) -> BatchBuilder {
        self.header.attributes |= TRANSACTIONAL;
        self
    }

    pub fn control(mut self) -> BatchBuilder {
        self.header.attributes |= CONTROL;
        self
    }

    pub fn partition_leader_epoch(mut self, leader_epoch: i32) -> BatchBuilder {
        self.header.partition_leader_epoch = leader_epoch;
        self
    }

    /// Every record has this timestamp.
    pub fn log_append_time(mut self, append_time: i64) -> BatchBuilder {
        self.append_time = Some(append_time);
        self
    }

    /// When compaction may drop the tombstones of the batch. To be set before the first record.
    pub fn delete_horizon_ms(mut self, horizon: i64) -> BatchBuilder {
        assert!(
            self.header.record_count == 0,
            "timestamps are relative to the delete horizon"
        );
        self.header.attributes |= DELETE_HORIZON;
        self.header.base_timestamp = horizon;
        self
    }

    /// Adds a record without headers at the next offset.
    pub fn record(
        mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> BatchBuilder {
        let offset = self.header.last_offset() + 1;
        self.append(&Record {
            offset,
            timestamp,
            key,
            value,
            headers: Vec::new(),
        });
        self
    }

    /// Adds a record at its offset: at or above the base, above that of the record before.
    pub fn append(&mut self, record: &Record<'_>) {
        let delta = record.offset - self.header.base_offset;
        assert!(
            (0..=i64::from(i32::MAX)).contains(&delta),
            "a batch spans 2^31 offsets at most"
        );
        let header = &mut self.header;
        let first = header.record_count == 0;
        // Where a delete horizon stands in the place of the base, the deltas refer to that.
        if first && header.attributes & DELETE_HORIZON == 0 {
            header.base_timestamp = record.timestamp;
        }
        header.max_timestamp = if first {
            record.timestamp
        } else {
            header.max_timestamp.max(record.timestamp)
        };
        header.last_offset_delta = header.last_offset_delta.max(delta as i32);
        header.record_count += 1;
        record::encode(
            &mut self.records,
            record,
            header.base_offset,
            header.base_timestamp,
        );
    }

    /// Bytes of the records before compression.
    pub fn body_len(&self) -> usize {
        self.records.len()
    }

    pub fn build(mut self) -> Bytes {
        let header = &mut self.header;
        if let Some(append_time) = self.append_time {
            header.set_timestamps(TimestampType::LogAppendTime, append_time);
        }
        let codec = if self.records.is_empty() {
            Compression::None
        } else {
            self.compression
        };
        let records = match codec {
            Compression::None => self.records,
            codec => codec.compress(&self.records),
        };
        header.attributes = header.attributes & !super::COMPRESSION_MASK | codec.id();
        header.batch_length = i32::try_from(HEADER_LEN - LENGTH_OVERHEAD + records.len())
            .expect("a batch is smaller than 2 GiB");
        let crc = crc32c::crc32c(&header.to_bytes()[ATTRIBUTES_AT..]);
        header.crc = crc32c::crc32c_append(crc, &records);
        let mut batch = Vec::with_capacity(header.total_len());
        batch.extend_from_slice(&header.to_bytes());
        batch.extend_from_slice(&records);
        Bytes::from(batch)
    }
}
