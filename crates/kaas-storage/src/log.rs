//! The partition log: record batches as the producers made them, in segments `<base offset>.<leader epoch>.log` that
//! only the session that created them ever writes.
//!
//! Three invariants carry recovery. A segment is published only when everything below its base is durable, so only
//! the last one can be torn. Whatever a segment holds at or above the next one's base is dead. The high watermark moves
//! only over what is durable (with `flush.messages` above 1: over what is appended), and nothing above it was ever shown
//! or acknowledged, so it can be taken back when a sync fails.
//!
//! Opening a log lists its directory. It is read (from its checkpoint on) when it is first used. Blocking: every method
//! may touch the disk, `append` and `read` only the page cache in the common case. Time is an argument.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kaas_wire::ErrorCode;
use kaas_wire::batch::{self, BatchHeader};
use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::error::StorageError;
use crate::session::Session;
use crate::volume::{Volume, VolumeFile};

mod checkpoint;
mod compaction;
pub mod config;
pub mod flusher;
mod producers;
mod retention;
mod segment;
mod timestamps;
mod validate;

pub use config::{CleanupPolicy, LogConfig, TimestampType};
pub use flusher::Flusher;
pub use producers::{AbortedTransaction, Producer};
pub use timestamps::TimestampedOffset;

use checkpoint::Checkpoint;
use producers::{Marker, ProducerUndo, Producers};
use segment::{Facts, Segment, SegmentName};
use validate::Batch;

/// Why the log refuses, as the client is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LogError {
    pub code: ErrorCode,
    pub message: String,
}

impl LogError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> LogError {
        LogError {
            code,
            message: message.into(),
        }
    }

    fn closed() -> LogError {
        LogError::new(ErrorCode::NOT_LEADER_OR_FOLLOWER, "the log is closed")
    }
}

impl From<StorageError> for LogError {
    fn from(error: StorageError) -> LogError {
        let code = if error.is_fenced() {
            ErrorCode::NOT_LEADER_OR_FOLLOWER
        } else {
            ErrorCode::KAFKA_STORAGE_ERROR
        };
        LogError {
            code,
            message: error.to_string(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct AppendOptions {
    /// Wall clock.
    pub now_ms: i64,
    /// Whether the request's version may carry zstd (Produce 7 and up).
    pub zstd: bool,
}

/// A batch that lies in the log. It is durable, and visible, only when the flusher says so for `flush_point`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: i64,
    pub last_offset: i64,
    /// With LogAppendTime, the batch's time; of a duplicate, the time of the batch it repeats; otherwise -1.
    pub log_append_time_ms: i64,
    pub log_start_offset: i64,
    /// The batch was in the log already (KIP-98): answer success with these offsets.
    pub duplicate: bool,
    pub flush_point: FlushPoint,
    /// `flush.messages` asks for a flush.
    pub flush_is_due: bool,
}

/// What must be durable for an append to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushPoint {
    /// One above the last offset.
    end_offset: i64,
    /// How often the log had been cut when it was appended.
    cuts: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
}

#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    pub max_bytes: usize,
    /// Give the first batch even if it alone is over `max_bytes`.
    pub at_least_one_batch: bool,
    pub isolation: Isolation,
}

/// The offsets of a log at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offsets {
    pub start: i64,
    pub last_stable: i64,
    pub high_watermark: i64,
    /// One above the last appended offset.
    pub end: i64,
}

pub struct Read {
    pub offsets: Offsets,
    /// `None`: nothing to read at that offset yet.
    pub slice: Option<Slice>,
}

/// Whole batches in one file; the first may begin below the offset that was asked for.
#[derive(Clone)]
pub struct Slice {
    pub file: Arc<dyn VolumeFile>,
    pub position: u64,
    pub len: usize,
    /// The offset to go on with.
    pub next_offset: i64,
}

/// Where an epoch ends, for OffsetForLeaderEpoch (KIP-320).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    pub leader_epoch: i32,
    pub end_offset: i64,
}

pub struct Log {
    volume: Arc<dyn Volume>,
    session: Arc<Session>,
    dir: String,
    leader_epoch: i32,
    config: RwLock<Arc<LogConfig>>,
    loaded: AtomicBool,
    /// Whether the directory's own name is durable. It is once a checkpoint was left in it.
    dir_is_durable: AtomicBool,
    writer: Mutex<Writer>,
    /// Locked after `writer`, and never for longer than a look.
    view: RwLock<View>,
    /// Held by whatever publishes or retires files outside of appends: retention, DeleteRecords, checkpoints.
    maintenance: Mutex<()>,
    on_advance: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// What appending needs.
struct Writer {
    active: Option<Active>,
    producers: Producers,
    end: i64,
    /// Everything below it is on the disk, and that we were not fenced afterwards is proven.
    durable: i64,
    /// The appends at or above the high watermark, oldest first: how to take them back.
    pending: VecDeque<Pending>,
    /// The high watermark at each cut.
    cuts: Vec<i64>,
    /// Segment files that hold nothing live and are still to be retired.
    dead: Vec<String>,
    closed: bool,
    /// Records appended since the last flush, and when the first of them came.
    unflushed: u64,
    unflushed_since_ms: Option<i64>,
    checkpointed: i64,
    bytes_since_checkpoint: u64,
    /// The high watermark or the last stable offset moved since the waiters were last told.
    advanced: bool,
}

struct Active {
    segment: Arc<Segment>,
    file: Arc<dyn VolumeFile>,
    created_ms: i64,
}

struct Pending {
    base_offset: i64,
    facts_before: Facts,
    producer: Option<ProducerUndo>,
}

/// What reading needs.
struct View {
    /// By base offset; bases and epochs rise.
    segments: Vec<Arc<Segment>>,
    start: i64,
    high_watermark: i64,
    last_stable: i64,
    end: i64,
    /// Where in the last segment the high watermark lies.
    high_position: u64,
    /// Where the own epoch began.
    epoch_start: i64,
}

impl View {
    fn offsets(&self) -> Offsets {
        Offsets {
            start: self.start,
            last_stable: self.last_stable,
            high_watermark: self.high_watermark,
            end: self.end,
        }
    }

    /// The base of the segment after `at`: what a segment holds from there on is dead.
    fn limit_of(&self, at: usize) -> i64 {
        self.segments
            .get(at + 1)
            .map_or(i64::MAX, |next| next.name.base)
    }
}

/// The segment in which an offset is to be looked for, as of one moment.
struct Holding {
    offsets: Offsets,
    segment: Option<Arc<Segment>>,
    place: Place,
}

struct Place {
    /// Where the next segment begins.
    next_base: i64,
    /// In the last segment: the high watermark and its position.
    high: Option<(i64, u64)>,
}

/// A sync that is due: `segment` holds appends up to `upto` that are not durable.
pub(crate) struct Flush {
    pub segment: Arc<Segment>,
    pub upto: i64,
    cuts: usize,
}

impl Log {
    /// The log in the directory `dir` (`topics/<topic id>/<partition>`, made at the first append) as of a fresh listing,
    /// to be written under `leader_epoch`, which no other session has. Whoever wrote it before must be fenced.
    pub fn open(
        volume: Arc<dyn Volume>,
        session: Arc<Session>,
        dir: &str,
        config: LogConfig,
        leader_epoch: i32,
    ) -> Result<Log, StorageError> {
        let entries = match volume.list_fresh(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(StorageError::from_io("list", dir, error)),
        };
        let found = entries
            .into_iter()
            .filter_map(|entry| Some((SegmentName::parse(&entry.name)?, entry.len)));
        let (live, dead) = live_segments(found.collect());
        let segments: Vec<Arc<Segment>> = live
            .into_iter()
            .map(|(name, len)| Arc::new(Segment::listed(dir, name, len)))
            .collect();
        Ok(Log {
            volume,
            session,
            dir: dir.to_owned(),
            leader_epoch,
            config: RwLock::new(Arc::new(config)),
            loaded: AtomicBool::new(false),
            dir_is_durable: AtomicBool::new(false),
            writer: Mutex::new(Writer {
                active: None,
                producers: Producers::default(),
                end: 0,
                durable: 0,
                pending: VecDeque::new(),
                cuts: Vec::new(),
                dead: dead
                    .into_iter()
                    .map(|name| format!("{dir}/{name}"))
                    .collect(),
                closed: false,
                unflushed: 0,
                unflushed_since_ms: None,
                checkpointed: -1,
                bytes_since_checkpoint: 0,
                advanced: false,
            }),
            view: RwLock::new(View {
                segments,
                start: 0,
                high_watermark: 0,
                last_stable: 0,
                end: 0,
                high_position: 0,
                epoch_start: 0,
            }),
            maintenance: Mutex::new(()),
            on_advance: OnceLock::new(),
        })
    }

    /// Called, from the thread that moved it, whenever the high watermark or the last stable offset has moved. To be set
    /// once, before the log is used.
    pub fn on_advance(&self, hook: impl Fn() + Send + Sync + 'static) {
        let set = self.on_advance.set(Box::new(hook));
        assert!(set.is_ok(), "the hook of a log is set once");
    }

    pub fn dir(&self) -> &str {
        &self.dir
    }

    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    pub fn config(&self) -> Arc<LogConfig> {
        self.config.read().clone()
    }

    pub fn set_config(&self, config: LogConfig) {
        *self.config.write() = Arc::new(config);
    }

    /// Bytes of its segments; known without reading it.
    pub fn size(&self) -> u64 {
        self.view
            .read()
            .segments
            .iter()
            .map(|segment| segment.size())
            .sum()
    }

    /// Appends one batch of a client, in the page cache. The flusher makes it durable and visible.
    pub fn append(&self, records: Bytes, options: AppendOptions) -> Result<Appended, LogError> {
        let config = self.config();
        let batch = validate::client_batch(&records, &config, &options)?;
        let mut writer = self.writer()?;
        let producer = batch.producer();
        if let Some(producer) = &producer
            && let Some(duplicate) = writer.producers.check(producer)?
        {
            return Ok(Appended {
                base_offset: duplicate.first_offset,
                last_offset: duplicate.last_offset,
                log_append_time_ms: duplicate.max_timestamp,
                log_start_offset: self.view.read().start,
                duplicate: true,
                flush_point: FlushPoint {
                    end_offset: duplicate.last_offset + 1,
                    cuts: writer.cuts.len(),
                },
                flush_is_due: false,
            });
        }
        let log_append_time_ms = match config.message_timestamp_type {
            TimestampType::CreateTime => -1,
            TimestampType::LogAppendTime => batch.header.max_timestamp,
        };
        let base_offset = self.write(
            &mut writer,
            &config,
            batch,
            options.now_ms,
            |producers, base_offset| {
                producer.map(|producer| producers.append(&producer, base_offset))
            },
        );
        let appended = base_offset
            .map(|base_offset| self.appended(&writer, &config, base_offset, log_append_time_ms));
        self.release(writer);
        appended
    }

    /// Appends the marker that ends a producer's transaction here (WriteTxnMarkers). `strict` is what transaction
    /// version 2 asks for.
    pub fn append_marker(
        &self,
        marker: TransactionMarker,
        now_ms: i64,
    ) -> Result<Appended, LogError> {
        let config = self.config();
        let mut writer = self.writer()?;
        let end = Marker {
            producer_id: marker.producer_id,
            epoch: marker.producer_epoch,
            coordinator_epoch: marker.coordinator_epoch,
            commit: marker.commit,
            timestamp: now_ms,
        };
        writer.producers.check_marker(&end, marker.strict)?;
        let batch = validate::marker_batch(&end);
        let base_offset = self.write(
            &mut writer,
            &config,
            batch,
            now_ms,
            |producers, base_offset| Some(producers.end_transaction(&end, base_offset)),
        );
        let appended =
            base_offset.map(|base_offset| self.appended(&writer, &config, base_offset, now_ms));
        self.release(writer);
        appended
    }

    fn appended(
        &self,
        writer: &Writer,
        config: &LogConfig,
        base_offset: i64,
        log_append_time_ms: i64,
    ) -> Appended {
        Appended {
            base_offset,
            last_offset: writer.end - 1,
            log_append_time_ms,
            log_start_offset: self.view.read().start,
            duplicate: false,
            flush_point: FlushPoint {
                end_offset: writer.end,
                cuts: writer.cuts.len(),
            },
            flush_is_due: writer.unflushed >= config.flush_messages,
        }
    }

    /// Writes a batch at the end and takes it in.
    fn write(
        &self,
        writer: &mut Writer,
        config: &LogConfig,
        mut batch: Batch,
        now_ms: i64,
        take_in: impl FnOnce(&mut Producers, i64) -> Option<ProducerUndo>,
    ) -> Result<i64, LogError> {
        if writer
            .active
            .as_ref()
            .is_none_or(|active| self.must_roll(active, &batch.header, config, now_ms))
        {
            self.new_segment(writer, config, now_ms)?;
        }
        let active = writer.active.as_ref().expect("a new segment is active");
        let segment = active.segment.clone();
        let facts_before = segment
            .known_facts()
            .expect("the facts of an active segment are known");
        let base_offset = writer.end;
        batch::set_base_offset(&mut batch.head, base_offset);
        batch::set_partition_leader_epoch(&mut batch.head, self.leader_epoch);
        let head_at = facts_before.size;
        let written = active.file.write_at(&batch.head, head_at).and_then(|()| {
            active
                .file
                .write_at(&batch.body, head_at + batch.head.len() as u64)
        });
        if let Err(error) = written {
            // What was written of it lies above the end and is dead once the next segment begins there.
            let error = self
                .session
                .own_file_failed("append to", &segment.path, error);
            tracing::error!(dir = self.dir, %error, "an append failed; its segment is sealed");
            writer.active = None;
            return Err(error.into());
        }
        segment.appended(&batch.header, base_offset);
        let producer = take_in(&mut writer.producers, base_offset);
        writer.end = base_offset + i64::from(batch.header.last_offset_delta) + 1;
        writer.unflushed += batch.header.record_count.max(0) as u64;
        writer.unflushed_since_ms.get_or_insert(now_ms);
        writer.bytes_since_checkpoint += batch.header.total_len() as u64;
        writer.pending.push_back(Pending {
            base_offset,
            facts_before,
            producer,
        });
        self.view.write().end = writer.end;
        if !config.flushes_every_append() {
            self.advance(writer, writer.end);
        }
        Ok(base_offset)
    }

    fn must_roll(
        &self,
        active: &Active,
        header: &BatchHeader,
        config: &LogConfig,
        now_ms: i64,
    ) -> bool {
        let facts = active
            .segment
            .known_facts()
            .expect("the facts of an active segment are known");
        if facts.size == 0 {
            return false;
        }
        let jitter = if config.segment_jitter_ms > 0 {
            (crc32c::crc32c(active.segment.path.as_bytes()) as i64) % config.segment_jitter_ms
        } else {
            0
        };
        // By the records' own time if they have one, as Kafka does.
        let age = if facts.first_timestamp >= 0 && header.max_timestamp >= 0 {
            header.max_timestamp.saturating_sub(facts.first_timestamp)
        } else {
            now_ms.saturating_sub(active.created_ms)
        };
        let last_offset = facts.end_offset + i64::from(header.last_offset_delta);
        facts.size + header.total_len() as u64 > config.segment_bytes
            || age > config.segment_ms.saturating_sub(jitter)
            || last_offset - active.segment.name.base > i64::from(i32::MAX)
    }

    /// Begins a segment at the end of the log. Everything below it is made durable first; the rename that publishes it
    /// proves that no fence came before.
    fn new_segment(
        &self,
        writer: &mut Writer,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<(), LogError> {
        // Whatever fails from here on, nothing more goes into the older segment: the new one may be there all the same.
        writer.active = None;
        let last = self.view.read().segments.last().cloned();
        if let Some(last) = last
            && writer.durable < writer.end
            && let Err(error) = self.sync(&last)
        {
            self.cut(writer, &error);
            return Err(error.into());
        }
        let name = SegmentName {
            base: writer.end,
            epoch: self.leader_epoch,
            revision: 0,
        };
        let (draft, file) = self.session.create_in("log")?;
        let path = format!("{}/{name}", self.dir);
        if let Err(error) = self.publish_segment(&draft, &path) {
            tracing::error!(dir = self.dir, %error, "a new segment could not be published");
            // Only room is at stake: what stays goes to the trash with the session.
            let _ = self.volume.remove_file(&draft);
            return Err(error.into());
        }
        let segment = Arc::new(Segment::created(
            &self.dir,
            name,
            file.clone(),
            config.index_interval_bytes,
        ));
        {
            let mut view = self.view.write();
            // A segment in which nothing live was ever written is replaced.
            if let Some(replaced) = view.segments.pop_if(|last| last.name.base == name.base)
                && replaced.path != segment.path
            {
                writer.dead.push(replaced.path.clone());
            }
            view.segments.push(segment.clone());
            view.high_position = 0;
        }
        writer.active = Some(Active {
            segment,
            file,
            created_ms: now_ms,
        });
        writer.durable = writer.end;
        self.advance(writer, writer.end);
        Ok(())
    }

    /// Gives a new segment its name, and makes the directory if it is the first. Both become durable with the
    /// segment's first sync.
    fn publish_segment(&self, draft: &str, path: &str) -> Result<(), StorageError> {
        match self.session.move_out(draft, path) {
            Err(error) if error.is_not_found() => {
                self.create_dir()?;
                self.session.move_out(draft, path)
            }
            moved => moved,
        }
    }

    fn create_dir(&self) -> Result<(), StorageError> {
        let ends = self.dir.match_indices('/').map(|(end, _)| end);
        for end in ends.chain([self.dir.len()]) {
            let dir = &self.dir[..end];
            match self.volume.create_dir(dir) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(StorageError::from_io("create", dir, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Moves the high watermark up to `to`, and the last stable offset with it.
    fn advance(&self, writer: &mut Writer, to: i64) {
        while writer
            .pending
            .pop_front_if(|pending| pending.base_offset < to)
            .is_some()
        {}
        writer.producers.high_watermark_moved(to);
        let mut view = self.view.write();
        debug_assert!(view.high_watermark <= to, "the high watermark never falls");
        let last_stable = writer.producers.last_stable_offset(to);
        writer.advanced |= view.high_watermark != to || view.last_stable != last_stable;
        view.high_watermark = to;
        view.last_stable = last_stable;
        view.high_position = match (writer.pending.front(), view.segments.last()) {
            (Some(pending), _) => pending.facts_before.size,
            (None, Some(last)) => last.size(),
            (None, None) => 0,
        };
    }

    /// Takes back everything above the high watermark, because it may not be on the disk. Nobody was told of it.
    fn cut(&self, writer: &mut Writer, error: &StorageError) {
        let end = self.view.read().high_watermark;
        tracing::error!(dir = self.dir, end, lost = writer.end - end, %error, "a sync failed; what was not durable is taken back");
        writer.active = None;
        writer.cuts.push(end);
        let facts = writer.pending.front().map(|pending| pending.facts_before);
        let undos: Vec<ProducerUndo> = writer
            .pending
            .drain(..)
            .rev()
            .filter_map(|pending| pending.producer)
            .collect();
        writer.producers.take_back(undos.into_iter(), end);
        writer.end = end;
        writer.durable = end;
        writer.unflushed = 0;
        writer.unflushed_since_ms = None;
        let mut view = self.view.write();
        view.end = end;
        if let (Some(facts), Some(last)) = (facts, view.segments.last()) {
            last.cut(facts);
        }
    }

    /// What is to be synced, if anything is.
    pub(crate) fn flush_begin(&self) -> Option<Flush> {
        let writer = self.writer.lock();
        if writer.durable >= writer.end {
            return None;
        }
        let segment = self
            .view
            .read()
            .segments
            .last()
            .cloned()
            .expect("what is not durable lies in the last segment");
        Some(Flush {
            segment,
            upto: writer.end,
            cuts: writer.cuts.len(),
        })
    }

    pub(crate) fn flush_sync(&self, flush: &Flush) -> Result<(), StorageError> {
        self.sync(&flush.segment)
    }

    fn sync(&self, segment: &Segment) -> Result<(), StorageError> {
        segment.sync(&*self.volume, &self.dir_is_durable)
    }

    /// The sync succeeded and the token moved after it.
    pub(crate) fn flush_done(&self, flush: &Flush) {
        let mut writer = self.writer.lock();
        if flush.cuts != writer.cuts.len() {
            return;
        }
        writer.durable = writer.durable.max(flush.upto);
        if writer.durable == writer.end {
            writer.unflushed = 0;
            writer.unflushed_since_ms = None;
        }
        let high_watermark = self.view.read().high_watermark;
        if flush.upto > high_watermark {
            self.advance(&mut writer, flush.upto);
        }
        self.release(writer);
    }

    pub(crate) fn flush_failed(&self, flush: &Flush, error: &StorageError) {
        let mut writer = self.writer.lock();
        if flush.cuts == writer.cuts.len() {
            self.cut(&mut writer, error);
        }
        self.release(writer);
    }

    /// Makes everything appended so far durable, in this thread and for this log alone.
    pub fn flush(&self) -> Result<(), StorageError> {
        let Some(flush) = self.flush_begin() else {
            return Ok(());
        };
        if let Err(error) = self.flush_sync(&flush) {
            self.flush_failed(&flush, &error);
            return Err(error);
        }
        self.session.verify()?;
        self.flush_done(&flush);
        Ok(())
    }

    /// Whether an append counts: it is visible, and durable as far as `flush.messages` asks for it.
    pub(crate) fn counts(&self, point: FlushPoint) -> bool {
        let writer = self.writer.lock();
        match writer.cuts.get(point.cuts) {
            Some(&end) => point.end_offset <= end,
            None => point.end_offset <= self.view.read().high_watermark,
        }
    }

    /// Whether `flush.messages` or `flush.ms` ask for a flush now.
    pub fn flush_is_due(&self, now_ms: i64) -> bool {
        let config = self.config();
        let writer = self.writer.lock();
        let waited = writer
            .unflushed_since_ms
            .map_or(0, |since| now_ms.saturating_sub(since));
        writer.durable < writer.end
            && (writer.unflushed >= config.flush_messages
                || config.flush_ms.is_some_and(|limit| waited >= limit))
    }

    /// Makes everything durable, leaves a checkpoint, and refuses appends from now on.
    pub fn close(&self) -> Result<(), StorageError> {
        self.writer.lock().closed = true;
        if !self.loaded.load(Ordering::Acquire) {
            return Ok(());
        }
        self.flush()?;
        self.checkpoint()
    }

    /// Batches from the one that holds `offset` on: a slice of one segment, cut at a batch's end, below the high
    /// watermark or the last stable offset.
    pub fn read(&self, offset: i64, options: ReadOptions) -> Result<Read, LogError> {
        self.load_if_needed()?;
        let mut found = self.holding(offset);
        let offsets = found.offsets;
        if offset < offsets.start || offset > offsets.end {
            return Err(out_of_range(offset, &offsets));
        }
        let limit = match options.isolation {
            Isolation::ReadUncommitted => offsets.high_watermark,
            Isolation::ReadCommitted => offsets.last_stable,
        };
        if offset >= limit {
            return Ok(Read {
                offsets,
                slice: None,
            });
        }
        loop {
            let Some(segment) = found.segment else {
                break;
            };
            match self.slice(&segment, offset, limit, &found.place, &options) {
                Ok(Some(slice)) => {
                    return Ok(Read {
                        offsets,
                        slice: Some(slice).filter(|slice| slice.len > 0),
                    });
                }
                // Once compacted, a segment may end before the next one begins.
                Ok(None) if found.place.next_base < limit => {
                    found = self.holding(found.place.next_base)
                }
                Ok(None) => break,
                // Retention or compaction was faster.
                Err(error) if error.is_not_found() && !self.has(&segment) => {
                    if offset < self.view.read().start {
                        return Err(out_of_range(offset, &offsets));
                    }
                    found = self.holding(segment.name.base.max(offset));
                }
                Err(error) => {
                    tracing::error!(dir = self.dir, offset, %error, "a read failed");
                    return Err(error.into());
                }
            }
        }
        Ok(Read {
            offsets,
            slice: None,
        })
    }

    fn has(&self, segment: &Arc<Segment>) -> bool {
        let view = self.view.read();
        view.segments
            .iter()
            .any(|other| Arc::ptr_eq(other, segment))
    }

    fn holding(&self, offset: i64) -> Holding {
        let view = self.view.read();
        let at = view
            .segments
            .partition_point(|segment| segment.name.base <= offset)
            .saturating_sub(1);
        let is_last = at + 1 == view.segments.len();
        Holding {
            offsets: view.offsets(),
            segment: view.segments.get(at).cloned(),
            place: Place {
                next_base: view.limit_of(at),
                high: is_last.then_some((view.high_watermark, view.high_position)),
            },
        }
    }

    /// `None`: the segment holds nothing from `offset` to `limit`. An empty slice: the first batch is too large.
    fn slice(
        &self,
        segment: &Segment,
        offset: i64,
        limit: i64,
        place: &Place,
        options: &ReadOptions,
    ) -> Result<Option<Slice>, StorageError> {
        let interval = self.config().index_interval_bytes;
        segment.build_index(&*self.volume, interval, place.next_base)?;
        let file = segment.file(&*self.volume)?;
        let end = match place.high {
            Some((high_watermark, position)) if high_watermark == limit => (limit, position),
            _ if limit >= place.next_base => (place.next_base, segment.size()),
            _ => (limit, segment.position_of(&*file, limit)?),
        };
        let range = segment.range(&*file, offset, end, options.max_bytes as u64)?;
        Ok(range.map(|range| {
            let too_large = range.len > options.max_bytes as u64 && !options.at_least_one_batch;
            Slice {
                file,
                position: range.position,
                len: if too_large { 0 } else { range.len as usize },
                next_offset: if too_large { offset } else { range.next_offset },
            }
        }))
    }

    pub fn offsets(&self) -> Result<Offsets, LogError> {
        self.load_if_needed()?;
        Ok(self.view.read().offsets())
    }

    pub fn start_offset(&self) -> Result<i64, LogError> {
        Ok(self.offsets()?.start)
    }

    pub fn end_offset(&self) -> Result<i64, LogError> {
        Ok(self.offsets()?.end)
    }

    pub fn high_watermark(&self) -> Result<i64, LogError> {
        Ok(self.offsets()?.high_watermark)
    }

    pub fn last_stable_offset(&self) -> Result<i64, LogError> {
        Ok(self.offsets()?.last_stable)
    }

    /// The offsets if the log was read already; never touches the disk.
    pub fn known_offsets(&self) -> Option<Offsets> {
        self.loaded
            .load(Ordering::Acquire)
            .then(|| self.view.read().offsets())
    }

    /// The end of `requested`, or of the last epoch before it (KIP-320). `None`: an epoch never heard of here.
    pub fn epoch_end_offset(&self, requested: i32) -> Result<Option<EpochEnd>, LogError> {
        self.load_if_needed()?;
        let view = self.view.read();
        let epochs = epochs(&view, self.leader_epoch);
        if requested == self.leader_epoch {
            return Ok(Some(EpochEnd {
                leader_epoch: requested,
                end_offset: view.high_watermark,
            }));
        }
        let above = epochs.partition_point(|(epoch, _)| *epoch <= requested);
        let Some(&(_, end_offset)) = epochs.get(above).filter(|_| requested >= 0) else {
            return Ok(None);
        };
        let leader_epoch = above
            .checked_sub(1)
            .map_or(requested, |floor| epochs[floor].0);
        Ok(Some(EpochEnd {
            leader_epoch,
            end_offset,
        }))
    }

    /// The epoch under which the record at `offset` was written.
    pub fn epoch_of(&self, offset: i64) -> Result<i32, LogError> {
        self.load_if_needed()?;
        let view = self.view.read();
        let epochs = epochs(&view, self.leader_epoch);
        let at = epochs.partition_point(|(_, start)| *start <= offset);
        Ok(epochs[at.saturating_sub(1)].0)
    }

    /// The aborted transactions a read_committed consumer must skip in `from..to`.
    pub fn aborted_transactions(
        &self,
        from: i64,
        to: i64,
    ) -> Result<Vec<AbortedTransaction>, LogError> {
        Ok(self.writer()?.producers.aborted(from, to))
    }

    /// The producers known here, by id.
    pub fn producers(&self) -> Result<Vec<Producer>, LogError> {
        self.load_if_needed()?;
        Ok(self.writer.lock().producers.all())
    }

    fn writer(&self) -> Result<MutexGuard<'_, Writer>, LogError> {
        self.load_if_needed()?;
        let writer = self.writer.lock();
        if writer.closed {
            Err(LogError::closed())
        } else {
            Ok(writer)
        }
    }

    fn debug_check(&self, writer: &Writer) {
        let view = self.view.read();
        debug_assert!(
            view.start <= view.high_watermark,
            "what is visible was not deleted"
        );
        debug_assert!(
            view.last_stable <= view.high_watermark,
            "what is stable is visible"
        );
        debug_assert!(
            view.high_watermark <= writer.end,
            "what is visible was appended"
        );
        debug_assert!(writer.durable <= writer.end, "what is durable was appended");
        debug_assert_eq!(view.end, writer.end, "readers know where the log ends");
        debug_assert!(
            writer
                .pending
                .front()
                .is_none_or(|first| first.base_offset == view.high_watermark),
            "all that can be taken back is above the high watermark"
        );
        debug_assert!(
            view.segments
                .is_sorted_by(|older, newer| older.name.base < newer.name.base),
            "segments follow one another"
        );
        debug_assert!(
            writer.active.as_ref().is_none_or(|active| {
                view.segments
                    .last()
                    .is_some_and(|last| Arc::ptr_eq(last, &active.segment))
            }),
            "only the last segment is written to"
        );
    }

    /// Lets go of the writer and tells the waiters what moved meanwhile.
    fn release(&self, mut writer: MutexGuard<'_, Writer>) {
        self.debug_check(&writer);
        let advanced = std::mem::take(&mut writer.advanced);
        drop(writer);
        if advanced && let Some(hook) = self.on_advance.get() {
            hook();
        }
    }

    /// Reads the log if that was not done yet. Every method that needs it calls it; to do it early saves the first one
    /// the time.
    pub fn load(&self) -> Result<(), LogError> {
        self.load_if_needed()
    }

    fn load_if_needed(&self) -> Result<(), LogError> {
        if self.loaded.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut writer = self.writer.lock();
        if self.loaded.load(Ordering::Acquire) {
            return Ok(());
        }
        let recovered = self.recover(&mut writer);
        if let Err(error) = recovered {
            tracing::error!(dir = self.dir, %error, "the log cannot be opened");
            return Err(error.into());
        }
        self.loaded.store(true, Ordering::Release);
        Ok(())
    }

    /// Finds the end of the log and what it knew: from its checkpoint, the batches after it, and the valid prefix of
    /// the last segment, which is made durable, because its writer may not have come to it.
    fn recover(&self, writer: &mut Writer) -> Result<(), StorageError> {
        let config = self.config();
        let segments = self.view.read().segments.clone();
        let log_start = checkpoint::read_log_start(&*self.volume, &self.dir)?;
        let checkpoint = self.usable_checkpoint(&segments)?;
        self.dir_is_durable
            .store(checkpoint.is_some(), Ordering::Relaxed);
        let checkpoint = checkpoint.unwrap_or_default();
        let checkpointed = checkpoint.offset;
        let mut producers = Producers::restore(checkpoint.producers, checkpoint.aborted);
        let mut end = log_start;
        for (at, segment) in segments.iter().enumerate() {
            let next = segments.get(at + 1);
            let known = checkpoint
                .segments
                .iter()
                .find(|known| known.name == segment.name.to_string());
            let complete = known.is_some_and(|known| known.facts.end_offset < checkpointed);
            let limit = next.map_or(i64::MAX, |next| next.name.base);
            match known {
                Some(known) if complete => segment.set_facts(known.facts),
                // Older than the checkpoint, but not in it: compacted since. It is read when it is needed.
                None if next.is_some_and(|next| next.name.base <= checkpointed) => {}
                _ => {
                    let from = known.map_or(Facts::empty(segment.name.base), |known| known.facts);
                    let next_base = next.map(|next| next.name.base);
                    let interval = config.index_interval_bytes;
                    let replayed = segment.replay(
                        &*self.volume,
                        interval,
                        from,
                        next_base,
                        |header, bytes| {
                            replay(&mut producers, header, bytes);
                        },
                    );
                    match replayed {
                        Ok(facts)
                            if next.is_none()
                                && facts.size > known.map_or(0, |known| known.facts.size) =>
                        {
                            self.sync(segment)?;
                        }
                        Ok(_) => {}
                        // Only reading there will fail.
                        Err(error @ StorageError::Corrupt { .. }) => {
                            tracing::error!(dir = self.dir, %error, "a segment is damaged");
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            segment.close();
            end = segment
                .known_facts()
                .map_or(limit, |facts| facts.end_offset)
                .max(end);
        }
        let start = segments
            .first()
            .map_or(log_start, |first| first.name.base.max(log_start));
        producers.high_watermark_moved(end);
        producers.log_start_moved(start);
        writer.end = end;
        writer.durable = end;
        writer.checkpointed = checkpointed;
        let mut view = self.view.write();
        view.start = start;
        view.end = end;
        view.high_watermark = end;
        view.last_stable = producers.last_stable_offset(end);
        view.high_position = segments.last().map_or(0, |last| last.size());
        view.epoch_start = end;
        writer.producers = producers;
        tracing::debug!(dir = self.dir, start, end, checkpointed, "log opened");
        Ok(())
    }

    /// The checkpoint, if the files are at least what it says.
    fn usable_checkpoint(
        &self,
        segments: &[Arc<Segment>],
    ) -> Result<Option<Checkpoint>, StorageError> {
        let Some(checkpoint) = checkpoint::read_checkpoint(&*self.volume, &self.dir)? else {
            return Ok(None);
        };
        for segment in segments {
            let name = segment.name.to_string();
            let Some(known) = checkpoint.segments.iter().find(|known| known.name == name) else {
                continue;
            };
            let len = segment.listed_len();
            if len < known.facts.size {
                tracing::error!(
                    dir = self.dir,
                    segment = name,
                    len,
                    checkpointed = known.facts.size,
                    "a segment is shorter than it was once durable; what is left of the log is read"
                );
                return Ok(None);
            }
        }
        Ok(Some(checkpoint))
    }
}

/// The marker that ends a transaction.
#[derive(Clone, Copy, Debug)]
pub struct TransactionMarker {
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub coordinator_epoch: i32,
    pub commit: bool,
    /// Transaction version 2: the marker's epoch is above the one of the transaction.
    pub strict: bool,
}

fn out_of_range(offset: i64, offsets: &Offsets) -> LogError {
    LogError::new(
        ErrorCode::OFFSET_OUT_OF_RANGE,
        format!(
            "offset {offset} is not within {} and {}",
            offsets.start, offsets.end
        ),
    )
}

/// Takes a batch in that is in the log already.
fn replay(producers: &mut Producers, header: &BatchHeader, bytes: &[u8]) {
    if header.producer_id < 0 {
        return;
    }
    if header.is_control() {
        match validate::parse_marker(bytes) {
            Some(marker) => {
                producers.end_transaction(&marker, header.base_offset);
            }
            None => tracing::warn!(
                offset = header.base_offset,
                "a control batch that is no transaction marker is ignored"
            ),
        }
    } else {
        producers.append(&validate::producer_batch(header), header.base_offset);
    }
}

/// The first offset of each epoch, rising. Every epoch has segments of its own.
fn epochs(view: &View, leader_epoch: i32) -> Vec<(i32, i64)> {
    let mut epochs: Vec<(i32, i64)> = view
        .segments
        .iter()
        .map(|segment| (segment.name.epoch, segment.name.base))
        .collect();
    epochs.push((leader_epoch, view.epoch_start));
    epochs.dedup_by_key(|(epoch, _)| *epoch);
    epochs
}

/// Which segments of a directory count, by base offset, and which are dead. A segment kills what older ones hold at and
/// above its base, so an older one that begins there or later is dead as a whole.
fn live_segments(
    mut found: Vec<(SegmentName, u64)>,
) -> (Vec<(SegmentName, u64)>, Vec<SegmentName>) {
    found.sort_by_key(|(name, _)| (name.epoch, name.base, name.revision));
    let mut live: Vec<(SegmentName, u64)> = Vec::with_capacity(found.len());
    let mut dead = Vec::new();
    for (name, len) in found {
        while let Some((older, _)) = live.pop_if(|(older, _)| older.base >= name.base) {
            dead.push(older);
        }
        live.push((name, len));
    }
    (live, dead)
}

#[cfg(test)]
mod tests;
