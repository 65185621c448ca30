//! `cleanup.policy=compact`: of each key only the latest record stays, under its old offset.
//!
//! Segments are rewritten one by one, never merged: the new file is made in the session's directory and published as
//! the next revision, `<base>.<epoch>.<revision>.log`, which takes the place of the older ones. The last segment is
//! left alone, and so is what lies above the last stable offset. Kafka's rules (KIP-58, KIP-534) with two differences:
//! records of aborted transactions stay until retention takes them, and so do transaction markers.

use std::collections::HashMap;
use std::sync::Arc;

use kaas_wire::batch::{Batch, BatchBuilder, BatchHeader, Record};

use super::segment::{Scanner, Segment, SegmentName};
use super::{AbortedTransaction, Log, LogConfig, LogError};
use crate::error::StorageError;
use crate::volume::VolumeFile;

/// Keys, with their latest offsets, that one pass may hold in memory; what is left over waits for the next pass.
const MAX_KEY_BYTES: usize = 64 << 20;
/// What a key costs besides its bytes.
const KEY_OVERHEAD: usize = 48;
/// A batch that unpacks to more is left as it is.
const MAX_UNPACKED_BYTES: usize = 64 << 20;
const WRITE_BYTES: usize = 1 << 20;

/// A segment and the base of the next one.
type Place = (Arc<Segment>, i64);

#[derive(Default)]
struct LatestOffsets {
    by_key: HashMap<Box<[u8]>, i64>,
    bytes: usize,
}

impl LatestOffsets {
    /// `false`: there is no room for another key.
    fn note(&mut self, key: &[u8], offset: i64) -> bool {
        if let Some(latest) = self.by_key.get_mut(key) {
            *latest = offset.max(*latest);
            return true;
        }
        self.bytes += key.len() + KEY_OVERHEAD;
        if self.bytes > MAX_KEY_BYTES {
            return false;
        }
        self.by_key.insert(key.into(), offset);
        true
    }

    fn is_latest(&self, key: &[u8], offset: i64) -> bool {
        self.by_key.get(key).is_none_or(|latest| offset >= *latest)
    }
}

impl Log {
    /// Rewrites what holds superseded records, if `cleanup.policy` says so and enough is dirty. Says how many segments
    /// were rewritten. Blocks for as long as reading and writing them takes.
    pub fn compact(&self, now_ms: i64) -> Result<usize, LogError> {
        let config = self.config();
        if !config.cleanup_policy.compact {
            return Ok(0);
        }
        // What producers did must not be looked for in records that are about to go.
        self.checkpoint()?;
        let _maintenance = self.maintenance.lock();
        self.load_if_needed()?;
        self.retire_dead()?;
        let (places, aborted) = self.compactable(&config, now_ms)?;
        let size = |dirty: bool| -> u64 {
            let wanted = places
                .iter()
                .filter(|(segment, _)| (segment.name.revision == 0) == dirty);
            wanted.map(|(segment, _)| segment.size()).sum()
        };
        let (dirty, clean) = (size(true), size(false));
        if dirty == 0 || (dirty as f64) < config.min_cleanable_dirty_ratio * (dirty + clean) as f64
        {
            return Ok(0);
        }
        let mut latest = LatestOffsets::default();
        let mut mapped = 0;
        for place in &places {
            let is_dirty = place.0.name.revision == 0;
            // The keys of a clean segment are each the latest up to there.
            let there_is_room = !is_dirty || self.map_segment(place, &aborted, &mut latest)?;
            let first_dirty = is_dirty
                && places[..mapped]
                    .iter()
                    .all(|(clean, _)| clean.name.revision > 0);
            if !there_is_room && !first_dirty {
                break;
            }
            mapped += 1;
            if !there_is_room {
                // Some of its records stay that need not; a pass must get somewhere.
                break;
            }
        }
        for place in &places[..mapped] {
            self.rewrite(place, &latest, &config, now_ms)?;
        }
        self.writer.lock().checkpointed = -1;
        self.retire_dead()?;
        tracing::info!(
            dir = self.dir,
            segments = mapped,
            dirty,
            clean,
            keys = latest.by_key.len(),
            "log compacted"
        );
        Ok(mapped)
    }

    /// All but the last segment, up to the first that is too young or not stable yet.
    fn compactable(
        &self,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<(Vec<Place>, Vec<AbortedTransaction>), LogError> {
        let (places, last_stable): (Vec<Place>, i64) = {
            let view = self.view.read();
            let pairs = view.segments.windows(2);
            (
                pairs
                    .map(|pair| (pair[0].clone(), pair[1].name.base))
                    .collect(),
                view.last_stable,
            )
        };
        let mut compactable = Vec::new();
        for (segment, next_base) in places {
            let facts = segment.facts(&*self.volume, config.index_interval_bytes, next_base)?;
            let too_young = config.min_compaction_lag_ms > 0
                && now_ms.saturating_sub(facts.max_timestamp) < config.min_compaction_lag_ms;
            if next_base > last_stable || too_young {
                break;
            }
            compactable.push((segment, next_base));
        }
        let aborted = self.writer.lock().producers.all_aborted();
        Ok((compactable, aborted))
    }

    /// Notes the latest offset of each key. `false`: there were too many.
    fn map_segment(
        &self,
        (segment, next_base): &Place,
        aborted: &[AbortedTransaction],
        latest: &mut LatestOffsets,
    ) -> Result<bool, StorageError> {
        let mut there_was_room = true;
        self.each_batch(segment, *next_base, |batch| {
            if batch.header.is_control() || is_aborted(&batch.header, aborted) {
                return Ok(());
            }
            let Ok(body) = batch.body(MAX_UNPACKED_BYTES) else {
                return Ok(());
            };
            for record in batch.records(&body).map_while(Result::ok) {
                if let Some(key) = record.key {
                    there_was_room = there_was_room && latest.note(key, record.offset);
                }
            }
            Ok(())
        })?;
        Ok(there_was_room)
    }

    /// Publishes what is left of a segment as its next revision.
    fn rewrite(
        &self,
        (segment, next_base): &Place,
        latest: &LatestOffsets,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let name = SegmentName {
            revision: segment.name.revision + 1,
            ..segment.name
        };
        // A tombstone outlives its first compaction by `delete.retention.ms`, so that a consumer that began before sees it.
        let tombstones_before = if segment.name.revision == 0 {
            i64::MIN
        } else {
            now_ms.saturating_sub(config.delete_retention_ms)
        };
        let stays = |record: &Record<'_>| match record.key {
            Some(key) => {
                latest.is_latest(key, record.offset)
                    && (record.value.is_some() || record.timestamp >= tombstones_before)
            }
            None => false,
        };
        let (draft, file) = self.session.create_in("log")?;
        let written = self
            .write_remainder(segment, *next_base, &*file, stays)
            .and_then(|size| {
                let synced = file.sync();
                synced
                    .map_err(|error| self.session.own_file_failed("sync", &draft, error))
                    .map(|()| size)
            });
        let size = match written {
            Ok(size) => size,
            Err(error) => {
                // Only room is at stake: what stays goes to the trash with the session.
                let _ = self.volume.remove_file(&draft);
                return Err(error);
            }
        };
        let path = format!("{}/{name}", self.dir);
        self.session.publish_file(&draft, &path)?;
        let rewritten = Arc::new(Segment::listed(&self.dir, name, size));
        // Who holds the old one goes on reading it.
        segment.file(&*self.volume)?;
        let mut writer = self.writer.lock();
        let mut view = self.view.write();
        let at = view
            .segments
            .iter()
            .position(|other| Arc::ptr_eq(other, segment));
        view.segments[at.expect("only maintenance takes segments away, one at a time")] = rewritten;
        writer.dead.push(segment.path.clone());
        Ok(())
    }

    fn write_remainder(
        &self,
        segment: &Segment,
        next_base: i64,
        file: &dyn VolumeFile,
        stays: impl Fn(&Record<'_>) -> bool,
    ) -> Result<u64, StorageError> {
        let mut buffer = Vec::with_capacity(WRITE_BYTES);
        let mut size = 0;
        let mut write = |buffer: &mut Vec<u8>| {
            let written = file.write_at(buffer, size);
            size += buffer.len() as u64;
            buffer.clear();
            written.map_err(|error| {
                self.session
                    .own_file_failed("compact", &segment.path, error)
            })
        };
        self.each_batch(segment, next_base, |batch| {
            match remainder(batch, &stays) {
                Remainder::All => buffer.extend_from_slice(batch.bytes),
                Remainder::Some(bytes) => buffer.extend_from_slice(&bytes),
                Remainder::Nothing => {}
            }
            if buffer.len() >= WRITE_BYTES {
                write(&mut buffer)
            } else {
                Ok(())
            }
        })?;
        write(&mut buffer)?;
        Ok(size)
    }

    fn each_batch(
        &self,
        segment: &Segment,
        next_base: i64,
        mut visit: impl FnMut(&Batch<'_>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let facts = segment.facts(&*self.volume, self.config().index_interval_bytes, next_base)?;
        let file = segment.file(&*self.volume)?;
        let mut scanner = Scanner::new(&*file, facts.size);
        let mut position = 0;
        loop {
            let read = scanner.checked_batch(position);
            let read = read.map_err(|error| StorageError::from_io("read", &segment.path, error))?;
            let Some((header, bytes)) = read else {
                break;
            };
            position += header.total_len() as u64;
            visit(&Batch { header, bytes })?;
        }
        if position < facts.size {
            return Err(StorageError::Corrupt {
                path: segment.path.clone(),
                why: format!("the batch at byte {position} is damaged"),
                remedy: "the log is not compacted; restore the file, or delete the records up to the next segment".to_owned(),
            });
        }
        Ok(())
    }
}

fn is_aborted(header: &BatchHeader, aborted: &[AbortedTransaction]) -> bool {
    header.is_transactional()
        && aborted.iter().any(|aborted| {
            aborted.producer_id == header.producer_id
                && (aborted.first_offset..aborted.last_offset).contains(&header.base_offset)
        })
}

enum Remainder {
    All,
    Some(bytes::Bytes),
    Nothing,
}

fn remainder(batch: &Batch<'_>, stays: impl Fn(&Record<'_>) -> bool) -> Remainder {
    let header = &batch.header;
    if header.is_control() {
        return Remainder::All;
    }
    let (Ok(compression), Ok(body)) = (header.compression(), batch.body(MAX_UNPACKED_BYTES)) else {
        return Remainder::All;
    };
    let Ok(records) = batch.records(&body).collect::<Result<Vec<Record<'_>>, _>>() else {
        return Remainder::All;
    };
    let kept: Vec<&Record<'_>> = records.iter().filter(|record| stays(record)).collect();
    if kept.len() == records.len() {
        return Remainder::All;
    }
    if kept.is_empty() {
        return Remainder::Nothing;
    }
    let mut builder = BatchBuilder::remainder_of(header, compression);
    for record in kept {
        builder.append(record);
    }
    Remainder::Some(builder.build())
}
