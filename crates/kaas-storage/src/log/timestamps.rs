//! Looking records up by time (ListOffsets): to the batch by the index, to the record by decompressing that batch.

use std::sync::Arc;

use kaas_wire::batch::{Batch, BatchHeader};

use super::segment::{Facts, Segment};
use super::{Holding, Isolation, Log, LogError, Place};
use crate::error::StorageError;

/// A batch may unpack to this much; one that does not is answered by its base offset.
const MAX_UNPACKED_BYTES: usize = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampedOffset {
    pub offset: i64,
    pub timestamp_ms: i64,
    pub leader_epoch: i32,
}

impl Log {
    /// The first visible record with a timestamp at or above `timestamp_ms`.
    pub fn offset_for_timestamp(
        &self,
        timestamp_ms: i64,
        isolation: Isolation,
    ) -> Result<Option<TimestampedOffset>, LogError> {
        let (start, limit) = self.visible(isolation)?;
        let interval = self.config().index_interval_bytes;
        let mut look_from = start;
        while look_from < limit {
            let Holding {
                segment: Some(segment),
                place: Place { next_base, .. },
                ..
            } = self.holding(look_from)
            else {
                break;
            };
            let facts = segment.facts(&*self.volume, interval, next_base)?;
            let mut from = start;
            while facts.max_timestamp >= timestamp_ms && from < facts.end_offset {
                segment.build_index(&*self.volume, interval, next_base)?;
                let file = segment.file(&*self.volume)?;
                let Some(bytes) =
                    segment.batch_at_timestamp(&*file, timestamp_ms, from, limit.min(next_base))?
                else {
                    break;
                };
                let wanted =
                    |it: &TimestampedOffset| it.timestamp_ms >= timestamp_ms && it.offset >= start;
                if let Some(found) = first_record(&segment, &bytes, wanted)? {
                    return Ok(Some(found));
                }
                // The header promised more than the records hold.
                from = BatchHeader::parse(&bytes)
                    .map_err(|error| damaged(&segment.path, &error.to_string()))?
                    .last_offset()
                    + 1;
            }
            look_from = next_base;
        }
        Ok(None)
    }

    /// The first visible record with the highest timestamp (ListOffsets -3). With read_committed nothing is found if
    /// that record is not stable yet.
    pub fn max_timestamp_offset(
        &self,
        isolation: Isolation,
    ) -> Result<Option<TimestampedOffset>, LogError> {
        let (start, limit) = self.visible(isolation)?;
        let interval = self.config().index_interval_bytes;
        let mut highest = None;
        let mut look_from = start;
        while look_from < limit {
            let Holding {
                segment: Some(segment),
                place: Place { next_base, .. },
                ..
            } = self.holding(look_from)
            else {
                break;
            };
            let facts = match self.facts_at_high_watermark(&segment) {
                Some(facts) => facts,
                None => segment.facts(&*self.volume, interval, next_base)?,
            };
            let beats = highest
                .as_ref()
                .is_none_or(|(_, highest, _)| facts.max_timestamp > *highest);
            if facts.max_timestamp >= 0 && beats {
                highest = Some((
                    facts.max_timestamp_base,
                    facts.max_timestamp,
                    (segment, next_base),
                ));
            }
            look_from = next_base;
        }
        let Some((base_offset, highest, (segment, next_base))) = highest else {
            return Ok(None);
        };
        if base_offset >= limit {
            return Ok(None);
        }
        segment.build_index(&*self.volume, interval, next_base)?;
        let file = segment.file(&*self.volume)?;
        let Some(bytes) = segment.batch_at_offset(&*file, base_offset)? else {
            return Ok(None);
        };
        Ok(first_record(&segment, &bytes, |it| {
            it.timestamp_ms >= highest && it.offset >= start
        })?)
    }

    /// What the last segment held when the high watermark was its end, if more was appended since.
    fn facts_at_high_watermark(&self, segment: &Arc<Segment>) -> Option<Facts> {
        let writer = self.writer.lock();
        let is_last = self
            .view
            .read()
            .segments
            .last()
            .is_some_and(|last| Arc::ptr_eq(last, segment));
        writer
            .pending
            .front()
            .filter(|_| is_last)
            .map(|pending| pending.facts_before)
    }

    fn visible(&self, isolation: Isolation) -> Result<(i64, i64), LogError> {
        let offsets = self.offsets()?;
        Ok(match isolation {
            Isolation::ReadUncommitted => (offsets.start, offsets.high_watermark),
            Isolation::ReadCommitted => (offsets.start, offsets.last_stable),
        })
    }
}

/// The first record of the batch in `bytes` that is wanted. A batch that cannot be unpacked stands for its records.
fn first_record(
    segment: &Segment,
    bytes: &[u8],
    wanted: impl Fn(&TimestampedOffset) -> bool,
) -> Result<Option<TimestampedOffset>, StorageError> {
    let leader_epoch = segment.name.epoch;
    let batch = Batch::parse(bytes).map_err(|error| damaged(&segment.path, &error.to_string()))?;
    let as_a_whole = TimestampedOffset {
        offset: batch.header.base_offset,
        timestamp_ms: batch.header.max_timestamp,
        leader_epoch,
    };
    let body = match batch.body(MAX_UNPACKED_BYTES) {
        Ok(body) => body,
        Err(error) => {
            tracing::warn!(segment = segment.path, offset = as_a_whole.offset, %error, "a batch cannot be unpacked");
            return Ok(Some(as_a_whole));
        }
    };
    for record in batch.records(&body) {
        let found = match record {
            Ok(record) => TimestampedOffset {
                offset: record.offset,
                timestamp_ms: record.timestamp,
                leader_epoch,
            },
            Err(_) => as_a_whole,
        };
        if wanted(&found) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn damaged(path: &str, why: &str) -> StorageError {
    StorageError::Corrupt {
        path: path.to_owned(),
        why: why.to_owned(),
        remedy: "delete the records up to it to get past it".to_owned(),
    }
}
