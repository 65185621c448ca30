//! What leaves a log: segments by time and size, records by DeleteRecords; and what stays behind for the next opening.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kaas_wire::ErrorCode;

use super::checkpoint::{self, Checkpoint, CheckpointedSegment};
use super::segment::Segment;
use super::{Log, LogError};
use crate::error::StorageError;

impl Log {
    /// DeleteRecords: makes everything below `offset` (-1: the high watermark) unreadable, durably, and answers the new
    /// start of the log. Never goes back.
    pub fn delete_records_before(&self, offset: i64) -> Result<i64, LogError> {
        let _maintenance = self.maintenance.lock();
        let offsets = self.offsets()?;
        let offset = if offset == -1 {
            offsets.high_watermark
        } else {
            offset
        };
        if offset < 0 || offset > offsets.high_watermark {
            return Err(LogError::new(
                ErrorCode::OFFSET_OUT_OF_RANGE,
                format!(
                    "records up to {offset} cannot be deleted: the high watermark is {}",
                    offsets.high_watermark
                ),
            ));
        }
        if offset <= offsets.start {
            return Ok(offsets.start);
        }
        checkpoint::publish_log_start(&self.session, &self.dir, offset)?;
        self.start_moved(offset);
        Ok(offset)
    }

    fn start_moved(&self, start: i64) {
        let mut writer = self.writer.lock();
        writer.producers.log_start_moved(start);
        let mut view = self.view.write();
        view.start = view.start.max(start);
    }

    /// What a timer does for a log every now and then: deletes segments that are past `retention.ms`,
    /// `retention.bytes` or the log's start, compacts, forgets expired producers, lets go of what was not read lately, and leaves
    /// a checkpoint. Says how many segments were deleted. Blocks on the disk.
    pub fn maintain(&self, now_ms: i64) -> Result<usize, LogError> {
        let deleted = self.enforce_retention(now_ms)?;
        self.compact(now_ms)?;
        let config = self.config();
        self.writer
            .lock()
            .producers
            .expire(now_ms, config.producer_id_expiration_ms);
        self.segments_at_rest()
            .iter()
            .for_each(|segment| segment.rest());
        self.checkpoint()?;
        Ok(deleted)
    }

    /// All segments but the one that is written to, or was until its end is durable.
    fn segments_at_rest(&self) -> Vec<Arc<Segment>> {
        let writer = self.writer.lock();
        let view = self.view.read();
        let busy = writer.active.is_some() || writer.durable < writer.end;
        view.segments[..view.segments.len().saturating_sub(usize::from(busy))].to_vec()
    }

    /// Deletes whole segments, oldest first. The last one stays, so that the log keeps its end; if all its records are
    /// too old, an empty one takes its place.
    pub fn enforce_retention(&self, now_ms: i64) -> Result<usize, LogError> {
        let _maintenance = self.maintenance.lock();
        self.load_if_needed()?;
        // A dead segment must go before the ones that make it dead.
        self.retire_dead()?;
        let config = self.config();
        let retention_ms = config.retention_ms.filter(|_| config.cleanup_policy.delete);
        let retention_bytes = config
            .retention_bytes
            .filter(|_| config.cleanup_policy.delete);
        let mut surplus = retention_bytes.map_or(0, |limit| self.size().saturating_sub(limit));
        let mut deleted = 0;
        loop {
            let (first, next_base, start, alone) = {
                let view = self.view.read();
                let Some(first) = view.segments.first().cloned() else {
                    break;
                };
                (
                    first,
                    view.limit_of(0),
                    view.start,
                    view.segments.len() == 1,
                )
            };
            let facts = first.facts(&*self.volume, config.index_interval_bytes, next_base)?;
            // Records without a time are as old as the log's last opening makes them: they stay.
            let too_old = facts.max_timestamp >= 0
                && retention_ms
                    .is_some_and(|limit| now_ms.saturating_sub(facts.max_timestamp) > limit);
            let too_much = !alone && facts.size <= surplus;
            if !(too_old || too_much || next_base <= start) {
                break;
            }
            if alone {
                if !self.replace_last_segment(now_ms)? {
                    break;
                }
                continue;
            }
            surplus = surplus.saturating_sub(facts.size);
            self.drop_first_segment(&first, next_base);
            deleted += 1;
            tracing::info!(
                dir = self.dir,
                segment = %first.name,
                bytes = facts.size,
                too_old,
                too_much,
                "segment deleted"
            );
            self.retire_dead()?;
        }
        Ok(deleted)
    }

    /// Begins an empty segment, so that the one before it may go. `false`: it is empty already.
    fn replace_last_segment(&self, now_ms: i64) -> Result<bool, LogError> {
        let config = self.config();
        let mut writer = self.writer()?;
        let is_empty = self
            .view
            .read()
            .segments
            .last()
            .is_none_or(|last| last.name.base == writer.end);
        if is_empty {
            return Ok(false);
        }
        let begun = self.new_segment(&mut writer, &config, now_ms);
        self.release(writer);
        begun.map(|()| true)
    }

    fn drop_first_segment(&self, first: &Arc<Segment>, next_base: i64) {
        let mut writer = self.writer.lock();
        writer.dead.push(first.path.clone());
        let mut view = self.view.write();
        assert!(
            Arc::ptr_eq(&view.segments[0], first),
            "only maintenance takes segments away, one at a time"
        );
        view.segments.remove(0);
        view.start = view.start.max(next_base);
        writer.producers.log_start_moved(view.start);
    }

    pub(super) fn retire_dead(&self) -> Result<(), LogError> {
        loop {
            let Some(path) = self.writer.lock().dead.first().cloned() else {
                return Ok(());
            };
            self.session.retire(&path)?;
            self.writer.lock().dead.retain(|dead| *dead != path);
        }
    }

    pub(crate) fn wants_checkpoint(&self, after_bytes: u64) -> bool {
        let mut writer = self.writer.lock();
        let wants = writer.bytes_since_checkpoint >= after_bytes;
        if wants {
            writer.bytes_since_checkpoint = 0;
        }
        wants
    }

    /// Publishes what the log knows at its high watermark, if that moved since the last time.
    pub fn checkpoint(&self) -> Result<(), StorageError> {
        let _maintenance = self.maintenance.lock();
        if !self.loaded.load(Ordering::Acquire) {
            return Ok(());
        }
        let (checkpoint, durable) = {
            let mut writer = self.writer.lock();
            let view = self.view.read();
            if view.segments.is_empty() || view.high_watermark == writer.checkpointed {
                return Ok(());
            }
            let last = view.segments.len() - 1;
            let facts_at = |at: usize, segment: &Segment| match writer.pending.front() {
                Some(pending) if at == last => Some(pending.facts_before),
                _ => segment.known_facts(),
            };
            let segments = view
                .segments
                .iter()
                .enumerate()
                .filter_map(|(at, segment)| {
                    Some(CheckpointedSegment {
                        name: segment.name.to_string(),
                        facts: facts_at(at, segment)?,
                    })
                });
            let mut producers = writer.producers.clone();
            let undos = writer
                .pending
                .iter()
                .rev()
                .filter_map(|pending| pending.producer.clone());
            producers.take_back(undos, view.high_watermark);
            let checkpoint = Checkpoint {
                offset: view.high_watermark,
                segments: segments.collect(),
                producers: producers.all(),
                aborted: producers.all_aborted(),
            };
            writer.bytes_since_checkpoint = 0;
            (checkpoint, writer.durable)
        };
        if durable < checkpoint.offset
            && let Some(flush) = self.flush_begin()
            && let Err(error) = self.flush_sync(&flush)
        {
            self.flush_failed(&flush, &error);
            return Err(error);
        }
        checkpoint::publish_checkpoint(&self.session, &self.dir, &checkpoint)?;
        let mut writer = self.writer.lock();
        writer.checkpointed = writer.checkpointed.max(checkpoint.offset);
        Ok(())
    }
}
