//! From the bytes of journals and the revision of a key's file to what the key's state is. Pure.
//!
//! All journals and the file are one history, in the order of revisions: the newest whole state, then the deltas that
//! follow it one by one. Positions count only within one session's journal, where `released` voids what stands before
//! it. Bytes that never arrived at the end are no news; bytes that were there once and are bad now are an error, as is
//! a gap among the deltas: state is never guessed.

use std::collections::BTreeSet;
use std::ops::Range;

use bytes::Bytes;
use fnv::FnvHashMap;
use uuid::Uuid;

use super::record::{Extent, Item, Kind, Record, Revision, decode, marks};
use crate::error::StorageError;

/// All segments of one session's journal that a version names, or that its owner still has.
#[derive(Clone, Debug)]
pub struct SessionJournal {
    pub session: Uuid,
    /// Any order.
    pub segments: Vec<SegmentBytes>,
}

#[derive(Clone, Debug)]
pub struct SegmentBytes {
    pub number: u64,
    /// For messages.
    pub path: String,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub enum Content {
    Bytes(Bytes),
    /// Named, and known to be gone: the journal has been absorbed.
    Gone,
    Unreadable(StorageError),
}

/// What was found in a set of journals, by key.
#[derive(Default)]
pub struct Replay {
    journals: Vec<Journal>,
}

#[derive(Default)]
struct Journal {
    keys: FnvHashMap<String, Key>,
    /// The first bad place, and where sound records begin again after the last one (segment, position).
    damage: Option<(StorageError, Place)>,
}

type Place = (u64, usize);

/// A key's records in one journal, none of them older than its newest whole state there.
#[derive(Default)]
struct Key {
    whole: Option<Found>,
    deltas: Vec<Found>,
    /// The last record that made everything before it irrelevant here.
    settled: Option<Place>,
}

impl Key {
    fn is_empty(&self) -> bool {
        self.whole.is_none() && self.deltas.is_empty()
    }
}

struct Found {
    kind: Kind,
    revision: Revision,
    payload: Bytes,
}

/// What a key is, by its journals and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// No journal and no file knows it.
    Absent,
    /// It was deleted; a file that is still there is older.
    Removed { revision: Revision },
    /// `base`, changed by each of `deltas` in turn.
    State {
        base: Base,
        deltas: Vec<Bytes>,
        revision: Revision,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    File,
    Document(Bytes),
}

impl Replay {
    /// Reads journals whole. What cannot be read is remembered and refuses only the keys it concerns, in `resolve`.
    pub fn read(journals: Vec<SessionJournal>) -> Replay {
        let present = journals.into_iter().filter(|journal| {
            !journal
                .segments
                .iter()
                .any(|segment| matches!(segment.content, Content::Gone))
        });
        Replay {
            journals: present.map(Journal::read).collect(),
        }
    }

    /// Every key of which some journal holds a record.
    pub fn keys(&self) -> BTreeSet<&str> {
        self.journals
            .iter()
            .flat_map(|journal| &journal.keys)
            .filter(|(_, key)| !key.is_empty())
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// What was bad or unreadable, for the operator. While there is any, a key that no journal mentions must be resolved
    /// like one that is, as its record may be what was lost.
    pub fn damage(&self) -> impl Iterator<Item = &StorageError> {
        self.journals
            .iter()
            .filter_map(|journal| Some(&journal.damage.as_ref()?.0))
    }

    /// What the key is. `file` is the revision its file holds, `None` when there is no file; `in_force` is the assignment
    /// version that is applied.
    pub fn resolve(
        &self,
        key: &str,
        file: Option<Revision>,
        in_force: u64,
    ) -> Result<Resolved, StorageError> {
        for journal in &self.journals {
            journal.check_trusted(key)?;
        }
        let records = || {
            self.journals
                .iter()
                .filter_map(|journal| journal.keys.get(key))
        };
        let revisions = records()
            .flat_map(|key| key.whole.iter().chain(&key.deltas))
            .map(|found| found.revision);
        if let Some(ahead) = revisions
            .chain(file)
            .find(|revision| revision.term > in_force)
        {
            return Err(StorageError::Corrupt {
                path: key.to_owned(),
                why: format!(
                    "its revision {ahead} is of a later term than the assignment version {in_force} in force"
                ),
                remedy: "restore the newest __cluster/assignment.json before this key is served"
                    .to_owned(),
            });
        }

        let document = records()
            .filter_map(|key| key.whole.as_ref())
            .max_by_key(|found| found.revision);
        // A file that is as new as the record is that record, published.
        let document = document.filter(|found| file.is_none_or(|file| file < found.revision));
        let start = document.map(|found| found.revision).or(file);
        let mut deltas: Vec<&Found> = records()
            .flat_map(|key| &key.deltas)
            .filter(|delta| start.is_none_or(|start| delta.revision > start))
            .collect();
        deltas.sort_by_key(|delta| delta.revision);
        deltas.dedup_by_key(|delta| delta.revision);

        let removed = document.is_some_and(|found| found.kind == Kind::Removed);
        let mut revision = start.filter(|_| !removed);
        for delta in &deltas {
            if revision.map(Revision::next) != Some(delta.revision) {
                let before =
                    revision.map_or("no state".to_owned(), |revision| revision.to_string());
                return Err(StorageError::Corrupt {
                    path: key.to_owned(),
                    why: format!(
                        "the journal has its change {} but nothing between it and {before}",
                        delta.revision
                    ),
                    remedy: "restore its file or the journal segments that are missing".to_owned(),
                });
            }
            revision = Some(delta.revision);
        }

        Ok(match (revision, document) {
            (None, None) => Resolved::Absent,
            (None, Some(removed)) => Resolved::Removed {
                revision: removed.revision,
            },
            (Some(revision), document) => Resolved::State {
                base: document.map_or(Base::File, |found| Base::Document(found.payload.clone())),
                deltas: deltas
                    .into_iter()
                    .map(|delta| delta.payload.clone())
                    .collect(),
                revision,
            },
        })
    }
}

impl Journal {
    fn read(mut journal: SessionJournal) -> Journal {
        journal.segments.sort_by_key(|segment| segment.number);
        let durable = durable_extents(&journal);
        let mut read = Journal::default();
        for segment in &journal.segments {
            match &segment.content {
                Content::Bytes(bytes) => {
                    let durable = durable.get(&segment.number).copied();
                    read.segment(journal.session, segment, bytes, durable);
                }
                Content::Gone => unreachable!("a journal with a gone segment is ignored whole"),
                Content::Unreadable(error) => read.damaged(error.clone(), (segment.number + 1, 0)),
            }
        }
        read
    }

    /// Reads a segment. `durable` is how much of it a later segment proves to have been on the disk, if one does.
    fn segment(
        &mut self,
        session: Uuid,
        segment: &SegmentBytes,
        bytes: &Bytes,
        durable: Option<u64>,
    ) {
        let durable = durable.map(|durable| durable as usize);
        let mut at = 0;
        while at < bytes.len() {
            if let Some((item, len)) =
                decode(&bytes[at..]).filter(|(item, _)| belongs(item, session, segment, at))
            {
                if let Item::Record(record) = item {
                    let end = at + len;
                    self.record(
                        record,
                        bytes,
                        end - record.payload.len()..end,
                        (segment.number, at),
                    );
                }
                at += len;
                continue;
            }
            let later_marks = marks(bytes, session, at + 1);
            let proven = later_marks
                .map(|(_, durable)| durable as usize)
                .chain(durable);
            if !proven.into_iter().any(|durable| at < durable) {
                // Never arrived: a write that was under way, or that failed.
                return;
            }
            let resume = marks(bytes, session, at + 1)
                .next()
                .map_or(bytes.len(), |(resume, _)| resume);
            self.damaged(bad(segment, at), (segment.number, resume));
            at = resume;
        }
        if durable.is_some_and(|durable| at < durable) {
            self.damaged(bad(segment, at), (segment.number, at));
        }
    }

    fn record(&mut self, record: Record<'_>, bytes: &Bytes, payload: Range<usize>, place: Place) {
        let key = match self.keys.get_mut(record.key) {
            Some(key) => key,
            None => self.keys.entry(record.key.to_owned()).or_default(),
        };
        let (kind, revision) = (record.kind, record.revision);
        match kind {
            Kind::Released => {
                *key = Key {
                    settled: Some(place),
                    ..Key::default()
                }
            }
            Kind::Document | Kind::Removed => {
                key.settled = Some(place);
                // A carried-on document has the revision of the last change; either says the same.
                if key
                    .whole
                    .as_ref()
                    .is_none_or(|whole| whole.revision <= revision)
                {
                    key.deltas.retain(|delta| delta.revision > revision);
                    key.whole = Some(Found {
                        kind,
                        revision,
                        payload: bytes.slice(payload),
                    });
                }
            }
            Kind::Offsets => {
                if key
                    .whole
                    .as_ref()
                    .is_none_or(|whole| whole.revision < revision)
                {
                    key.deltas.push(Found {
                        kind,
                        revision,
                        payload: bytes.slice(payload),
                    });
                }
            }
        }
    }

    fn damaged(&mut self, error: StorageError, sound_from: Place) {
        match &mut self.damage {
            Some((_, from)) => *from = sound_from,
            None => self.damage = Some((error, sound_from)),
        }
    }

    /// Refuses a key of which a lost record may have been the last word: one that nothing settled after the damage.
    fn check_trusted(&self, key: &str) -> Result<(), StorageError> {
        let Some((error, sound_from)) = &self.damage else {
            return Ok(());
        };
        match self.keys.get(key).and_then(|key| key.settled) {
            Some(settled) if settled >= *sound_from => Ok(()),
            _ => Err(error.clone()),
        }
    }
}

/// Whether a sound frame is where its writer put it: a head at the start, a mark where it says.
fn belongs(item: &Item<'_>, session: Uuid, segment: &SegmentBytes, at: usize) -> bool {
    match item {
        Item::Head {
            session: found,
            segment: number,
            ..
        } => (*found, *number) == (session, segment.number) && at == 0,
        Item::Mark {
            session: found,
            offset,
            ..
        } => *found == session && *offset == at as u64,
        Item::Record(_) => at > 0,
    }
}

/// What the heads of later segments prove to have been durable of earlier ones.
fn durable_extents(journal: &SessionJournal) -> FnvHashMap<u64, u64> {
    let mut durable = FnvHashMap::default();
    for segment in &journal.segments {
        if let Content::Bytes(bytes) = &segment.content
            && let Some((item @ Item::Head { .. }, _)) = decode(bytes)
            && belongs(&item, journal.session, segment, 0)
            && let Item::Head { earlier, .. } = item
        {
            durable.extend(
                earlier
                    .iter()
                    .map(|&Extent { segment, durable }| (segment, durable)),
            );
        }
    }
    durable
}

fn bad(segment: &SegmentBytes, at: usize) -> StorageError {
    StorageError::Corrupt {
        path: segment.path.clone(),
        why: format!("the journal's record at byte {at} was durable once and does not read now"),
        remedy: "restore the file from a backup; only the keys whose last record may be lost are refused meanwhile"
            .to_owned(),
    }
}
