//! What the own journal holds, by key: what must be written again before the oldest segment may go, and what must be
//! released when a key moves to another broker. Pure; the journal tells it what was appended, the owner of the keys
//! tells it which files are durable.

use std::collections::VecDeque;

use fnv::FnvHashMap;

use super::record::{Extent, Kind, Revision, records};

/// What a key needs in the newest segment before the oldest can go, with the revision it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    Document,
    /// The key need not be in memory any more, so here is its revision.
    Removed {
        revision: Revision,
    },
}

pub(crate) struct TrimIndex {
    /// Room a sealed segment is counted with at least: it stays reserved however little was written.
    segment_bytes: u64,
    /// Oldest first; only the last may be unsealed.
    segments: VecDeque<Segment>,
    keys: FnvHashMap<Box<str>, Key>,
}

#[derive(Debug)]
struct Segment {
    number: u64,
    /// Bytes acknowledged, from the segment's start.
    durable: u64,
    sealed: bool,
}

#[derive(Debug, Default)]
struct Key {
    /// The segment of the last whole state that was acknowledged.
    whole: Option<u64>,
    /// The segments with deltas acknowledged after it, oldest first.
    deltas: Vec<u64>,
    /// The last acknowledged record. `None` when all there may be is what a failed append left.
    last: Option<(Kind, Revision)>,
    /// What the durable file holds, or, for a removed key, that it is durably gone.
    file: Option<Revision>,
    /// A failed append may have left records that no acknowledged whole state followed.
    doubtful: bool,
    /// The newest segment that holds, or may hold, a record.
    newest: u64,
}

impl Key {
    fn is_file_current(&self) -> bool {
        self.last
            .is_none_or(|(_, revision)| self.file.is_some_and(|file| file >= revision))
    }

    fn needs(&self, segment: u64, journals_named: bool) -> Option<Carry> {
        let (kind, revision) = self.last?;
        let holds = self.whole == Some(segment) || self.deltas.first() == Some(&segment);
        let removed = kind == Kind::Removed;
        if !holds || (self.is_file_current() && !(removed && journals_named)) {
            return None;
        }
        Some(if removed {
            Carry::Removed { revision }
        } else {
            Carry::Document
        })
    }
}

impl TrimIndex {
    pub fn new(segment_bytes: u64) -> TrimIndex {
        TrimIndex {
            segment_bytes,
            segments: VecDeque::new(),
            keys: FnvHashMap::default(),
        }
    }

    /// A new segment takes over; the one before is sealed.
    pub fn open(&mut self, number: u64) {
        debug_assert!(
            self.segments
                .back()
                .is_none_or(|last| last.sealed && last.number < number),
            "segments follow each other, and the last one is sealed first"
        );
        self.segments.push_back(Segment {
            number,
            durable: 0,
            sealed: false,
        });
    }

    pub fn seal(&mut self) {
        if let Some(last) = self.segments.back_mut() {
            last.sealed = true;
        }
    }

    /// A batch in the newest segment was acknowledged; `durable` is where it ends there.
    pub fn appended(&mut self, batch: &[u8], durable: u64) {
        let newest = self.segments.back_mut().expect("a batch lies in a segment");
        newest.durable = durable;
        let segment = newest.number;
        for record in records(batch) {
            if record.kind == Kind::Released {
                self.keys.remove(record.key);
                continue;
            }
            // Not `entry`: a key that is known already, as nearly all are, must not be copied to be found.
            let key = match self.keys.get_mut(record.key) {
                Some(key) => key,
                None => self.keys.entry(record.key.into()).or_default(),
            };
            if record.kind.is_whole() {
                key.whole = Some(segment);
                key.deltas.clear();
                key.doubtful = false;
            } else if key.deltas.last() != Some(&segment) {
                key.deltas.push(segment);
            }
            key.last = Some((record.kind, record.revision));
            key.newest = segment;
        }
    }

    /// A batch in the newest segment failed, and any part of it may be found there. It proves nothing, so it frees no
    /// older record; but it may be found, so its keys are released when they move.
    pub fn append_failed(&mut self, batch: &[u8]) {
        let segment = self
            .segments
            .back()
            .expect("a batch lies in a segment")
            .number;
        for record in records(batch) {
            let key = self.keys.entry(record.key.into()).or_default();
            key.doubtful = true;
            key.newest = segment;
        }
    }

    /// The newest segment, in which nothing was ever acknowledged, was taken away again.
    pub fn discard_newest(&mut self) {
        let gone = self.segments.pop_back();
        debug_assert!(
            gone.is_some_and(|segment| segment.durable == 0),
            "only what holds nothing is discarded"
        );
    }

    /// The key's file, with that revision, is durable in its directory; or durably gone, after a `removed` of it.
    pub fn file_is(&mut self, key: &str, revision: Revision) {
        if let Some(key) = self.keys.get_mut(key) {
            key.file = key.file.max(Some(revision));
        }
    }

    pub fn total_bytes(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| {
                if segment.sealed {
                    segment.durable.max(self.segment_bytes)
                } else {
                    segment.durable
                }
            })
            .sum()
    }

    /// The oldest segment that is not written to any more.
    pub fn oldest_sealed(&self) -> Option<u64> {
        self.segments
            .front()
            .filter(|segment| segment.sealed)
            .map(|segment| segment.number)
    }

    /// What must be acknowledged in a newer segment before this one goes.
    pub fn needed_of(
        &self,
        segment: u64,
        journals_named: bool,
    ) -> impl Iterator<Item = (&str, Carry)> {
        self.keys
            .iter()
            .filter_map(move |(name, key)| Some((&**name, key.needs(segment, journals_named)?)))
    }

    /// The oldest segment is gone.
    pub fn trimmed(&mut self, segment: u64) {
        let gone = self.segments.pop_front();
        debug_assert!(
            gone.is_some_and(|gone| gone.number == segment),
            "the oldest segment goes first"
        );
        self.keys.retain(|_, key| {
            if key.whole == Some(segment) {
                key.whole = None;
            }
            if key.deltas.first() == Some(&segment) {
                key.deltas.remove(0);
            }
            key.newest > segment
        });
    }

    /// The keys whose last word in this journal is, or may be, a state: what a planned move must release.
    pub fn unreleased(&self) -> impl Iterator<Item = &str> {
        self.keys
            .iter()
            .filter(|(_, key)| {
                key.doubtful || key.last.is_some_and(|(kind, _)| kind != Kind::Removed)
            })
            .map(|(name, _)| &**name)
    }

    /// What a new segment's head says about those before it.
    pub fn extents(&self) -> Vec<Extent> {
        self.segments
            .iter()
            .map(|segment| Extent {
                segment: segment.number,
                durable: segment.durable,
            })
            .collect()
    }

    /// Each segment, and how far it can be read: a sealed one to its end, the newest as far as it is acknowledged.
    pub fn readable(&self) -> Vec<(u64, Option<u64>)> {
        self.segments
            .iter()
            .map(|segment| (segment.number, (!segment.sealed).then_some(segment.durable)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::encode;

    const SEGMENT: u64 = 1_000;

    fn rev(n: u64) -> Revision {
        Revision { term: 1, n }
    }

    fn batch(records: &[(Kind, &str, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &(kind, key, n) in records {
            encode(&mut bytes, kind, key, rev(n), b"");
        }
        bytes
    }

    /// One segment after the other, each with these records.
    fn index(segments: &[&[(Kind, &str, u64)]]) -> TrimIndex {
        let mut index = TrimIndex::new(SEGMENT);
        for (number, records) in (1..).zip(segments) {
            index.seal();
            index.open(number);
            index.appended(&batch(records), 100);
        }
        index
    }

    fn needed(index: &TrimIndex, segment: u64, journals_named: bool) -> Vec<(&str, Carry)> {
        let mut needed: Vec<_> = index.needed_of(segment, journals_named).collect();
        needed.sort_by_key(|(key, _)| *key);
        needed
    }

    use Kind::{Document, Offsets, Released, Removed};

    #[test]
    fn a_key_needs_the_segment_of_its_last_whole_state() {
        let index = index(&[
            &[(Document, "a", 1), (Document, "b", 2)],
            &[(Document, "b", 3)],
            &[],
        ]);
        assert_eq!(needed(&index, 1, false), [("a", Carry::Document)]);
        assert_eq!(needed(&index, 2, false), [("b", Carry::Document)]);
    }

    #[test]
    fn a_key_needs_the_segment_of_a_delta_that_no_whole_state_followed() {
        let mut index = index(&[
            &[(Document, "a", 1)],
            &[(Offsets, "a", 2)],
            &[(Offsets, "a", 3)],
        ]);
        assert_eq!(needed(&index, 1, false), [("a", Carry::Document)]);
        index.trimmed(1);
        assert_eq!(needed(&index, 2, false), [("a", Carry::Document)]);
        // The file of the whole state would not do: the delta is newer.
        index.file_is("a", rev(2));
        assert_eq!(needed(&index, 2, false), [("a", Carry::Document)]);
    }

    #[test]
    fn a_carried_on_document_frees_everything_before_it() {
        let mut index = index(&[&[(Document, "a", 1), (Offsets, "a", 2)], &[]]);
        index.appended(&batch(&[(Document, "a", 2)]), 200);
        assert_eq!(needed(&index, 1, false), []);
        assert_eq!(needed(&index, 2, false), [("a", Carry::Document)]);
    }

    #[test]
    fn a_key_whose_file_is_current_needs_nothing_until_it_changes() {
        let mut index = index(&[&[(Document, "a", 1)], &[]]);
        index.file_is("a", rev(1));
        assert_eq!(needed(&index, 1, false), []);
        index.appended(&batch(&[(Offsets, "a", 2)]), 200);
        assert_eq!(needed(&index, 1, false), [("a", Carry::Document)]);
        // A file that was older all along proves nothing.
        index.file_is("a", rev(1));
        assert_eq!(needed(&index, 1, false), [("a", Carry::Document)]);
        index.file_is("a", rev(2));
        assert_eq!(needed(&index, 1, false), []);
    }

    #[test]
    fn a_removed_is_carried_on_until_its_file_is_gone() {
        let mut index = index(&[&[(Document, "a", 1), (Removed, "a", 2)], &[]]);
        assert_eq!(
            needed(&index, 1, false),
            [("a", Carry::Removed { revision: rev(2) })]
        );
        index.file_is("a", rev(2));
        assert_eq!(needed(&index, 1, false), []);
    }

    #[test]
    fn while_a_journal_is_named_a_removed_that_is_the_last_word_is_carried_on() {
        let mut index = index(&[
            &[(Removed, "a", 1), (Removed, "b", 2)],
            &[(Document, "b", 3)],
            &[],
        ]);
        index.file_is("a", rev(1));
        index.file_is("b", rev(3));
        assert_eq!(
            needed(&index, 1, true),
            [("a", Carry::Removed { revision: rev(1) })]
        );
        assert_eq!(needed(&index, 1, false), []);
        // A current document needs no such thing: its file says it.
        assert_eq!(needed(&index, 2, true), []);
    }

    #[test]
    fn a_released_key_is_neither_carried_on_nor_released_again() {
        let index = index(&[&[(Document, "a", 1)], &[(Released, "a", 0)], &[]]);
        assert_eq!(needed(&index, 1, true), []);
        assert_eq!(needed(&index, 2, true), []);
        assert_eq!(index.unreleased().count(), 0);
    }

    #[test]
    fn a_key_regained_after_its_release_counts_from_there() {
        let index = index(&[
            &[(Document, "a", 1)],
            &[(Released, "a", 0)],
            &[(Document, "a", 9)],
            &[],
        ]);
        assert_eq!(needed(&index, 1, false), []);
        assert_eq!(needed(&index, 3, false), [("a", Carry::Document)]);
        assert_eq!(index.unreleased().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn a_key_is_released_as_long_as_its_last_word_is_a_state_even_with_a_current_file() {
        let mut index = index(&[
            &[(Document, "a", 1), (Document, "b", 1)],
            &[(Removed, "b", 2)],
            &[],
        ]);
        index.file_is("a", rev(1));
        assert_eq!(index.unreleased().collect::<Vec<_>>(), ["a"]);
        index.trimmed(1);
        assert_eq!(index.unreleased().count(), 0);
    }

    #[test]
    fn a_failed_append_frees_nothing_and_must_be_released() {
        let mut index = index(&[&[(Document, "a", 1)], &[]]);
        index.append_failed(&batch(&[
            (Document, "a", 2),
            (Document, "new", 3),
            (Removed, "gone", 4),
        ]));
        assert_eq!(needed(&index, 1, false), [("a", Carry::Document)]);
        let mut unreleased: Vec<_> = index.unreleased().collect();
        unreleased.sort_unstable();
        assert_eq!(unreleased, ["a", "gone", "new"]);
        // What was reloaded and made durable settles it.
        index.seal();
        index.open(3);
        index.appended(&batch(&[(Removed, "gone", 5)]), 100);
        assert_eq!(index.unreleased().count(), 2);
    }

    #[test]
    fn sealed_segments_count_with_the_room_they_keep() {
        let mut index = index(&[&[], &[]]);
        assert_eq!(index.total_bytes(), SEGMENT + 100);
        assert_eq!(index.oldest_sealed(), Some(1));
        index.trimmed(1);
        assert_eq!((index.total_bytes(), index.oldest_sealed()), (100, None));
    }
}
