#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

//! How fast partition logs are here: `cargo run --release -p kaas-storage --example log_bench [directory] [seconds]`.
//!
//! Appends that are acknowledged when they are on the disk, over 12 partitions, with as many under way as several
//! producers have; large batches and small ones; then looking up where to read; then opening 1,000 logs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use kaas_storage::layout;
use kaas_storage::log::{AppendOptions, Flusher, Isolation, Log, LogConfig, ReadOptions};
use kaas_storage::session::{Session, SessionKind};
use kaas_storage::volume::{DiskVolume, Volume};
use kaas_wire::batch::BatchBuilder;

const PARTITIONS: usize = 12;
const PRODUCERS: usize = 2;
const SMALL_LOGS: usize = 1_000;

struct Bench {
    volume: Arc<dyn Volume>,
    session: Arc<Session>,
}

impl Bench {
    fn log(&self, dir: &str, epoch: i32) -> Arc<Log> {
        let log = Log::open(
            self.volume.clone(),
            self.session.clone(),
            dir,
            LogConfig::default(),
            epoch,
        );
        Arc::new(log.expect("a log"))
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let directory = arguments
        .next()
        .map_or(temporary.path().to_owned(), PathBuf::from);
    let seconds = arguments
        .next()
        .map_or(5, |text| text.parse().expect("seconds"));
    let volume: Arc<dyn Volume> =
        Arc::new(DiskVolume::open(&directory).expect("a usable directory"));
    layout::create(&*volume).expect("the layout");
    let uuid = uuid::Uuid::from_u128(u128::from(std::process::id()));
    let session = Session::create(volume.clone(), SessionKind::Broker, 0, uuid).expect("a session");
    let bench = Bench {
        volume,
        session: Arc::new(session),
    };

    let run = Duration::from_secs(seconds);
    let large = append(&bench, "large", 63, 1024, 5 * PARTITIONS, run);
    let small = append(&bench, "small", 1, 100, 2_000, run);
    read(&large[0], "64 KiB batches");
    read(&small[0], "100 byte batches");
    open(&bench);
}

/// Keeps `in_flight` batches under way.
fn append(
    bench: &Bench,
    name: &str,
    records: usize,
    record_bytes: usize,
    in_flight: usize,
    run: Duration,
) -> Vec<Arc<Log>> {
    let value = vec![b'x'; record_bytes];
    let builder = (0..records).fold(BatchBuilder::new(0), |builder, _| {
        builder.record(1, None, Some(&value))
    });
    let batch = builder.build();
    let logs: Vec<Arc<Log>> = (0..PARTITIONS)
        .map(|partition| bench.log(&format!("topics/{name}/{partition}"), 0))
        .collect();
    let flusher = Flusher::start(bench.session.clone());
    let started = Instant::now();
    let deadline = started + run;
    let counts: Vec<(u64, Duration)> = std::thread::scope(|scope| {
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|_| {
                scope.spawn(|| produce(&logs, &flusher, &batch, in_flight / PRODUCERS, deadline))
            })
            .collect();
        producers
            .into_iter()
            .map(|producer| producer.join().expect("a producer"))
            .collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    let batches: u64 = counts.iter().map(|(batches, _)| batches).sum();
    let waited: Duration = counts.iter().map(|(_, waited)| *waited).sum();
    println!(
        "{name}: {:.0} MB/s, {:.0} batches of {} bytes a second, {:.2} ms each, {in_flight} under way",
        batches as f64 * batch.len() as f64 / seconds / 1e6,
        batches as f64 / seconds,
        batch.len(),
        waited.as_secs_f64() * 1e3 / batches as f64,
    );
    logs
}

fn produce(
    logs: &[Arc<Log>],
    flusher: &Flusher,
    batch: &Bytes,
    in_flight: usize,
    deadline: Instant,
) -> (u64, Duration) {
    let (done, acknowledged) = channel();
    let mut next = 0;
    let mut send = |done: Sender<Instant>| {
        let log = &logs[next % logs.len()];
        next += 1;
        let options = AppendOptions {
            now_ms: 1,
            zstd: true,
        };
        let appended = log.append(batch.clone(), options).expect("an append");
        let sent = Instant::now();
        let answer = Box::new(move |result: Result<(), _>| {
            result.expect("a durable append");
            done.send(sent).expect("a producer");
        });
        flusher.flush(log, &appended, answer);
    };
    for _ in 0..in_flight {
        send(done.clone());
    }
    let (mut count, mut under_way) = (0, in_flight);
    let mut waited = Duration::ZERO;
    while under_way > 0 {
        let sent = acknowledged.recv().expect("an answer");
        waited += sent.elapsed();
        count += 1;
        under_way -= 1;
        if Instant::now() < deadline {
            send(done.clone());
            under_way += 1;
        }
    }
    (count, waited)
}

/// How fast a consumer that reads 1 MiB at a time is told where to read.
fn read(log: &Arc<Log>, what: &str) {
    let options = ReadOptions {
        max_bytes: 1 << 20,
        at_least_one_batch: true,
        isolation: Isolation::ReadUncommitted,
    };
    let (mut reads, mut bytes) = (0u32, 0u64);
    let mut offset = 0;
    let started = Instant::now();
    while let Some(slice) = log.read(offset, options).expect("a read").slice {
        offset = slice.next_offset;
        reads += 1;
        bytes += slice.len as u64;
    }
    let each = started.elapsed().as_secs_f64() * 1e6 / f64::from(reads.max(1));
    println!("read of {what}: {each:.1} µs each, {reads} reads of {bytes} bytes in all");
}

fn open(bench: &Bench) {
    let dirs: Vec<String> = (0..SMALL_LOGS)
        .map(|partition| format!("topics/many/{partition}"))
        .collect();
    let batch = BatchBuilder::new(0).record(1, None, Some(b"small")).build();
    let options = AppendOptions {
        now_ms: 1,
        zstd: true,
    };
    let started = Instant::now();
    let logs: Vec<Arc<Log>> = dirs.iter().map(|dir| bench.log(dir, 0)).collect();
    println!(
        "{SMALL_LOGS} logs that are not there yet: opened in {:?}",
        started.elapsed()
    );
    let flusher = Flusher::start(bench.session.clone());
    let started = Instant::now();
    let (done, acknowledged) = channel();
    for log in &logs {
        let appended = log.append(batch.clone(), options).expect("an append");
        let done = done.clone();
        let answer = Box::new(move |result: Result<(), _>| done.send(result).expect("a receiver"));
        flusher.flush(log, &appended, answer);
    }
    assert!(
        acknowledged
            .iter()
            .take(SMALL_LOGS)
            .all(|result| result.is_ok())
    );
    println!("their first append, durable: {:?}", started.elapsed());
    drop(logs);

    for (kind, epoch) in [("after a crash", 1), ("after a checkpoint", 2)] {
        let started = Instant::now();
        let logs: Vec<Arc<Log>> = dirs.iter().map(|dir| bench.log(dir, epoch)).collect();
        let opened = started.elapsed();
        for log in &logs {
            log.load().expect("a log");
        }
        println!(
            "{SMALL_LOGS} logs {kind}: opened in {opened:?}, read in {:?}",
            started.elapsed() - opened
        );
        for log in &logs {
            log.close().expect("a checkpoint");
        }
    }
}
