//! The journal: changes of many keys made durable at the price of one fsync and one rename a batch.
//!
//! `Journal` appends to segments in the own session's directory. While one batch is on its way to the disk the next one
//! gathers; there is no timer and no linger. Whoever submits gets its waiters back, with the outcome, in one message a
//! batch. What the bytes mean is `record`, what has to be written again before old segments go is `index`, and what a
//! key is after a crash, a move or a failure is `replay`. When a document is written to its file, and who owns what, is
//! decided elsewhere.

use std::io;
use std::mem;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use crate::error::StorageError;
use crate::layout::JOURNALS;
use crate::session::{Session, SessionName};
use crate::volume::{Volume, VolumeFile};

mod index;
mod record;
pub mod replay;
#[cfg(test)]
mod tests;

use index::TrimIndex;
use record::{MARK_LEN, encode_head, encode_mark, records};
use replay::{Content, SegmentBytes, SessionJournal};

pub use index::Carry;
pub use record::{Kind, Revision, encode};

/// A segment is closed before it grows over this, unless one batch alone is larger.
pub const SEGMENT_BYTES: u64 = 16 << 20;
/// `kaas.journal.max.bytes`.
pub const DEFAULT_MAX_BYTES: u64 = 64 << 20;
/// A batch buffer that grew beyond this is given back.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// A finished batch: every waiter that was submitted with it, in order.
#[derive(Debug)]
pub struct Batch<W> {
    pub number: u64,
    pub waiters: Vec<W>,
    /// Bytes of records.
    pub bytes: usize,
    pub outcome: Result<(), BatchFailed>,
}

/// None of the batch is acknowledged, and any of its records may be found in the journal all the same. Its keys leave
/// memory, are loaded again from file and journal, and then `Journal::resume` lets the next batch through.
#[derive(Clone, Debug)]
pub struct BatchFailed {
    pub error: StorageError,
    /// Each once.
    pub keys: Vec<String>,
}

/// The own session's journal. Dropping it writes what was submitted and ends its threads.
pub struct Journal<W> {
    shared: Arc<Shared<W>>,
    /// Held while segments are taken away or read back.
    trimming: Mutex<()>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<W> {
    session: Arc<Session>,
    gathering: Mutex<Gathering<W>>,
    submitted: Condvar,
    index: Mutex<TrimIndex>,
}

struct Gathering<W> {
    /// Room for the batch's mark, then records.
    bytes: Vec<u8>,
    waiters: Vec<W>,
    /// The number the gathering batch will have.
    number: u64,
    writer_sleeps: bool,
    closing: bool,
    /// Why batches are refused, and the last one that was.
    broken: Option<(StorageError, u64)>,
}

impl<W> Gathering<W> {
    fn is_empty(&self) -> bool {
        self.bytes.len() == MARK_LEN && self.waiters.is_empty()
    }
}

impl<W: Send + 'static> Journal<W> {
    /// Starts the journal of a session, which has only one. `finished` gets every batch, in order, on the journal's own
    /// thread; it must not block.
    pub fn start(
        session: Arc<Session>,
        finished: Box<dyn FnMut(Batch<W>) + Send>,
    ) -> Result<Journal<W>, StorageError> {
        Journal::start_with_segments_of(SEGMENT_BYTES, session, finished)
    }

    /// As `start`, with segments of another size.
    pub fn start_with_segments_of(
        segment_bytes: u64,
        session: Arc<Session>,
        finished: Box<dyn FnMut(Batch<W>) + Send>,
    ) -> Result<Journal<W>, StorageError> {
        let shared = Arc::new(Shared {
            session: Arc::clone(&session),
            gathering: Mutex::new(Gathering {
                bytes: vec![0; MARK_LEN],
                waiters: Vec::new(),
                number: 1,
                writer_sleeps: false,
                closing: false,
                broken: None,
            }),
            submitted: Condvar::new(),
            index: Mutex::new(TrimIndex::new(segment_bytes)),
        });
        // Without room in the channel one prepared segment waits in `send`, and the next is not begun before it is taken.
        let (prepared, ready) = sync_channel(0);
        let writer = Writer {
            shared: Arc::clone(&shared),
            segment_bytes,
            ready,
            current: None,
            spare: vec![0; MARK_LEN],
            finished,
        };
        let threads = vec![
            spawn("kaas-journal", move || writer.run())?,
            spawn("kaas-journal-next", move || {
                prepare_segments(&session, segment_bytes, &prepared)
            })?,
        ];
        Ok(Journal {
            shared,
            trimming: Mutex::new(()),
            threads,
        })
    }

    /// Adds records (see `encode`) and whoever waits for them to the batch that is gathering, and says its number. Without
    /// records the waiters are answered when everything submitted before is settled. `waiters` is left empty. While the
    /// volume hangs what is submitted adds up: the bound is the submitter's, on the requests it has under way.
    pub fn submit(&self, records: &[u8], waiters: &mut Vec<W>) -> u64 {
        let mut gathering = self.shared.gathering.lock();
        gathering.bytes.extend_from_slice(records);
        gathering.waiters.append(waiters);
        let number = gathering.number;
        if mem::take(&mut gathering.writer_sleeps) {
            self.shared.submitted.notify_one();
        }
        number
    }

    /// Lets batches through again after batch `failed` failed and its keys left memory. Until then every batch fails, as
    /// its changes may build on the lost ones. Does nothing, and says so, while a later failed batch has yet to be seen by
    /// the caller, or when the session is fenced.
    pub fn resume(&self, failed: u64) -> bool {
        let mut gathering = self.shared.gathering.lock();
        let last = matches!(&gathering.broken, Some((_, last)) if *last == failed);
        if !last || !gathering.is_empty() || self.shared.session.is_fenced() {
            return false;
        }
        gathering.broken = None;
        true
    }

    /// Tells that the key's file is durable with this revision, or durably gone after a `removed` with this revision.
    pub fn file_is(&self, key: &str, revision: Revision) {
        self.shared.index.lock().file_is(key, revision);
    }

    /// Bytes the journal takes on the volume.
    pub fn total_bytes(&self) -> u64 {
        self.shared.index.lock().total_bytes()
    }

    /// Whether the oldest segment should go.
    pub fn is_over(&self, limit: TrimLimit) -> bool {
        self.shared.index.lock().is_over(limit)
    }

    /// What must be submitted again, with the revision it has, and acknowledged before `trim` can take the oldest segment
    /// away; empty while the journal is within its limit.
    pub fn wanted(&self, limit: TrimLimit) -> Vec<(String, Carry)> {
        let index = self.shared.index.lock();
        match index.oldest_sealed().filter(|_| index.is_over(limit)) {
            Some(oldest) => index
                .needed_of(oldest, limit.journals_named)
                .map(|(key, carry)| (key.to_owned(), carry))
                .collect(),
            None => Vec::new(),
        }
    }

    /// Removes segments nobody needs while the journal is over its limit, oldest first and each durably before the next,
    /// and says how many. Blocks on the volume.
    pub fn trim(&self, limit: TrimLimit) -> Result<usize, StorageError> {
        let _trimming = self.trimming.lock();
        let mut trimmed = 0;
        loop {
            let oldest = {
                let index = self.shared.index.lock();
                let oldest = index.oldest_sealed().filter(|_| index.is_over(limit));
                oldest.filter(|&oldest| {
                    index
                        .needed_of(oldest, limit.journals_named)
                        .next()
                        .is_none()
                })
            };
            let Some(oldest) = oldest else {
                return Ok(trimmed);
            };
            let session = &self.shared.session;
            session.remove_own(&segment_path(session, oldest))?;
            session.sync_own_names()?;
            self.shared.index.lock().trimmed(oldest);
            trimmed += 1;
        }
    }

    /// The keys that a planned move must release, were they to move: those whose last word here is, or after a failed
    /// append may be, a document or a delta, in memory or not.
    pub fn unreleased(&self) -> Vec<String> {
        self.shared
            .index
            .lock()
            .unreleased()
            .map(str::to_owned)
            .collect()
    }

    /// What this journal holds on the volume, for keys that left memory after a failed append: all that was acknowledged,
    /// and of what failed whatever is found.
    pub fn read_back(&self) -> SessionJournal {
        let _trimming = self.trimming.lock();
        let session = &self.shared.session;
        let readable = self.shared.index.lock().readable();
        // One that holds nothing yet may be taken away again at any time.
        let readable = readable.into_iter().filter(|&(_, limit)| limit != Some(0));
        let segments = readable.map(|(number, limit)| {
            let path = segment_path(session, number);
            let content = match session.volume().read(&path) {
                Ok(mut bytes) => {
                    // What stands behind is being written right now.
                    bytes.truncate(limit.map_or(bytes.len(), |limit| limit as usize));
                    Content::Bytes(bytes.into())
                }
                Err(error) => Content::Unreadable(StorageError::from_io("read", &path, error)),
            };
            SegmentBytes {
                number,
                path,
                content,
            }
        });
        SessionJournal {
            session: session.name().uuid,
            segments: segments.collect(),
        }
    }
}

impl<W> Drop for Journal<W> {
    fn drop(&mut self) {
        let mut gathering = self.shared.gathering.lock();
        gathering.closing = true;
        self.shared.submitted.notify_one();
        drop(gathering);
        for thread in self.threads.drain(..) {
            // The last owner may let go in `finished`, on the very thread that would be waited for.
            if thread.thread().id() != std::thread::current().id() {
                thread.join().expect("the journal's threads do not panic");
            }
        }
    }
}

/// How much journal may be kept.
#[derive(Clone, Copy, Debug)]
pub struct TrimLimit {
    /// `kaas.journal.max.bytes`.
    pub max_bytes: u64,
    /// Bytes of the documents of keys whose file is behind; twice as much may always be kept, or carrying them on would
    /// never end.
    pub documents_behind_bytes: u64,
    /// Whether the assignment version that is applied names any journal.
    pub journals_named: bool,
}

impl TrimIndex {
    fn is_over(&self, limit: TrimLimit) -> bool {
        self.total_bytes() > limit.max_bytes.max(2 * limit.documents_behind_bytes)
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StorageError> {
    Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| StorageError::from_io("start the thread", name, error))
}

fn segment_path(session: &Session, number: u64) -> String {
    session.path(&format!("j.{number}"))
}

struct Segment {
    number: u64,
    path: String,
    file: Arc<dyn VolumeFile>,
    /// Bytes written, all of them acknowledged.
    len: u64,
}

/// Makes the segments to come, each with its room reserved and its name durable before a batch goes into it.
fn prepare_segments(
    session: &Session,
    segment_bytes: u64,
    prepared: &SyncSender<Result<Segment, StorageError>>,
) {
    for number in 1.. {
        let segment = prepare_segment(session, number, segment_bytes);
        if prepared.send(segment).is_err() {
            // The journal has closed. What was prepared is empty and goes with the session.
            return;
        }
    }
}

fn prepare_segment(
    session: &Session,
    number: u64,
    segment_bytes: u64,
) -> Result<Segment, StorageError> {
    let (path, file) = session.create_named(&format!("j.{number}"))?;
    // Without the reservation the writes are slower, and one of them meets the full disk.
    let _ = file.allocate(0, segment_bytes);
    session.sync_own_names()?;
    Ok(Segment {
        number,
        path,
        file,
        len: 0,
    })
}

struct Writer<W> {
    shared: Arc<Shared<W>>,
    segment_bytes: u64,
    ready: Receiver<Result<Segment, StorageError>>,
    current: Option<Segment>,
    /// The buffer that is not gathering.
    spare: Vec<u8>,
    finished: Box<dyn FnMut(Batch<W>) + Send>,
}

impl<W> Writer<W> {
    fn run(mut self) {
        while let Some((number, waiters, broken)) = self.take_batch() {
            let outcome = match broken {
                Some(error) => Err(error),
                // Only waiters: all before them is settled, and well, or the journal would be broken.
                None if self.spare.len() == MARK_LEN => Ok(()),
                None => self.append(),
            };
            let outcome = outcome.map_err(|error| BatchFailed {
                error,
                keys: keys_of(&self.spare[MARK_LEN..]),
            });
            if let Err(failed) = &outcome {
                self.shared.gathering.lock().broken = Some((failed.error.clone(), number));
            }
            let bytes = self.spare.len() - MARK_LEN;
            self.spare.truncate(MARK_LEN);
            self.spare.shrink_to(KEPT_BUFFER_BYTES);
            (self.finished)(Batch {
                number,
                waiters,
                bytes,
                outcome,
            });
        }
    }

    /// Swaps what has gathered into `spare`; sleeps while there is nothing. `None` when the journal closes.
    fn take_batch(&mut self) -> Option<(u64, Vec<W>, Option<StorageError>)> {
        let mut gathering = self.shared.gathering.lock();
        while gathering.is_empty() {
            if gathering.closing {
                return None;
            }
            gathering.writer_sleeps = true;
            self.shared.submitted.wait(&mut gathering);
        }
        gathering.writer_sleeps = false;
        mem::swap(&mut gathering.bytes, &mut self.spare);
        let room = gathering.waiters.len();
        let waiters = mem::replace(&mut gathering.waiters, Vec::with_capacity(room));
        let number = gathering.number;
        gathering.number += 1;
        let broken = gathering.broken.as_ref().map(|(error, _)| error.clone());
        Some((number, waiters, broken))
    }

    /// Makes the batch in `spare` durable and proves that the session was not fenced meanwhile.
    fn append(&mut self) -> Result<(), StorageError> {
        let mut segment = self.segment_for(self.spare.len() as u64)?;
        let session = &self.shared.session;
        let uuid = session.name().uuid;
        let head = if segment.len == 0 {
            let mut earlier = self.shared.index.lock().extents();
            earlier.retain(|extent| extent.segment != segment.number);
            encode_head(uuid, segment.number, &earlier)
        } else {
            Vec::new()
        };
        let start = segment.len + head.len() as u64;
        self.spare[..MARK_LEN].copy_from_slice(&encode_mark(uuid, start, segment.len));
        let written = segment
            .file
            .write_at(&head, segment.len)
            .and_then(|()| segment.file.write_at(&self.spare, start))
            .and_then(|()| segment.file.sync());
        let outcome = match written {
            Ok(()) => session.verify(),
            Err(error) => Err(session.own_file_failed("append to", &segment.path, error)),
        };

        let mut index = self.shared.index.lock();
        let batch = &self.spare[MARK_LEN..];
        if let Err(error) = outcome {
            index.append_failed(batch);
            index.seal();
            if segment.len == 0 {
                // It proves nothing to anyone and would only take room; its records may be found or not. If it cannot be
                // removed it stays for the session's end.
                let _ = session.remove_own(&segment.path);
                index.discard_newest();
            }
            return Err(error);
        }
        segment.len = start + self.spare.len() as u64;
        index.appended(batch, segment.len);
        self.current = Some(segment);
        Ok(())
    }

    /// The segment for a batch of that size: the current one if it has room, else the next, after sealing.
    fn segment_for(&mut self, batch: u64) -> Result<Segment, StorageError> {
        if let Some(current) = self.current.take() {
            if current.len + batch <= self.segment_bytes {
                return Ok(current);
            }
            self.shared.index.lock().seal();
        }
        let segment = match self.next_prepared() {
            Ok(segment) => segment,
            Err(error) if error.is_fenced() => return Err(error),
            // That attempt may be long past; the next one was begun now.
            Err(_) => self.next_prepared()?,
        };
        self.shared.index.lock().open(segment.number);
        Ok(segment)
    }

    fn next_prepared(&self) -> Result<Segment, StorageError> {
        self.ready
            .recv()
            .expect("the thread that prepares segments outlives the writer")
    }
}

fn keys_of(batch: &[u8]) -> Vec<String> {
    let mut keys: Vec<String> = records(batch).map(|record| record.key.to_owned()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// `<session>.<n>`: a segment of a fenced session, in `journals/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JournalFile {
    pub session: SessionName,
    pub segment: u64,
}

impl std::fmt::Display for JournalFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.session, self.segment)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a journal's segment")]
pub struct NotAJournalFile;

impl FromStr for JournalFile {
    type Err = NotAJournalFile;

    fn from_str(name: &str) -> Result<JournalFile, NotAJournalFile> {
        let (session, segment) = name.rsplit_once('.').ok_or(NotAJournalFile)?;
        Ok(JournalFile {
            session: session.parse().map_err(|_| NotAJournalFile)?,
            segment: segment.parse().map_err(|_| NotAJournalFile)?,
        })
    }
}

impl JournalFile {
    fn path(&self) -> String {
        format!("{JOURNALS}/{self}")
    }
}

/// All that lies in `journals/` now, what belongs together in order and oldest first.
pub fn list_left_behind(volume: &dyn Volume) -> Result<Vec<JournalFile>, StorageError> {
    let entries = volume
        .list_fresh(JOURNALS)
        .map_err(|error| StorageError::from_io("list", JOURNALS, error))?;
    let mut files: Vec<JournalFile> = entries
        .iter()
        .filter_map(|entry| entry.name.parse().ok())
        .collect();
    files.sort_by_key(|file| (file.session.node_id, file.session.uuid, file.segment));
    Ok(files)
}

/// Reads the journals an assignment version names. A file that is gone marks its journal as absorbed, one that cannot be
/// read refuses its keys later: neither stops the others.
pub fn read_left_behind(volume: &dyn Volume, named: &[JournalFile]) -> Vec<SessionJournal> {
    let mut journals: Vec<SessionJournal> = Vec::new();
    for file in named {
        let path = file.path();
        let content = match volume.read_fresh(&path) {
            Ok(bytes) => Content::Bytes(Bytes::from(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Content::Gone,
            Err(error) => Content::Unreadable(StorageError::from_io("read", &path, error)),
        };
        let segment = SegmentBytes {
            number: file.segment,
            path,
            content,
        };
        match journals
            .iter_mut()
            .find(|journal| journal.session == file.session.uuid)
        {
            Some(journal) => journal.segments.push(segment),
            None => journals.push(SessionJournal {
                session: file.session.uuid,
                segments: vec![segment],
            }),
        }
    }
    journals
}

/// Removes absorbed journals, each one's oldest segment first and durably before the next.
pub fn remove_left_behind(session: &Session, absorbed: &[JournalFile]) -> Result<(), StorageError> {
    let mut absorbed = absorbed.to_vec();
    absorbed.sort_by_key(|file| file.segment);
    for file in absorbed {
        session.retire(&file.path())?;
    }
    Ok(())
}
