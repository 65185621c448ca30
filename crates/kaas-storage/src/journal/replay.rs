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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::{encode, encode_head, encode_mark};

    use Kind::{Document, Offsets, Released, Removed};

    type Change<'a> = (Kind, &'a str, (u64, u64), &'a str);

    fn rev((term, n): (u64, u64)) -> Revision {
        Revision { term, n }
    }

    /// A journal as its writer would have written it: segments of batches of records.
    fn journal(session: u128, segments: &[&[&[Change]]]) -> SessionJournal {
        let session = Uuid::from_u128(session);
        let mut earlier = Vec::new();
        let mut journal = SessionJournal {
            session,
            segments: Vec::new(),
        };
        for (number, batches) in (1..).zip(segments) {
            let mut bytes = encode_head(session, number, &earlier);
            let mut durable = 0;
            for batch in *batches {
                let mark = encode_mark(session, bytes.len() as u64, durable);
                bytes.extend_from_slice(&mark);
                for &(kind, key, revision, payload) in *batch {
                    encode(&mut bytes, kind, key, rev(revision), payload.as_bytes());
                }
                durable = bytes.len() as u64;
            }
            earlier.push(Extent {
                segment: number,
                durable,
            });
            journal.segments.push(SegmentBytes {
                number,
                path: format!("j.{number}"),
                content: Content::Bytes(bytes.into()),
            });
        }
        journal
    }

    fn edit(journal: &mut SessionJournal, segment: usize, edit: impl FnOnce(&mut Vec<u8>)) {
        let Content::Bytes(bytes) = &journal.segments[segment].content else {
            panic!("the segment has bytes")
        };
        let mut bytes = bytes.to_vec();
        edit(&mut bytes);
        journal.segments[segment].content = Content::Bytes(bytes.into());
    }

    /// Where a payload stands in a segment.
    fn place_of(bytes: &[u8], payload: &str) -> usize {
        let found = bytes
            .windows(payload.len())
            .position(|window| window == payload.as_bytes());
        found.expect("the payload is there")
    }

    fn state(base: &str, deltas: &[&str], revision: (u64, u64)) -> Resolved {
        Resolved::State {
            base: Base::Document(Bytes::copy_from_slice(base.as_bytes())),
            deltas: deltas
                .iter()
                .map(|delta| Bytes::copy_from_slice(delta.as_bytes()))
                .collect(),
            revision: rev(revision),
        }
    }

    fn resolve(
        journals: Vec<SessionJournal>,
        key: &str,
        file: Option<(u64, u64)>,
    ) -> Result<Resolved, String> {
        let replay = Replay::read(journals);
        replay
            .resolve(key, file.map(rev), 99)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_newest_whole_state_is_followed_by_the_deltas_after_it() {
        let journal = journal(
            1,
            &[
                &[
                    &[(Document, "a", (5, 1), "old"), (Offsets, "a", (5, 2), "x")],
                    &[(Document, "a", (5, 3), "new")],
                ],
                &[
                    &[(Offsets, "a", (5, 4), "y")],
                    &[(Offsets, "a", (5, 5), "z")],
                ],
            ],
        );
        assert_eq!(
            resolve(vec![journal.clone()], "a", None),
            Ok(state("new", &["y", "z"], (5, 5)))
        );
        assert_eq!(resolve(vec![journal], "b", None), Ok(Resolved::Absent));
    }

    #[test]
    fn a_file_newer_than_the_records_wins_and_one_in_the_middle_takes_the_rest() {
        let journal = journal(
            1,
            &[&[&[
                (Document, "a", (5, 1), "doc"),
                (Offsets, "a", (5, 2), "x"),
                (Offsets, "a", (5, 3), "y"),
            ]]],
        );
        let by_file = |deltas: &[&str], revision| {
            Ok(Resolved::State {
                base: Base::File,
                deltas: deltas
                    .iter()
                    .map(|delta| Bytes::copy_from_slice(delta.as_bytes()))
                    .collect(),
                revision: rev(revision),
            })
        };
        let journals = || vec![journal.clone()];
        assert_eq!(
            resolve(journals(), "a", Some((4, 90))),
            Ok(state("doc", &["x", "y"], (5, 3)))
        );
        assert_eq!(
            resolve(journals(), "a", Some((5, 1))),
            by_file(&["x", "y"], (5, 3))
        );
        assert_eq!(
            resolve(journals(), "a", Some((5, 2))),
            by_file(&["y"], (5, 3))
        );
        assert_eq!(resolve(journals(), "a", Some((5, 3))), by_file(&[], (5, 3)));
        assert_eq!(resolve(journals(), "a", Some((6, 1))), by_file(&[], (6, 1)));
        assert_eq!(resolve(vec![], "a", Some((6, 1))), by_file(&[], (6, 1)));
    }

    #[test]
    fn all_journals_are_one_history_in_the_order_of_revisions() {
        let old = journal(
            1,
            &[&[&[(Document, "a", (5, 1), "old"), (Offsets, "a", (5, 2), "x")]]],
        );
        let new = journal(
            2,
            &[&[&[(Document, "a", (6, 1), "new"), (Offsets, "a", (6, 2), "y")]]],
        );
        let expected = Ok(state("new", &["y"], (6, 2)));
        assert_eq!(resolve(vec![old.clone(), new.clone()], "a", None), expected);
        assert_eq!(resolve(vec![new, old], "a", None), expected);
    }

    #[test]
    fn what_a_zombie_wrote_late_loses_against_a_higher_term() {
        let zombie = journal(
            1,
            &[&[&[
                (Document, "a", (5, 1), "doc"),
                (Offsets, "a", (5, 2), "late"),
            ]]],
        );
        let owner = journal(2, &[&[&[(Document, "a", (6, 1), "owner's")]]]);
        assert_eq!(
            resolve(vec![zombie, owner], "a", Some((5, 1))),
            Ok(state("owner's", &[], (6, 1)))
        );
    }

    #[test]
    fn a_removed_key_stays_removed_though_its_file_is_still_there() {
        let journal = journal(
            1,
            &[&[&[(Document, "a", (5, 1), "doc"), (Removed, "a", (5, 2), "")]]],
        );
        let removed = Ok(Resolved::Removed {
            revision: rev((5, 2)),
        });
        assert_eq!(resolve(vec![journal.clone()], "a", Some((5, 1))), removed);
        assert_eq!(resolve(vec![journal], "a", None), removed);
    }

    #[test]
    fn a_key_made_again_after_its_removal_starts_from_its_document() {
        let journal = journal(
            1,
            &[&[&[
                (Removed, "a", (5, 2), ""),
                (Document, "a", (5, 7), "again"),
                (Offsets, "a", (5, 8), "x"),
            ]]],
        );
        assert_eq!(
            resolve(vec![journal], "a", None),
            Ok(state("again", &["x"], (5, 8)))
        );
    }

    #[test]
    fn a_gap_among_the_deltas_is_an_error_and_concerns_only_its_key() {
        let journal = journal(
            1,
            &[&[&[
                (Document, "a", (5, 1), "doc"),
                (Offsets, "a", (5, 3), "x"),
                (Document, "b", (5, 1), "doc"),
            ]]],
        );
        let error = resolve(vec![journal.clone()], "a", None).unwrap_err();
        assert!(
            error.contains("change 5.3 but nothing between it and 5.1"),
            "{error}"
        );
        assert_eq!(
            resolve(vec![journal], "b", None),
            Ok(state("doc", &[], (5, 1)))
        );
    }

    #[test]
    fn deltas_without_any_whole_state_are_a_gap() {
        let journal = journal(1, &[&[&[(Offsets, "a", (5, 3), "x")]]]);
        assert!(resolve(vec![journal.clone()], "a", None).is_err());
        assert!(resolve(vec![journal.clone()], "a", Some((5, 1))).is_err());
        assert!(resolve(vec![journal], "a", Some((5, 2))).is_ok());
    }

    #[test]
    fn a_delta_of_a_later_term_without_its_document_is_a_gap() {
        let journal = journal(
            1,
            &[&[&[(Document, "a", (5, 1), "doc"), (Offsets, "a", (6, 2), "x")]]],
        );
        assert!(resolve(vec![journal], "a", None).is_err());
    }

    #[test]
    fn released_voids_earlier_records_of_its_key_in_the_same_journal_only() {
        let old = journal(1, &[&[&[(Document, "a", (5, 1), "kept")]]]);
        let new = journal(
            2,
            &[
                &[&[
                    (Document, "a", (6, 1), "void"),
                    (Document, "b", (6, 1), "other"),
                ]],
                &[&[(Released, "a", (0, 0), "")]],
            ],
        );
        assert_eq!(resolve(vec![new.clone()], "a", None), Ok(Resolved::Absent));
        // It says nothing about the file or other journals.
        assert_eq!(
            resolve(vec![new.clone()], "a", Some((7, 1))),
            Ok(Resolved::State {
                base: Base::File,
                deltas: vec![],
                revision: rev((7, 1))
            })
        );
        assert_eq!(
            resolve(vec![old, new.clone()], "a", None),
            Ok(state("kept", &[], (5, 1)))
        );
        assert_eq!(
            resolve(vec![new], "b", None),
            Ok(state("other", &[], (6, 1)))
        );
    }

    #[test]
    fn a_key_regained_after_its_release_counts_again() {
        let journal = journal(
            1,
            &[&[
                &[(Document, "a", (5, 1), "void")],
                &[(Released, "a", (0, 0), "")],
                &[(Document, "a", (7, 4), "back"), (Offsets, "a", (7, 5), "x")],
            ]],
        );
        assert_eq!(
            resolve(vec![journal], "a", Some((6, 1))),
            Ok(state("back", &["x"], (7, 5)))
        );
    }

    #[test]
    fn a_carried_on_document_with_the_revision_of_the_last_delta_changes_nothing() {
        let journal = journal(
            1,
            &[
                &[&[(Document, "a", (5, 1), "doc"), (Offsets, "a", (5, 2), "x")]],
                &[&[
                    (Document, "a", (5, 2), "doc+x"),
                    (Offsets, "a", (5, 3), "y"),
                ]],
            ],
        );
        assert_eq!(
            resolve(vec![journal.clone()], "a", None),
            Ok(state("doc+x", &["y"], (5, 3)))
        );
        // And the segment before it may go.
        let mut trimmed = journal;
        trimmed.segments.remove(0);
        assert_eq!(
            resolve(vec![trimmed], "a", None),
            Ok(state("doc+x", &["y"], (5, 3)))
        );
    }

    #[test]
    fn a_named_journal_of_which_any_file_is_gone_is_ignored_whole() {
        let mut absorbed = journal(
            1,
            &[
                &[&[(Document, "a", (5, 1), "x")]],
                &[&[(Document, "b", (5, 2), "y")]],
            ],
        );
        absorbed.segments[0].content = Content::Gone;
        let other = journal(2, &[&[&[(Document, "c", (5, 1), "z")]]]);
        let replay = Replay::read(vec![absorbed, other]);
        assert_eq!(replay.keys(), BTreeSet::from(["c"]));
        assert_eq!(replay.damage().count(), 0);
    }

    #[test]
    fn a_torn_tail_ends_a_segment_without_an_error() {
        let mut torn = journal(
            1,
            &[&[
                &[(Document, "a", (5, 1), "first")],
                &[(Offsets, "a", (5, 2), "torn")],
            ]],
        );
        edit(&mut torn, 0, |bytes| bytes.truncate(bytes.len() - 1));
        assert_eq!(
            resolve(vec![torn], "a", None),
            Ok(state("first", &[], (5, 1)))
        );
    }

    #[test]
    fn a_hole_in_the_last_batch_is_a_torn_tail_too() {
        let mut torn = journal(
            1,
            &[&[
                &[(Document, "a", (5, 1), "first")],
                &[
                    (Offsets, "a", (5, 2), "hole"),
                    (Offsets, "b", (5, 3), "behind"),
                ],
            ]],
        );
        edit(&mut torn, 0, |bytes| {
            let at = place_of(bytes, "hole");
            bytes[at..at + 4].fill(0);
        });
        let replay = Replay::read(vec![torn]);
        assert_eq!(replay.keys(), BTreeSet::from(["a"]));
        assert_eq!(replay.damage().count(), 0);
    }

    #[test]
    fn a_head_that_never_arrived_is_a_torn_tail_though_its_batch_did() {
        let mut torn = journal(1, &[&[&[(Document, "a", (5, 1), "first")]]]);
        edit(&mut torn, 0, |bytes| bytes[..8].fill(0));
        let replay = Replay::read(vec![torn]);
        assert_eq!((replay.keys().len(), replay.damage().count()), (0, 0));
    }

    #[test]
    fn a_bad_record_before_a_later_batch_is_an_error_that_names_the_file_and_the_position() {
        let mut bad = journal(
            1,
            &[&[
                &[
                    (Document, "a", (5, 1), "alpha"),
                    (Document, "b", (5, 2), "beta"),
                ],
                &[(Document, "c", (5, 3), "gamma")],
            ]],
        );
        let mut at = 0;
        edit(&mut bad, 0, |bytes| {
            let payload = place_of(bytes, "beta");
            bytes[payload] ^= 1;
            // Frame, fixed part and a key of one byte stand before the payload.
            at = payload - (8 + 19 + 1);
        });
        for lost in ["a", "b", "never seen"] {
            let error = resolve(vec![bad.clone()], lost, None).unwrap_err();
            assert!(
                error.starts_with(&format!("j.1: the journal's record at byte {at} ")),
                "{error}"
            );
        }
        // A whole state after the damage stands whatever was lost.
        assert_eq!(
            resolve(vec![bad], "c", None),
            Ok(state("gamma", &[], (5, 3)))
        );
    }

    #[test]
    fn a_segment_cut_below_what_a_later_one_proves_durable_is_an_error() {
        let mut cut = journal(
            1,
            &[
                &[
                    &[(Document, "a", (5, 1), "alpha")],
                    &[(Document, "b", (5, 2), "beta")],
                ],
                &[&[(Document, "c", (5, 3), "gamma")]],
            ],
        );
        edit(&mut cut, 0, |bytes| bytes.truncate(place_of(bytes, "beta")));
        let replay = Replay::read(vec![cut.clone()]);
        assert!(
            replay
                .damage()
                .next()
                .unwrap()
                .to_string()
                .starts_with("j.1: ")
        );
        assert!(replay.resolve("b", None, 99).is_err());
        assert!(replay.resolve("c", None, 99).is_ok());
        // Without the later segment nobody could tell.
        cut.segments.truncate(1);
        assert_eq!(resolve(vec![cut], "b", None), Ok(Resolved::Absent));
    }

    #[test]
    fn the_rest_of_a_failed_append_before_a_later_segment_is_no_damage() {
        let mut sealed = journal(
            1,
            &[
                &[&[(Document, "a", (5, 1), "alpha")]],
                &[&[(Document, "b", (5, 3), "beta")]],
            ],
        );
        edit(&mut sealed, 0, |bytes| {
            let mut failed =
                encode_mark(Uuid::from_u128(1), bytes.len() as u64, bytes.len() as u64).to_vec();
            encode(&mut failed, Offsets, "a", rev((5, 2)), b"half");
            bytes.extend_from_slice(&failed[..failed.len() - 1]);
        });
        assert_eq!(
            resolve(vec![sealed.clone()], "a", None),
            Ok(state("alpha", &[], (5, 1)))
        );
        assert_eq!(Replay::read(vec![sealed]).damage().count(), 0);
    }

    #[test]
    fn an_unreadable_segment_refuses_the_keys_that_nothing_settles_after_it() {
        let mut unreadable = journal(
            1,
            &[
                &[&[(Document, "a", (5, 1), "a")]],
                &[&[(Document, "b", (5, 2), "b"), (Released, "c", (0, 0), "")]],
            ],
        );
        let error = StorageError::from_io("read", "j.1", std::io::Error::other("bad sector"));
        unreadable.segments[0].content = Content::Unreadable(error);
        assert!(resolve(vec![unreadable.clone()], "a", None).is_err());
        assert!(resolve(vec![unreadable.clone()], "b", None).is_ok());
        assert_eq!(resolve(vec![unreadable], "c", None), Ok(Resolved::Absent));
    }

    #[test]
    fn a_revision_above_the_version_in_force_is_an_error() {
        let journal = journal(1, &[&[&[(Document, "a", (5, 1), "a")]]]);
        let replay = Replay::read(vec![journal]);
        assert!(replay.resolve("a", None, 5).is_ok());
        let error = replay.resolve("a", None, 4).unwrap_err().to_string();
        assert!(
            error.contains("5.1 is of a later term than the assignment version 4"),
            "{error}"
        );
        assert!(replay.resolve("file only", Some(rev((6, 1))), 5).is_err());
    }

    #[test]
    fn bytes_of_another_session_or_another_segment_are_not_taken_for_this_one() {
        let other = journal(2, &[&[&[(Document, "a", (5, 1), "a")]]]);
        let foreign = SessionJournal {
            session: Uuid::from_u128(1),
            ..other.clone()
        };
        assert_eq!(resolve(vec![foreign], "a", None), Ok(Resolved::Absent));
        let mut moved = other;
        moved.segments[0].number = 2;
        assert_eq!(resolve(vec![moved], "a", None), Ok(Resolved::Absent));
    }
}
