//! What the log knows of its producers: the last batches of each idempotent producer, by which a repeat is told from
//! news and a gap from the next in line (KIP-98, KIP-360), and the transactions that are open or were aborted.
//! Pure: everything here can be rebuilt by replaying the log's batches in order.

use std::collections::BTreeMap;

use fnv::FnvHashMap;
use kaas_wire::ErrorCode;
use serde::{Deserialize, Serialize};

use super::LogError;

/// Kafka remembers this many batches per producer; clients keep at most as many in flight.
const REMEMBERED_BATCHES: usize = 5;

/// One producer id, as DescribeProducers shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Producer {
    pub producer_id: i64,
    pub epoch: i16,
    /// The epoch of the transaction coordinator whose marker was last written, -1 if none.
    pub coordinator_epoch: i32,
    pub last_timestamp: i64,
    /// First offset of its open transaction in this partition.
    pub transaction_start: Option<i64>,
    batches: [Remembered; REMEMBERED_BATCHES],
    remembered: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    first_sequence: i32,
    last_sequence: i32,
    first_offset: i64,
    last_offset: i64,
    max_timestamp: i64,
}

/// An aborted transaction as Fetch reports it to read_committed consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
    /// The offset of the abort marker.
    pub last_offset: i64,
}

/// The facts of a batch that concern its producer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProducerBatch {
    pub producer_id: i64,
    pub epoch: i16,
    pub first_sequence: i32,
    pub last_sequence: i32,
    pub last_offset_delta: i32,
    pub transactional: bool,
    pub max_timestamp: i64,
}

/// The end of a transaction, as its marker says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marker {
    pub producer_id: i64,
    pub epoch: i16,
    pub coordinator_epoch: i32,
    pub commit: bool,
    pub timestamp: i64,
}

/// A batch that is in the log already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Duplicate {
    pub first_offset: i64,
    pub last_offset: i64,
    pub max_timestamp: i64,
}

/// What an append changed, so that it can be taken back if the append turns out not to be durable.
#[derive(Clone, Debug)]
pub(crate) struct ProducerUndo {
    producer_id: i64,
    before: Option<Producer>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Producers {
    entries: FnvHashMap<i64, Producer>,
    /// First offset → producer of each open transaction.
    open: BTreeMap<i64, i64>,
    /// Transactions that ended with a marker at or above the high watermark: first offset → marker's offset.
    ending: BTreeMap<i64, i64>,
    /// In the order of their markers.
    aborted: Vec<AbortedTransaction>,
}

impl Producer {
    fn new(producer_id: i64) -> Producer {
        Producer {
            producer_id,
            epoch: -1,
            coordinator_epoch: -1,
            last_timestamp: -1,
            transaction_start: None,
            batches: [Remembered::default(); REMEMBERED_BATCHES],
            remembered: 0,
        }
    }

    /// The sequence number of the last record, -1 if no batch of the current epoch is remembered.
    pub fn last_sequence(&self) -> i32 {
        self.batches()
            .last()
            .map_or(-1, |batch| batch.last_sequence)
    }

    fn batches(&self) -> &[Remembered] {
        &self.batches[..usize::from(self.remembered)]
    }

    fn remember(&mut self, batch: Remembered) {
        if usize::from(self.remembered) == REMEMBERED_BATCHES {
            self.batches.copy_within(1.., 0);
            self.batches[REMEMBERED_BATCHES - 1] = batch;
        } else {
            self.batches[usize::from(self.remembered)] = batch;
            self.remembered += 1;
        }
    }

    fn enter_epoch(&mut self, epoch: i16) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.remembered = 0;
        }
    }
}

impl Producers {
    pub fn restore(entries: Vec<Producer>, aborted: Vec<AbortedTransaction>) -> Producers {
        let mut producers = Producers {
            entries: entries
                .into_iter()
                .map(|entry| (entry.producer_id, entry))
                .collect(),
            aborted,
            ..Producers::default()
        };
        producers.index_open();
        producers
    }

    /// The batch it repeats (TX-87); `None` if it is news that may be appended; an error if it may not (TX-88..91).
    pub fn check(&self, batch: &ProducerBatch) -> Result<Option<Duplicate>, LogError> {
        let Some(known) = self.entries.get(&batch.producer_id) else {
            return Ok(None);
        };
        if batch.epoch == known.epoch {
            let repeated = known.batches().iter().find(|known| {
                known.first_sequence == batch.first_sequence
                    && known.last_sequence == batch.last_sequence
            });
            if let Some(&Remembered {
                first_offset,
                last_offset,
                max_timestamp,
                ..
            }) = repeated
            {
                return Ok(Some(Duplicate {
                    first_offset,
                    last_offset,
                    max_timestamp,
                }));
            }
        }
        if batch.epoch < known.epoch {
            return Err(LogError::new(
                ErrorCode::INVALID_PRODUCER_EPOCH,
                format!(
                    "producer {} is at epoch {}, the batch at {}",
                    known.producer_id, known.epoch, batch.epoch
                ),
            ));
        }
        let expected = if batch.epoch > known.epoch {
            0
        } else {
            match known.batches().last() {
                Some(last) if last.last_sequence == i32::MAX => 0,
                Some(last) => last.last_sequence + 1,
                None => 0,
            }
        };
        // A producer of which no epoch was ever seen may begin anywhere (its records may have been deleted).
        if known.epoch >= 0 && batch.first_sequence != expected {
            return Err(LogError::new(
                ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
                format!(
                    "producer {} epoch {}: expected sequence {expected}, got {}",
                    known.producer_id, batch.epoch, batch.first_sequence
                ),
            ));
        }
        if !batch.transactional && known.transaction_start.is_some() {
            return Err(LogError::new(
                ErrorCode::INVALID_TXN_STATE,
                format!(
                    "producer {} wrote outside its open transaction",
                    known.producer_id
                ),
            ));
        }
        Ok(None)
    }

    /// Takes in a batch that was appended at `first_offset`.
    pub fn append(&mut self, batch: &ProducerBatch, first_offset: i64) -> ProducerUndo {
        let before = self.entries.get(&batch.producer_id).cloned();
        let producer = self
            .entries
            .entry(batch.producer_id)
            .or_insert_with(|| Producer::new(batch.producer_id));
        producer.enter_epoch(batch.epoch);
        producer.last_timestamp = batch.max_timestamp;
        producer.remember(Remembered {
            first_sequence: batch.first_sequence,
            last_sequence: batch.last_sequence,
            first_offset,
            last_offset: first_offset + i64::from(batch.last_offset_delta),
            max_timestamp: batch.max_timestamp,
        });
        if batch.transactional && producer.transaction_start.is_none() {
            producer.transaction_start = Some(first_offset);
            self.open.insert(first_offset, batch.producer_id);
        }
        ProducerUndo {
            producer_id: batch.producer_id,
            before,
        }
    }

    /// TX-96 and TX-97. `strict` is what transaction version 2 asks for.
    pub fn check_marker(&self, marker: &Marker, strict: bool) -> Result<(), LogError> {
        let Some(known) = self.entries.get(&marker.producer_id) else {
            return Ok(());
        };
        let retry = marker.epoch == known.epoch && known.transaction_start.is_none();
        let stale = if strict {
            marker.epoch <= known.epoch && !retry
        } else {
            marker.epoch < known.epoch
        };
        if stale {
            return Err(LogError::new(
                ErrorCode::INVALID_PRODUCER_EPOCH,
                format!(
                    "producer {} is at epoch {}, the marker at {}",
                    known.producer_id, known.epoch, marker.epoch
                ),
            ));
        }
        if marker.coordinator_epoch < known.coordinator_epoch {
            return Err(LogError::new(
                ErrorCode::TRANSACTION_COORDINATOR_FENCED,
                format!(
                    "producer {} was last ended by coordinator epoch {}, the marker is of {}",
                    known.producer_id, known.coordinator_epoch, marker.coordinator_epoch
                ),
            ));
        }
        Ok(())
    }

    /// Takes in a marker that was appended at `offset` (TX-95).
    pub fn end_transaction(&mut self, marker: &Marker, offset: i64) -> ProducerUndo {
        let before = self.entries.get(&marker.producer_id).cloned();
        let producer = self
            .entries
            .entry(marker.producer_id)
            .or_insert_with(|| Producer::new(marker.producer_id));
        producer.enter_epoch(marker.epoch);
        producer.coordinator_epoch = marker.coordinator_epoch;
        producer.last_timestamp = marker.timestamp;
        if let Some(first_offset) = producer.transaction_start.take() {
            self.open.remove(&first_offset);
            self.ending.insert(first_offset, offset);
            if !marker.commit {
                self.aborted.push(AbortedTransaction {
                    producer_id: marker.producer_id,
                    first_offset,
                    last_offset: offset,
                });
            }
        }
        ProducerUndo {
            producer_id: marker.producer_id,
            before,
        }
    }

    /// Takes appends back, the latest first, until nothing at or above `end` is left.
    pub fn take_back(&mut self, undos: impl Iterator<Item = ProducerUndo>, end: i64) {
        for undo in undos {
            match undo.before {
                Some(before) => self.entries.insert(undo.producer_id, before),
                None => self.entries.remove(&undo.producer_id),
            };
        }
        self.aborted.retain(|aborted| aborted.last_offset < end);
        self.ending.retain(|_, marker| *marker < end);
        self.index_open();
    }

    fn index_open(&mut self) {
        let starts = |entry: &Producer| {
            entry
                .transaction_start
                .map(|start| (start, entry.producer_id))
        };
        self.open = self.entries.values().filter_map(starts).collect();
    }

    /// Everything below it belongs to no open transaction (TX-120): the last stable offset is the lower of the two.
    pub fn last_stable_offset(&self, high_watermark: i64) -> i64 {
        let open = self.open.keys().next().copied();
        let ending = self.ending.keys().next().copied();
        [open, ending]
            .into_iter()
            .flatten()
            .fold(high_watermark, i64::min)
    }

    /// Markers below the high watermark are visible: their transactions hold nothing back any more.
    pub fn high_watermark_moved(&mut self, high_watermark: i64) {
        if !self.ending.is_empty() {
            self.ending.retain(|_, marker| *marker >= high_watermark);
        }
    }

    /// Aborted transactions that overlap `from..to`.
    pub fn aborted(&self, from: i64, to: i64) -> Vec<AbortedTransaction> {
        let later = self
            .aborted
            .partition_point(|aborted| aborted.last_offset < from);
        self.aborted[later..]
            .iter()
            .filter(|aborted| aborted.first_offset < to)
            .copied()
            .collect()
    }

    pub fn log_start_moved(&mut self, start: i64) {
        let gone = self
            .aborted
            .partition_point(|aborted| aborted.last_offset < start);
        self.aborted.drain(..gone);
    }

    /// Forgets producers that wrote nothing for `expiration_ms`, unless a transaction of theirs is open (TX-85).
    pub fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.entries.retain(|_, producer| {
            producer.transaction_start.is_some()
                || now_ms.saturating_sub(producer.last_timestamp) < expiration_ms
        });
    }

    pub fn all(&self) -> Vec<Producer> {
        let mut all: Vec<Producer> = self.entries.values().cloned().collect();
        all.sort_by_key(|producer| producer.producer_id);
        all
    }

    pub fn all_aborted(&self) -> Vec<AbortedTransaction> {
        self.aborted.clone()
    }
}
