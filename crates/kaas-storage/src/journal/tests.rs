//! The journal on a volume in memory, with faults, fences and power cuts.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};

use proptest::prelude::*;
use uuid::Uuid;

use super::replay::{Base, Replay, Resolved};
use super::*;
use crate::layout;
use crate::session::{self, SessionKind};
use crate::volume::DiskVolume;
use crate::volume::faulty::{Fault, FaultyVolume};
use crate::volume::memory::MemoryVolume;

mod histories;

const TERM: u64 = 5;

fn memory() -> MemoryVolume {
    let volume = MemoryVolume::new();
    layout::create(&volume).unwrap();
    volume
}

fn rev(n: u64) -> Revision {
    Revision { term: TERM, n }
}

fn record(kind: Kind, key: &str, n: u64, payload: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes, kind, key, rev(n), payload.as_bytes());
    bytes
}

/// A journal whose waiters are numbers.
struct Fixture {
    session: Arc<Session>,
    journal: Journal<u32>,
    finished: Receiver<Batch<u32>>,
}

impl Fixture {
    fn start(volume: Arc<dyn Volume>, segment_bytes: u64) -> Fixture {
        let session = Session::create(volume, SessionKind::Broker, 1, Uuid::from_u128(1)).unwrap();
        Fixture::over(Arc::new(session), segment_bytes)
    }

    fn over(session: Arc<Session>, segment_bytes: u64) -> Fixture {
        let (send, finished) = channel();
        // The test may have stopped listening.
        let finish = Box::new(move |batch| drop(send.send(batch)));
        let journal =
            Journal::start_with_segments_of(segment_bytes, Arc::clone(&session), finish).unwrap();
        Fixture {
            session,
            journal,
            finished,
        }
    }

    fn submit(&self, records: &[u8], waiter: u32) -> u64 {
        self.journal.submit(records, &mut vec![waiter])
    }

    fn next(&self) -> Batch<u32> {
        self.finished.recv().unwrap()
    }

    fn write(&self, records: &[u8]) -> Result<(), BatchFailed> {
        self.submit(records, 0);
        self.next().outcome
    }

    fn segments(&self) -> Vec<u64> {
        let readable = self.journal.shared.index.lock().readable();
        readable.into_iter().map(|(number, _)| number).collect()
    }

    fn resolve(&self, key: &str) -> Result<Resolved, StorageError> {
        Replay::read(vec![self.journal.read_back()]).resolve(key, None, TERM)
    }
}

fn state(base: &str, deltas: &[&str], n: u64) -> Resolved {
    Resolved::State {
        base: Base::Document(Bytes::copy_from_slice(base.as_bytes())),
        deltas: deltas
            .iter()
            .map(|delta| Bytes::copy_from_slice(delta.as_bytes()))
            .collect(),
        revision: rev(n),
    }
}

/// What the journals left behind on a volume say about a key.
fn inherited(volume: &dyn Volume, key: &str) -> Resolved {
    let named = list_left_behind(volume).unwrap();
    let replay = Replay::read(read_left_behind(volume, &named));
    assert_eq!(
        replay.damage().map(ToString::to_string).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    replay.resolve(key, None, TERM).unwrap()
}

const NO_LIMIT: TrimLimit = TrimLimit {
    max_bytes: 0,
    documents_behind_bytes: 0,
    journals_named: false,
};

#[test]
fn what_was_acknowledged_is_found_after_a_fence_and_a_power_cut() {
    for seed in 0..100 {
        let volume = memory();
        let broker = Fixture::start(Arc::new(volume.clone()), SEGMENT_BYTES);
        broker
            .write(&record(Kind::Document, "a", 1, "doc"))
            .unwrap();
        broker.write(&record(Kind::Offsets, "a", 2, "x")).unwrap();
        let volume = volume.power_cut(seed);
        session::fence(&volume, broker.session.name()).unwrap();
        assert_eq!(inherited(&volume, "a"), state("doc", &["x"], 2));
    }
}

#[test]
fn everything_works_on_a_disk() {
    let dir = tempfile::tempdir().unwrap();
    let volume = Arc::new(DiskVolume::open(dir.path()).unwrap());
    layout::create(&*volume).unwrap();
    let broker = Fixture::start(Arc::clone(&volume) as _, 1_000);
    for n in 1..50 {
        broker
            .write(&record(Kind::Document, "a", n, "a document of some bytes"))
            .unwrap();
    }
    assert!(broker.journal.trim(NO_LIMIT).unwrap() > 0);
    broker.write(&record(Kind::Offsets, "a", 50, "x")).unwrap();
    session::fence(&*volume, broker.session.name()).unwrap();
    assert!(
        broker
            .write(&record(Kind::Offsets, "a", 51, "late"))
            .is_err()
    );
    let Resolved::State { deltas, .. } = inherited(&*volume, "a") else {
        panic!("the key is there")
    };
    assert!(deltas.first().is_some_and(|delta| delta == "x"));
}

#[test]
fn waiters_come_back_in_order_each_with_its_batch() {
    let broker = Fixture::start(Arc::new(memory()), SEGMENT_BYTES);
    let mut expected = Vec::new();
    for waiter in 0..1_000 {
        broker.submit(
            &record(Kind::Document, "a", u64::from(waiter), "doc"),
            waiter,
        );
        expected.push(waiter);
    }
    let mut found = Vec::new();
    let mut numbers = Vec::new();
    while found.len() < expected.len() {
        let batch = broker.next();
        batch.outcome.unwrap();
        found.extend(batch.waiters);
        numbers.push(batch.number);
    }
    assert_eq!(found, expected);
    assert!(numbers.is_sorted());
}

#[test]
fn a_waiter_without_records_is_answered_without_touching_the_volume() {
    let volume = FaultyVolume::new(Arc::new(memory()));
    let broker = Fixture::start(Arc::new(volume.clone()), SEGMENT_BYTES);
    broker
        .write(&record(Kind::Document, "a", 1, "doc"))
        .unwrap();
    volume.fail_from(1, Fault::Io);
    broker.submit(&[], 7);
    let batch = broker.next();
    assert_eq!((batch.waiters, batch.outcome.is_ok()), (vec![7], true));
}

#[test]
fn dropping_the_journal_writes_what_was_submitted() {
    let volume = memory();
    let broker = Fixture::start(Arc::new(volume.clone()), SEGMENT_BYTES);
    broker.submit(&record(Kind::Document, "a", 1, "doc"), 1);
    let (session, finished) = (broker.session, broker.finished);
    drop(broker.journal);
    assert_eq!(finished.recv().unwrap().waiters, [1]);
    session::fence(&volume, session.name()).unwrap();
    assert_eq!(inherited(&volume, "a"), state("doc", &[], 1));
}

#[test]
fn a_batch_lies_in_one_segment_and_a_large_one_gets_a_larger_segment() {
    let broker = Fixture::start(Arc::new(memory()), 1_000);
    let large = "x".repeat(3_000);
    for (n, payload) in [(1, "small"), (2, &large), (3, "small")] {
        broker
            .write(&record(Kind::Document, "a", n, payload))
            .unwrap();
    }
    assert_eq!(broker.segments(), [1, 2, 3]);
    for n in 4..40 {
        broker
            .write(&record(
                Kind::Document,
                "a",
                n,
                "filler filler filler filler",
            ))
            .unwrap();
    }
    let journal = broker.journal.read_back();
    for segment in &journal.segments[2..] {
        let Content::Bytes(bytes) = &segment.content else {
            panic!("every segment reads")
        };
        assert!(bytes.len() <= 1_000);
    }
    assert!(journal.segments.len() > 4);
}

#[test]
fn a_batch_is_not_acknowledged_by_a_session_that_was_fenced_at_any_call() {
    for nth in 1.. {
        let disk = memory();
        let volume = FaultyVolume::new(Arc::new(disk.clone()));
        let broker = Fixture::start(Arc::new(volume.clone()), SEGMENT_BYTES);
        broker
            .write(&record(Kind::Document, "a", 1, "doc"))
            .unwrap();
        let calls = volume.calls();
        let (fencer, name) = (disk.clone(), broker.session.name());
        let (tell, fenced) = channel();
        volume.interrupt_at(nth, move || {
            session::fence(&fencer, name).unwrap();
            tell.send(inherited(&fencer, "a")).unwrap();
        });
        let outcome = broker.write(&record(Kind::Offsets, "a", 2, "x"));
        if volume.calls() < calls + nth {
            outcome.unwrap();
            return;
        }
        let heirs_view = fenced.recv().unwrap();
        match outcome {
            Ok(()) => assert_eq!(heirs_view, state("doc", &["x"], 2), "call {nth}"),
            Err(failed) => assert!(failed.error.is_fenced(), "call {nth}: {}", failed.error),
        }
    }
}

#[test]
fn a_failed_append_seals_the_segment_and_names_the_keys() {
    // Only faults that cannot befall the thread that prepares the next segment meanwhile.
    for fault in [Fault::ShortWrite, Fault::FailedSync] {
        let volume = FaultyVolume::new(Arc::new(memory()));
        let broker = Fixture::start(Arc::new(volume.clone()), SEGMENT_BYTES);
        broker
            .write(&record(Kind::Document, "a", 1, "doc"))
            .unwrap();
        volume.fail_at(1, fault);
        let both = [
            record(Kind::Offsets, "b", 9, "x"),
            record(Kind::Offsets, "a", 2, "x"),
        ]
        .concat();
        let failed = broker.write(&[both.clone(), both].concat()).unwrap_err();
        assert_eq!(failed.keys, ["a", "b"]);
        assert!(!failed.error.is_fenced());
        assert!(broker.journal.resume(2));
        broker
            .write(&record(Kind::Document, "a", 3, "reloaded"))
            .unwrap();
        assert_eq!(broker.segments(), [1, 2], "{fault:?}");
        assert_eq!(broker.resolve("a").unwrap(), state("reloaded", &[], 3));
    }
}

#[test]
fn after_a_failure_every_batch_fails_until_its_owner_has_seen_it() {
    let volume = FaultyVolume::new(Arc::new(memory()));
    let broker = Fixture::start(Arc::new(volume.clone()), SEGMENT_BYTES);
    broker
        .write(&record(Kind::Document, "a", 1, "doc"))
        .unwrap();
    volume.fail_at(1, Fault::FailedSync);
    broker
        .write(&record(Kind::Offsets, "a", 2, "x"))
        .unwrap_err();
    // The owner has not seen it yet, and goes on where it believes to be; the volume is well again.
    let failed = broker
        .write(&record(Kind::Offsets, "a", 3, "y"))
        .unwrap_err();
    assert_eq!(failed.keys, ["a"]);
    // Nor is anyone answered who only waits for what came before.
    broker.submit(&[], 7);
    let batch = broker.next();
    assert!(batch.outcome.is_err());
    assert!(
        !broker.journal.resume(2),
        "two later failures have not been seen"
    );
    assert!(!broker.journal.resume(3));
    assert!(broker.journal.resume(4));
    broker
        .write(&record(Kind::Document, "a", 4, "doc"))
        .unwrap();
}

#[test]
fn a_full_volume_is_survived_without_leaving_segments_behind() {
    let volume = FaultyVolume::new(Arc::new(memory()));
    let broker = Fixture::start(Arc::new(volume.clone()), SEGMENT_BYTES);
    broker
        .write(&record(Kind::Document, "a", 1, "doc"))
        .unwrap();
    volume.fail_from(1, Fault::Full);
    for _ in 0..50 {
        broker.submit(&record(Kind::Document, "a", 2, "doc"), 0);
        let batch = broker.next();
        assert!(batch.outcome.unwrap_err().error.is_full());
        assert!(broker.journal.resume(batch.number));
    }
    volume.heal();
    broker
        .write(&record(Kind::Document, "a", 3, "healed"))
        .unwrap();
    assert_eq!(broker.segments().len(), 2);
    assert_eq!(broker.resolve("a").unwrap(), state("healed", &[], 3));
}

#[test]
fn a_fenced_journal_does_not_resume() {
    let volume = memory();
    let broker = Fixture::start(Arc::new(volume.clone()), SEGMENT_BYTES);
    broker
        .write(&record(Kind::Document, "a", 1, "doc"))
        .unwrap();
    session::fence(&volume, broker.session.name()).unwrap();
    assert!(
        broker
            .write(&record(Kind::Offsets, "a", 2, "x"))
            .unwrap_err()
            .error
            .is_fenced()
    );
    assert!(!broker.journal.resume(2));
    assert!(
        broker
            .write(&record(Kind::Offsets, "a", 3, "x"))
            .unwrap_err()
            .error
            .is_fenced()
    );
}

#[test]
fn the_oldest_segment_goes_only_after_what_it_holds_is_carried_on() {
    let volume = memory();
    let broker = Fixture::start(Arc::new(volume.clone()), 400);
    let both = [
        record(Kind::Document, "a", 1, "a1"),
        record(Kind::Removed, "b", 2, ""),
    ]
    .concat();
    broker.write(&both).unwrap();
    for n in 3..30 {
        broker
            .write(&record(Kind::Document, "filler", n, &"x".repeat(100)))
            .unwrap();
    }
    assert_eq!(broker.journal.trim(NO_LIMIT).unwrap(), 0);
    let mut wanted = broker.journal.wanted(NO_LIMIT);
    wanted.sort_by_key(|(key, _)| key.clone());
    assert_eq!(
        wanted,
        [
            ("a".to_owned(), Carry::Document),
            ("b".to_owned(), Carry::Removed { revision: rev(2) })
        ]
    );
    let carried = [
        record(Kind::Document, "a", 1, "a1"),
        record(Kind::Removed, "b", 2, ""),
    ]
    .concat();
    broker.write(&carried).unwrap();
    assert!(broker.journal.trim(NO_LIMIT).unwrap() > 0);
    assert!(!volume.exists(&broker.session.path("j.1")).unwrap());
    assert_eq!(broker.resolve("a").unwrap(), state("a1", &[], 1));
    assert_eq!(
        broker.resolve("b").unwrap(),
        Resolved::Removed { revision: rev(2) }
    );
    // Within its limit the journal wants nothing.
    let roomy = TrimLimit {
        max_bytes: DEFAULT_MAX_BYTES,
        ..NO_LIMIT
    };
    let busy = TrimLimit {
        documents_behind_bytes: DEFAULT_MAX_BYTES,
        ..NO_LIMIT
    };
    for limit in [roomy, busy] {
        assert!(
            broker.journal.wanted(limit).is_empty() && broker.journal.trim(limit).unwrap() == 0
        );
    }
}

#[test]
fn absorbed_journals_are_removed_oldest_first_and_a_half_removed_one_is_ignored() {
    let disk = memory();
    let broker = Fixture::start(Arc::new(disk.clone()), 300);
    for n in 1..10 {
        broker
            .write(&record(Kind::Document, "a", n, &"x".repeat(100)))
            .unwrap();
    }
    session::fence(&disk, broker.session.name()).unwrap();
    let named = list_left_behind(&disk).unwrap();
    assert!(named.len() > 2 && named.is_sorted_by_key(|file| file.segment));
    let volume = FaultyVolume::new(Arc::new(disk.clone()));
    let controller = Session::create(
        Arc::new(volume.clone()),
        SessionKind::Controller,
        1,
        Uuid::from_u128(9),
    )
    .unwrap();
    // The rename into S, the directory's sync, the look at the grave and its removal: four calls a segment.
    volume.fail_from(6, Fault::Io);
    remove_left_behind(&controller, &named).unwrap_err();
    let left = list_left_behind(&disk).unwrap();
    assert!(!left.is_empty() && named.ends_with(&left), "{left:?}");
    let replay = Replay::read(read_left_behind(&disk, &named));
    assert_eq!((replay.keys().len(), replay.damage().count()), (0, 0));
}

#[test]
fn a_journal_file_reads_as_it_is_written() {
    let name = "b3.00000000-0000-0000-0000-000000000007.12";
    let file: JournalFile = name.parse().unwrap();
    assert_eq!(
        (file.session.node_id, file.segment, file.to_string()),
        (3, 12, name.to_owned())
    );
    assert!(
        "b3.00000000-0000-0000-0000-000000000007"
            .parse::<JournalFile>()
            .is_err()
    );
}

/// One change of a history: its key, and whether it is made as a document, a delta or a removal.
#[derive(Clone, Copy, Debug)]
enum Step {
    Document,
    Delta,
    Remove,
}

fn any_step() -> impl Strategy<Value = (usize, Step)> {
    let step =
        prop_oneof![2 => Just(Step::Document), 6 => Just(Step::Delta), 1 => Just(Step::Remove)];
    (0..4usize, step)
}

/// One step of a journal that is trimmed.
#[derive(Clone, Copy, Debug)]
enum Move {
    Change(usize, Step),
    File(usize),
    NewSegment,
    Trim,
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => any_step().prop_map(|(key, step)| Move::Change(key, step)),
        2 => (0..4usize).prop_map(Move::File),
        2 => Just(Move::NewSegment),
        2 => Just(Move::Trim),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_journal_cut_at_any_byte_replays_to_a_prefix(
        batches in prop::collection::vec(prop::collection::vec(any_step(), 1..5), 1..8),
        cut: prop::sample::Index,
        garbage in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        const KEYS: [&str; 4] = ["a", "b", "c", "d"];
        let session = Uuid::from_u128(1);
        let mut bytes = encode_head(session, 1, &[]);
        // After each record: where it ends, and what the keys are then.
        let mut prefixes = vec![(0, BTreeMap::new())];
        let mut keys: BTreeMap<&str, Resolved> = BTreeMap::new();
        let mut durable = 0;
        let mut n = 0;
        for batch in &batches {
            let mark = encode_mark(session, bytes.len() as u64, durable);
            bytes.extend_from_slice(&mark);
            for &(key, step) in batch {
                let key = KEYS[key];
                n += 1;
                let text = n.to_string();
                let known = match keys.get(key) {
                    Some(Resolved::State { base, deltas, revision }) => Some((base.clone(), deltas.clone(), *revision)),
                    _ => None,
                };
                let payload = Bytes::from(text.clone().into_bytes());
                let (kind, revision, now) = match (step, known) {
                    (Step::Remove, _) => (Kind::Removed, rev(100 * n), Resolved::Removed { revision: rev(100 * n) }),
                    (Step::Delta, Some((base, mut deltas, revision))) => {
                        deltas.push(payload);
                        let revision = revision.next();
                        (Kind::Offsets, revision, Resolved::State { base, deltas, revision })
                    }
                    (Step::Document | Step::Delta, _) => (Kind::Document, rev(100 * n), state(&text, &[], 100 * n)),
                };
                encode(&mut bytes, kind, key, revision, text.as_bytes());
                keys.insert(key, now);
                prefixes.push((bytes.len(), keys.clone()));
            }
            durable = bytes.len() as u64;
        }

        let cut = cut.index(bytes.len() + 1);
        let mut torn = bytes[..cut].to_vec();
        // What a file's last block may hold behind its end.
        torn.extend_from_slice(&garbage);
        // Garbage may happen to be what was cut off.
        let arrived = torn.iter().zip(&bytes).take_while(|(torn, whole)| torn == whole).count();
        let segment = SegmentBytes { number: 1, path: "j.1".to_owned(), content: Content::Bytes(torn.into()) };
        let replay = Replay::read(vec![SessionJournal { session, segments: vec![segment] }]);
        prop_assert_eq!(replay.damage().count(), 0);
        let (_, expected) = prefixes.iter().rev().find(|(end, _)| *end <= arrived).unwrap();
        for key in KEYS {
            let expected = expected.get(key).cloned().unwrap_or(Resolved::Absent);
            prop_assert_eq!(replay.resolve(key, None, TERM).unwrap(), expected);
        }
    }

    #[test]
    fn trimming_never_takes_what_a_key_needs(
        moves in prop::collection::vec(any_move(), 1..60),
    ) {
        const KEYS: [&str; 4] = ["a", "b", "c", "d"];
        let session = Uuid::from_u128(1);
        let mut index = TrimIndex::new(0);
        let mut segments: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut files: BTreeMap<&str, Revision> = BTreeMap::new();
        // The revision of each key, and whether it exists.
        let mut keys: BTreeMap<&str, (Revision, bool)> = BTreeMap::new();
        let mut n = 0;
        for step in [Move::NewSegment].into_iter().chain(moves) {
            match step {
                Move::NewSegment => {
                    let number = segments.last().map_or(1, |(number, _)| number + 1);
                    index.seal();
                    let earlier = index.extents();
                    index.open(number);
                    segments.push((number, encode_head(session, number, &earlier)));
                }
                Move::Change(key, step) => {
                    let key = KEYS[key];
                    n += 1;
                    let known = keys.get(key).copied();
                    let (kind, revision) = match (step, known) {
                        (Step::Remove, _) => (Kind::Removed, rev(100 * n)),
                        (Step::Delta, Some((revision, true))) => (Kind::Offsets, revision.next()),
                        (Step::Document | Step::Delta, _) => (Kind::Document, rev(100 * n)),
                    };
                    keys.insert(key, (revision, kind != Kind::Removed));
                    append(&mut index, &mut segments, kind, key, revision);
                }
                Move::File(key) => {
                    let key = KEYS[key];
                    let Some((revision, exists)) = keys.get(key).copied() else { continue };
                    index.file_is(key, revision);
                    if exists {
                        files.insert(key, revision);
                    } else {
                        files.remove(key);
                    }
                }
                Move::Trim => {
                    let Some(oldest) = index.oldest_sealed() else { continue };
                    let needed: Vec<(String, Carry)> =
                        index.needed_of(oldest, false).map(|(key, carry)| (key.to_owned(), carry)).collect();
                    for (key, carry) in needed {
                        let (revision, exists) = keys[key.as_str()];
                        let kind = if exists { Kind::Document } else { Kind::Removed };
                        let expected = if exists { Carry::Document } else { Carry::Removed { revision } };
                        prop_assert_eq!(carry, expected);
                        append(&mut index, &mut segments, kind, &key, revision);
                    }
                    prop_assert_eq!(index.needed_of(oldest, false).count(), 0);
                    index.trimmed(oldest);
                    prop_assert_eq!(segments.remove(0).0, oldest);
                }
            }
            let segments = segments.iter().map(|(number, bytes)| SegmentBytes {
                number: *number,
                path: format!("j.{number}"),
                content: Content::Bytes(bytes.clone().into()),
            });
            let replay = Replay::read(vec![SessionJournal { session, segments: segments.collect() }]);
            prop_assert_eq!(replay.damage().count(), 0);
            for (key, (current, exists)) in &keys {
                let found = replay.resolve(key, files.get(key).copied(), TERM).unwrap();
                match found {
                    Resolved::State { revision, .. } => prop_assert_eq!((revision, true), (*current, *exists)),
                    Resolved::Removed { .. } | Resolved::Absent => prop_assert!(!exists),
                }
            }
        }
    }
}

fn append(
    index: &mut TrimIndex,
    segments: &mut [(u64, Vec<u8>)],
    kind: Kind,
    key: &str,
    revision: Revision,
) {
    let mut batch = Vec::new();
    encode(&mut batch, kind, key, revision, b"");
    let (_, bytes) = segments.last_mut().unwrap();
    let mark = encode_mark(Uuid::from_u128(1), bytes.len() as u64, bytes.len() as u64);
    bytes.extend_from_slice(&mark);
    bytes.extend_from_slice(&batch);
    index.appended(&batch, bytes.len() as u64);
}
