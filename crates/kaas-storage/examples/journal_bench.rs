#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

//! How many commits a second the journal makes durable here: `cargo run --release -p kaas-storage --example
//! journal_bench [directory] [seconds]`. So many commits are under way as a busy broker has; each is submitted again when
//! its batch is acknowledged.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use kaas_storage::journal::replay::Replay;
use kaas_storage::journal::{Journal, Kind, Revision, TrimLimit, encode};
use kaas_storage::layout;
use kaas_storage::session::{Session, SessionKind};
use kaas_storage::volume::DiskVolume;

const IN_FLIGHT: usize = 100;
const GROUPS: usize = 100;
/// A commit of one partition is about that large.
const PAYLOAD: [u8; 120] = [b'x'; 120];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let directory = arguments
        .next()
        .map_or(temporary.path().to_owned(), PathBuf::from);
    let seconds = arguments
        .next()
        .map_or(3, |text| text.parse().expect("seconds"));

    let volume = Arc::new(DiskVolume::open(&directory).expect("a usable directory"));
    layout::create(&*volume).expect("the layout");
    let uuid = uuid::Uuid::from_u128(u128::from(std::process::id()));
    let session = Session::create(volume, SessionKind::Broker, 0, uuid).expect("a session");
    let (send, finished) = channel();
    let finish = Box::new(move |batch| drop(send.send(batch)));
    let journal: Journal<usize> = Journal::start(Arc::new(session), finish).expect("a journal");

    let keys: Vec<String> = (0..GROUPS).map(|group| format!("group-{group}")).collect();
    let mut revisions = vec![Revision { term: 1, n: 0 }; GROUPS];
    let mut records = Vec::new();
    let mut waiters = Vec::new();
    for slot in 0..IN_FLIGHT {
        encode(
            &mut records,
            Kind::Document,
            &keys[slot % GROUPS],
            revisions[slot % GROUPS],
            &PAYLOAD,
        );
        waiters.push(slot);
    }
    journal.submit(&records, &mut waiters);

    let limit = TrimLimit {
        max_bytes: kaas_storage::journal::DEFAULT_MAX_BYTES,
        documents_behind_bytes: 0,
        journals_named: false,
    };
    let start = Instant::now();
    let (mut batches, mut commits) = (0u64, 0u64);
    while start.elapsed() < Duration::from_secs(seconds) {
        let batch = finished.recv().expect("the journal lives");
        batch.outcome.expect("a healthy volume");
        batches += 1;
        commits += batch.waiters.len() as u64;
        records.clear();
        for slot in batch.waiters {
            let group = slot % GROUPS;
            revisions[group] = revisions[group].next();
            encode(
                &mut records,
                Kind::Offsets,
                &keys[group],
                revisions[group],
                &PAYLOAD,
            );
            waiters.push(slot);
            journal.file_is(&keys[group], revisions[group]);
        }
        journal.submit(&records, &mut waiters);
        if batches.is_multiple_of(1_000) {
            journal.trim(limit).expect("a healthy volume");
        }
    }
    let elapsed = start.elapsed().as_secs_f64();
    let cpu = std::fs::read_to_string("/proc/self/stat").expect("procfs");
    let ticks: u64 = cpu
        .split(' ')
        .skip(13)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().expect("a number"))
        .sum();
    println!(
        "{:.0} batches/s, {:.0} commits/s, {:.1} commits a batch, {:.1} us CPU a batch, {} MiB of journal",
        batches as f64 / elapsed,
        commits as f64 / elapsed,
        commits as f64 / batches as f64,
        ticks as f64 * 10_000.0 / batches as f64,
        journal.total_bytes() >> 20,
    );

    let start = Instant::now();
    let replay = Replay::read(vec![journal.read_back()]);
    println!(
        "read back {} keys in {} ms",
        replay.keys().len(),
        start.elapsed().as_millis()
    );
}
