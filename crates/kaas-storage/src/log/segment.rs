//! One file of record batches: its name, its sparse index, and how batches are found in it. An index is only ever in
//! memory; it is grown by appends and rebuilt by hopping over the headers when an older file is first read.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kaas_wire::batch::{self, BatchHeader};
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};

use crate::error::StorageError;
use crate::volume::{Volume, VolumeFile, parent};

/// A Kafka index has an entry every 4 KiB; ours costs memory, and 32 KiB of headers are hopped over in microseconds.
const MIN_INDEX_INTERVAL: u64 = 32 << 10;
/// Positions whose offsets were lately asked for: the ends of the last reads, where tailing consumers go on.
const HINTS: usize = 4;
const SMALLEST_CHUNK: usize = 4 << 10;
const LARGEST_CHUNK: usize = 256 << 10;
pub(crate) const CHECKED_CHUNK: usize = 1 << 20;

/// `<base offset, 20 digits>.<leader epoch>.log`, or `<base>.<leader epoch>.<revision>.log` once compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentName {
    pub base: i64,
    pub epoch: i32,
    /// How often it was compacted; the highest replaces the others.
    pub revision: u32,
}

impl SegmentName {
    pub fn parse(name: &str) -> Option<SegmentName> {
        let mut parts = name.strip_suffix(".log")?.split('.');
        let base = parts.next().filter(|base| base.len() == 20)?.parse().ok()?;
        let epoch = parts.next()?.parse().ok()?;
        let revision = parts.next().map_or(Ok(0), str::parse).ok()?;
        let parsed = SegmentName {
            base,
            epoch,
            revision,
        };
        (parts.next().is_none() && parsed.to_string() == name).then_some(parsed)
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SegmentName {
            base,
            epoch,
            revision,
        } = self;
        match revision {
            0 => write!(f, "{base:020}.{epoch}.log"),
            _ => write!(f, "{base:020}.{epoch}.{revision}.log"),
        }
    }
}

/// What is known of a segment's batches without reading them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// Bytes of whole batches.
    pub size: u64,
    /// One above the last offset.
    pub end_offset: i64,
    pub first_timestamp: i64,
    pub max_timestamp: i64,
    /// Base offset of the first batch with `max_timestamp`.
    pub max_timestamp_base: i64,
}

impl Facts {
    pub fn empty(base: i64) -> Facts {
        Facts {
            size: 0,
            end_offset: base,
            first_timestamp: -1,
            max_timestamp: -1,
            max_timestamp_base: -1,
        }
    }

    fn add(&mut self, header: &BatchHeader, base_offset: i64) {
        if self.size == 0 {
            self.first_timestamp = header.max_timestamp;
        }
        if header.max_timestamp > self.max_timestamp {
            self.max_timestamp = header.max_timestamp;
            self.max_timestamp_base = base_offset;
        }
        self.size += header.total_len() as u64;
        self.end_offset = base_offset + i64::from(header.last_offset_delta) + 1;
    }
}

#[derive(Clone, Copy)]
struct IndexEntry {
    offset: i64,
    position: u64,
    /// The highest timestamp of all batches before this one.
    max_timestamp_before: i64,
}

struct Index {
    entries: Vec<IndexEntry>,
    interval: u64,
}

impl Index {
    fn new(interval: u32) -> Index {
        Index {
            entries: Vec::new(),
            interval: u64::from(interval).max(MIN_INDEX_INTERVAL),
        }
    }

    fn add(&mut self, offset: i64, position: u64, max_timestamp_before: i64) {
        if self
            .entries
            .last()
            .is_none_or(|last| position >= last.position + self.interval)
        {
            self.entries.push(IndexEntry {
                offset,
                position,
                max_timestamp_before,
            });
        }
    }

    /// Where to begin to look for the batch that holds `offset`.
    fn before_offset(&self, offset: i64) -> IndexEntry {
        self.last_of(self.entries.partition_point(|entry| entry.offset <= offset))
    }

    /// Where to begin to look for the first batch with a timestamp at or above `timestamp`.
    fn before_timestamp(&self, timestamp: i64) -> IndexEntry {
        self.last_of(
            self.entries
                .partition_point(|entry| entry.max_timestamp_before < timestamp),
        )
    }

    fn before_position(&self, position: u64) -> IndexEntry {
        self.last_of(
            self.entries
                .partition_point(|entry| entry.position <= position),
        )
    }

    fn last_of(&self, count: usize) -> IndexEntry {
        const START: IndexEntry = IndexEntry {
            offset: i64::MIN,
            position: 0,
            max_timestamp_before: -1,
        };
        count.checked_sub(1).map_or(START, |at| self.entries[at])
    }
}

struct Content {
    /// Length in the directory listing; what counts until `facts` are known.
    listed: u64,
    facts: Option<Facts>,
    index: Option<Index>,
}

pub(crate) struct Segment {
    pub name: SegmentName,
    /// On the volume.
    pub path: String,
    file: Mutex<Option<Arc<dyn VolumeFile>>>,
    content: RwLock<Content>,
    hints: Mutex<Hints>,
    read_lately: AtomicBool,
    /// Whether a sync failed; held while one runs, so that no two threads share one error of the kernel.
    sync_failed: Mutex<bool>,
    name_durable: AtomicBool,
}

#[derive(Default)]
struct Hints {
    known: [(i64, u64); HINTS],
    next: usize,
}

/// Bytes of a segment, in whole batches.
pub(crate) struct Range {
    pub position: u64,
    pub len: u64,
    /// The offset to go on with.
    pub next_offset: i64,
}

impl Segment {
    /// As the directory shows it.
    pub fn listed(dir: &str, name: SegmentName, len: u64) -> Segment {
        Segment::with(
            dir,
            name,
            None,
            Content {
                listed: len,
                facts: None,
                index: None,
            },
        )
    }

    /// Just made, to be appended to.
    pub fn created(
        dir: &str,
        name: SegmentName,
        file: Arc<dyn VolumeFile>,
        index_interval: u32,
    ) -> Segment {
        let content = Content {
            listed: 0,
            facts: Some(Facts::empty(name.base)),
            index: Some(Index::new(index_interval)),
        };
        Segment::with(dir, name, Some(file), content)
    }

    fn with(
        dir: &str,
        name: SegmentName,
        file: Option<Arc<dyn VolumeFile>>,
        content: Content,
    ) -> Segment {
        Segment {
            name,
            path: format!("{dir}/{name}"),
            file: Mutex::new(file),
            content: RwLock::new(content),
            hints: Mutex::new(Hints::default()),
            read_lately: AtomicBool::new(false),
            sync_failed: Mutex::new(false),
            name_durable: AtomicBool::new(false),
        }
    }

    pub fn file(&self, volume: &dyn Volume) -> Result<Arc<dyn VolumeFile>, StorageError> {
        let mut file = self.file.lock();
        if let Some(file) = &*file {
            return Ok(file.clone());
        }
        let opened = volume
            .open(&self.path)
            .map_err(|error| StorageError::from_io("open", &self.path, error))?;
        Ok(file.insert(opened).clone())
    }

    /// Bytes of its batches, as far as known without reading it.
    pub fn size(&self) -> u64 {
        let content = self.content.read();
        content.facts.map_or(content.listed, |facts| facts.size)
    }

    pub fn listed_len(&self) -> u64 {
        self.content.read().listed
    }

    pub fn known_facts(&self) -> Option<Facts> {
        self.content.read().facts
    }

    pub fn set_facts(&self, facts: Facts) {
        self.content.write().facts = Some(facts);
    }

    /// Takes in a batch that was written at the end.
    pub fn appended(&self, header: &BatchHeader, base_offset: i64) {
        let mut content = self.content.write();
        let Content {
            facts: Some(facts),
            index: Some(index),
            ..
        } = &mut *content
        else {
            unreachable!(
                "only a segment of this session, whose facts and index are complete, is appended to"
            );
        };
        index.add(base_offset, facts.size, facts.max_timestamp);
        facts.add(header, base_offset);
    }

    /// Forgets the batches from `facts.end_offset` on: they are dead.
    pub fn cut(&self, facts: Facts) {
        let mut content = self.content.write();
        content.facts = Some(facts);
        if let Some(index) = &mut content.index {
            index
                .entries
                .retain(|entry| entry.offset < facts.end_offset);
        }
        *self.hints.lock() = Hints::default();
    }

    /// Makes all that was written durable, and the name too, and the directory's own if that is not known to be.
    /// After a failure it fails for ever: the kernel may have dropped the pages.
    pub fn sync(
        &self,
        volume: &dyn Volume,
        dir_is_durable: &AtomicBool,
    ) -> Result<(), StorageError> {
        let mut failed = self.sync_failed.lock();
        if *failed {
            return Err(StorageError::from_io(
                "sync again",
                &self.path,
                std::io::Error::other("an earlier sync of this segment failed"),
            ));
        }
        let file = self.file(volume)?;
        let mut synced = file
            .sync()
            .map_err(|error| StorageError::from_io("sync", &self.path, error));
        if synced.is_ok() && !self.name_durable.load(Ordering::Relaxed) {
            let dir = parent(&self.path);
            synced = sync_dir(volume, dir);
            if synced.is_ok() && !dir_is_durable.load(Ordering::Relaxed) {
                synced = sync_ancestors(volume, dir);
                dir_is_durable.store(synced.is_ok(), Ordering::Relaxed);
            }
            self.name_durable.store(synced.is_ok(), Ordering::Relaxed);
        }
        *failed = synced.is_err();
        synced
    }

    /// Its facts, found by hopping over the headers if need be. Batches from `limit` on belong to the next segment.
    pub fn facts(
        &self,
        volume: &dyn Volume,
        interval: u32,
        limit: i64,
    ) -> Result<Facts, StorageError> {
        if let Some(facts) = self.known_facts() {
            return Ok(facts);
        }
        self.build_index(volume, interval, limit)?;
        Ok(self
            .known_facts()
            .expect("building the index finds the facts"))
    }

    /// Reads all headers, once. A segment that is not the last was whole when the next one began, so what does not
    /// parse before that one's base is damage.
    pub fn build_index(
        &self,
        volume: &dyn Volume,
        interval: u32,
        limit: i64,
    ) -> Result<(), StorageError> {
        let (known, listed) = {
            let content = self.content.read();
            if content.index.is_some() {
                return Ok(());
            }
            (content.facts, content.listed)
        };
        let file = self.file(volume)?;
        let end = known.map_or(listed, |facts| facts.size);
        let mut scanner = Scanner::new(&*file, end);
        let mut index = Index::new(interval);
        let mut facts = Facts::empty(self.name.base);
        while let Some(header) = self.io("read", scanner.header(facts.size))? {
            if header.base_offset < facts.end_offset || header.base_offset >= limit {
                break;
            }
            index.add(header.base_offset, facts.size, facts.max_timestamp);
            facts.add(&header, header.base_offset);
        }
        self.check_whole(&facts, end, limit)?;
        let mut content = self.content.write();
        content.facts.get_or_insert(facts);
        content.index = Some(index);
        Ok(())
    }

    /// A segment that is not the last was whole when the next one began at `limit`; compaction leaves gaps.
    fn check_whole(&self, facts: &Facts, end: u64, limit: i64) -> Result<(), StorageError> {
        let is_whole = match self.name.revision {
            0 => facts.end_offset == limit,
            _ => facts.size == end,
        };
        if is_whole || limit == i64::MAX {
            return Ok(());
        }
        Err(StorageError::Corrupt {
            path: self.path.clone(),
            why: format!(
                "no batch for offset {} begins at byte {}",
                facts.end_offset, facts.size
            ),
            remedy: format!("restore the file, or delete the records up to offset {limit}"),
        })
    }

    /// Reads the batches after `from`, up to `limit`, and sets the facts. With `next` none it is the log's last segment:
    /// CRCs are checked, and what follows the first batch that is not whole and valid does not count.
    pub fn replay(
        &self,
        volume: &dyn Volume,
        interval: u32,
        from: Facts,
        next: Option<i64>,
        mut visit: impl FnMut(&BatchHeader, &[u8]),
    ) -> Result<Facts, StorageError> {
        let file = self.file(volume)?;
        // Longer than listed if its writer was still at it; that is all the same to its readers.
        let end = self.io("look at", file.len())?;
        let limit = next.unwrap_or(i64::MAX);
        let mut scanner = Scanner::new(&*file, end);
        let mut index = (from.size == 0).then(|| Index::new(interval));
        let mut facts = from;
        loop {
            let header = if next.is_none() {
                self.io("read", scanner.checked_batch(facts.size))?
                    .map(|(header, _)| header)
            } else {
                self.io("read", scanner.header(facts.size))?
            };
            let Some(header) = header else {
                break;
            };
            if header.base_offset < facts.end_offset || header.base_offset >= limit {
                break;
            }
            if header.is_control() {
                if let Some((header, bytes)) = self.io("read", scanner.batch(facts.size))? {
                    visit(&header, bytes);
                }
            } else {
                visit(&header, &[]);
            }
            if let Some(index) = &mut index {
                index.add(header.base_offset, facts.size, facts.max_timestamp);
            }
            facts.add(&header, header.base_offset);
        }
        self.check_whole(&facts, end, limit)?;
        if next.is_none() && facts.size < end {
            tracing::warn!(
                segment = self.path,
                valid = facts.size,
                len = end,
                "the end of the log was torn; it is left out"
            );
        }
        let mut content = self.content.write();
        content.facts = Some(facts);
        content.index = index;
        Ok(facts)
    }

    /// Lets go of the index and the file of a segment that was not read since the last call.
    pub fn rest(&self) {
        if !self.read_lately.swap(false, Ordering::Relaxed) {
            self.content.write().index = None;
            self.close();
        }
    }

    /// Closes the file until it is needed again; not to be called while writes to it are not durable.
    pub fn close(&self) {
        *self.file.lock() = None;
    }

    /// Whole batches from the one that holds `offset` (or the next one there is) up to `end`, about `max_bytes` of them
    /// but at least one. `None`: nothing there. The index must be built.
    pub fn range(
        &self,
        file: &dyn VolumeFile,
        offset: i64,
        (end_offset, end): (i64, u64),
        max_bytes: u64,
    ) -> Result<Option<Range>, StorageError> {
        self.read_lately.store(true, Ordering::Relaxed);
        let Some((position, _)) = self.io("read", self.find(file, offset, end))? else {
            return Ok(None);
        };
        let range = |next: u64, next_offset| {
            Some(Range {
                position,
                len: next - position,
                next_offset,
            })
        };
        if end - position <= max_bytes {
            self.hint(end_offset, end);
            return Ok(range(end, end_offset));
        }
        let cut = self.with_index(|index| index.before_position(position + max_bytes));
        if cut.position > position {
            return Ok(range(cut.position, cut.offset));
        }
        let mut scanner = Scanner::new(file, end);
        let (mut next, mut next_offset) = (position, offset);
        while let Some(header) = self.io("read", scanner.header(next))? {
            let len = header.total_len() as u64;
            if next > position && next + len - position > max_bytes {
                break;
            }
            next += len;
            next_offset = header.last_offset() + 1;
        }
        self.hint(next_offset, next);
        Ok(range(next, next_offset))
    }

    /// Position of the first batch whose last offset is at or above `offset`, and its header if it had to be read.
    fn find(
        &self,
        file: &dyn VolumeFile,
        offset: i64,
        end: u64,
    ) -> std::io::Result<Option<(u64, Option<BatchHeader>)>> {
        let entry = self.with_index(|index| index.before_offset(offset));
        let known = self
            .hints
            .lock()
            .known
            .iter()
            .copied()
            .find(|(known, _)| *known == offset);
        let exact = (entry.offset == offset)
            .then_some(entry.position)
            .or(known.map(|(_, position)| position));
        if let Some(position) = exact {
            return Ok((position < end).then_some((position, None)));
        }
        let mut scanner = Scanner::new(file, end);
        let mut position = entry.position;
        while let Some(header) = scanner.header(position)? {
            if header.last_offset() >= offset {
                return Ok(Some((position, Some(header))));
            }
            position += header.total_len() as u64;
        }
        Ok(None)
    }

    /// Where the batches below `offset`, a batch's base, end. The index must be built.
    pub fn position_of(&self, file: &dyn VolumeFile, offset: i64) -> Result<u64, StorageError> {
        let size = self.size();
        let found = self.io("read", self.find(file, offset, size))?;
        Ok(found.map_or(size, |(position, _)| position))
    }

    /// The first batch below `limit` with a timestamp at or above `timestamp`, as bytes. The index must be built.
    pub fn batch_at_timestamp(
        &self,
        file: &dyn VolumeFile,
        timestamp: i64,
        from: i64,
        limit: i64,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        self.read_lately.store(true, Ordering::Relaxed);
        let mut scanner = Scanner::new(file, self.size());
        let mut position = self
            .with_index(|index| index.before_timestamp(timestamp))
            .position;
        while let Some(header) = self.io("read", scanner.header(position))? {
            if header.base_offset >= limit {
                return Ok(None);
            }
            if header.max_timestamp >= timestamp && header.last_offset() >= from {
                return Ok(self
                    .io("read", scanner.batch(position))?
                    .map(|(_, bytes)| bytes.to_vec()));
            }
            position += header.total_len() as u64;
        }
        Ok(None)
    }

    /// The batch that holds `offset`, as bytes. The index must be built.
    pub fn batch_at_offset(
        &self,
        file: &dyn VolumeFile,
        offset: i64,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        self.read_lately.store(true, Ordering::Relaxed);
        let size = self.size();
        let Some((position, _)) = self.io("read", self.find(file, offset, size))? else {
            return Ok(None);
        };
        let mut scanner = Scanner::new(file, size);
        Ok(self
            .io("read", scanner.batch(position))?
            .map(|(_, bytes)| bytes.to_vec()))
    }

    fn with_index<T>(&self, look_up: impl FnOnce(&Index) -> T) -> T {
        match &self.content.read().index {
            Some(index) => look_up(index),
            // It may have been let go of between the look at it and the use of it: begin at the start.
            None => look_up(&Index::new(0)),
        }
    }

    fn hint(&self, offset: i64, position: u64) {
        let mut hints = self.hints.lock();
        if !hints.known.contains(&(offset, position)) {
            let next = hints.next;
            hints.known[next] = (offset, position);
            hints.next = (next + 1) % HINTS;
        }
    }

    fn io<T>(&self, op: &'static str, result: std::io::Result<T>) -> Result<T, StorageError> {
        result.map_err(|error| StorageError::from_io(op, &self.path, error))
    }
}

/// Makes the names of a directory and of those it lies in durable, up to the root, whose names `layout` made durable.
fn sync_ancestors(volume: &dyn Volume, dir: &str) -> Result<(), StorageError> {
    let mut ancestor = parent(dir);
    while !ancestor.is_empty() {
        sync_dir(volume, ancestor)?;
        ancestor = parent(ancestor);
    }
    Ok(())
}

fn sync_dir(volume: &dyn Volume, dir: &str) -> Result<(), StorageError> {
    volume
        .sync_dir(dir)
        .map_err(|error| StorageError::from_io("sync the directory", dir, error))
}

/// Walks over the batches of a file. The caller says where each begins, so that it decides what is skipped.
pub(crate) struct Scanner<'a> {
    file: &'a dyn VolumeFile,
    end: u64,
    buffer: Vec<u8>,
    buffer_at: u64,
    chunk: usize,
    /// Headers found in the buffer since it was filled; many small batches are worth larger reads.
    hits: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(file: &'a dyn VolumeFile, end: u64) -> Scanner<'a> {
        Scanner {
            file,
            end,
            buffer: Vec::new(),
            buffer_at: 0,
            chunk: SMALLEST_CHUNK,
            hits: 0,
        }
    }

    /// The header of the batch at `position`; `None` if no whole batch lies there.
    pub fn header(&mut self, position: u64) -> std::io::Result<Option<BatchHeader>> {
        let Some(bytes) = self.bytes(position, batch::HEADER_LEN)? else {
            return Ok(None);
        };
        let header = BatchHeader::parse(bytes).ok();
        Ok(header.filter(|header| position + header.total_len() as u64 <= self.end))
    }

    /// The whole batch at `position`, whose CRC is not checked; `None` if none lies there.
    pub fn batch(&mut self, position: u64) -> std::io::Result<Option<(BatchHeader, &[u8])>> {
        let Some(header) = self.header(position)? else {
            return Ok(None);
        };
        Ok(self
            .bytes(position, header.total_len())?
            .map(|bytes| (header, bytes)))
    }

    /// The batch at `position` if it is whole and its CRC is right.
    pub fn checked_batch(
        &mut self,
        position: u64,
    ) -> std::io::Result<Option<(BatchHeader, &[u8])>> {
        self.chunk = CHECKED_CHUNK;
        Ok(self
            .batch(position)?
            .filter(|(_, bytes)| batch::verify_crc(bytes).is_ok()))
    }

    fn bytes(&mut self, position: u64, len: usize) -> std::io::Result<Option<&[u8]>> {
        if self.end.saturating_sub(position) < len as u64 {
            return Ok(None);
        }
        let buffered = position >= self.buffer_at
            && position + len as u64 <= self.buffer_at + self.buffer.len() as u64;
        if buffered {
            self.hits += 1;
        } else {
            if self.chunk < CHECKED_CHUNK {
                self.chunk = if self.hits > 1 {
                    (self.chunk * 2).min(LARGEST_CHUNK)
                } else {
                    SMALLEST_CHUNK
                };
            }
            self.hits = 0;
            let want = (self.chunk.max(len) as u64).min(self.end - position) as usize;
            self.buffer.resize(want, 0);
            self.buffer_at = position;
            let got = self.file.read_at(&mut self.buffer, position)?;
            self.buffer.truncate(got);
            if got < len {
                return Ok(None);
            }
        }
        let at = (position - self.buffer_at) as usize;
        Ok(Some(&self.buffer[at..at + len]))
    }
}
