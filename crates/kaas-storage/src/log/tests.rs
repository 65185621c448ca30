use std::sync::mpsc;

use kaas_wire::batch::{BatchBuilder, Compression};
use uuid::Uuid;

use super::*;
use crate::layout;
use crate::session::{SessionKind, SessionName, fence};
use crate::volume::DiskVolume;
use crate::volume::faulty::{Fault, FaultyVolume};
use crate::volume::memory::MemoryVolume;

mod properties;

const DIR: &str = "topics/t/0";
const NOW: i64 = 1_000_000;

/// One incarnation of a broker after another on one volume, each with the next leader epoch.
pub(super) struct Broker {
    pub volume: Arc<dyn Volume>,
    pub session: Arc<Session>,
    pub epoch: i32,
}

impl Broker {
    pub fn new(volume: impl Volume + 'static) -> Broker {
        let volume: Arc<dyn Volume> = Arc::new(volume);
        layout::create(&*volume).unwrap();
        Broker::on(volume, 0)
    }

    pub fn on(volume: Arc<dyn Volume>, epoch: i32) -> Broker {
        let uuid = Uuid::from_u128(epoch as u128 + 1);
        let session = Session::create(volume.clone(), SessionKind::Broker, 1, uuid).unwrap();
        Broker {
            volume,
            session: Arc::new(session),
            epoch,
        }
    }

    fn name(&self) -> SessionName {
        self.session.name()
    }

    /// The process dies; another takes over.
    pub fn restart(&self) -> Broker {
        fence(&*self.volume, self.name()).unwrap();
        Broker::on(self.volume.clone(), self.epoch + 1)
    }

    pub fn log(&self) -> Arc<Log> {
        self.log_with(LogConfig::default())
    }

    pub fn log_with(&self, config: LogConfig) -> Arc<Log> {
        let log = Log::open(
            self.volume.clone(),
            self.session.clone(),
            DIR,
            config,
            self.epoch,
        )
        .unwrap();
        Arc::new(log)
    }

    pub fn files(&self) -> Vec<String> {
        let entries = self.volume.list(DIR).unwrap();
        let mut names: Vec<String> = entries
            .into_iter()
            .map(|entry| entry.name)
            .filter(|name| name.ends_with(".log"))
            .collect();
        names.sort();
        names
    }
}

pub(super) const AT_NOW: AppendOptions = AppendOptions {
    now_ms: NOW,
    zstd: true,
};
pub(super) const EVERYTHING: ReadOptions = ReadOptions {
    max_bytes: usize::MAX >> 1,
    at_least_one_batch: true,
    isolation: Isolation::ReadUncommitted,
};

pub(super) fn batch(values: &[&str]) -> Bytes {
    let builder = values.iter().fold(BatchBuilder::new(0), |builder, value| {
        builder.record(NOW, None, Some(value.as_bytes()))
    });
    builder.build()
}

fn batch_at(timestamps: &[i64]) -> BatchBuilder {
    timestamps
        .iter()
        .fold(BatchBuilder::new(0), |builder, timestamp| {
            builder.record(*timestamp, None, Some(b"at"))
        })
}

fn numbered(producer_id: i64, epoch: i16, sequence: i32, count: usize) -> Bytes {
    let builder = BatchBuilder::new(0).producer(producer_id, epoch, sequence);
    (0..count)
        .fold(builder, |builder, _| builder.record(NOW, None, Some(b"n")))
        .build()
}

fn transactional(producer_id: i64, epoch: i16, sequence: i32) -> Bytes {
    BatchBuilder::new(0)
        .producer(producer_id, epoch, sequence)
        .transactional()
        .record(NOW, None, Some(b"t"))
        .build()
}

fn marker(producer_id: i64, producer_epoch: i16, commit: bool) -> TransactionMarker {
    TransactionMarker {
        producer_id,
        producer_epoch,
        coordinator_epoch: 0,
        commit,
        strict: false,
    }
}

/// Offsets and values of all that is readable from `offset` on, and a check of what the log must have stamped.
pub(super) fn read_from(log: &Log, offset: i64, isolation: Isolation) -> Vec<(i64, String)> {
    let mut values = Vec::new();
    let mut next = offset;
    while let Some(slice) = log
        .read(
            next,
            ReadOptions {
                isolation,
                ..EVERYTHING
            },
        )
        .unwrap()
        .slice
    {
        for batch in kaas_wire::batch::batches(&bytes_of(&slice)) {
            let batch = batch.unwrap();
            batch.verify_crc().unwrap();
            assert_eq!(
                batch.header.partition_leader_epoch,
                log.epoch_of(batch.header.base_offset).unwrap()
            );
            let body = batch.body(1 << 20).unwrap();
            for record in batch.records(&body) {
                let record = record.unwrap();
                let value = String::from_utf8_lossy(record.value.unwrap_or(b"")).into_owned();
                values.push((record.offset, value));
            }
        }
        assert!(slice.next_offset > next, "a read goes on");
        next = slice.next_offset;
    }
    values.retain(|(at, _)| *at >= offset);
    values
}

fn read_all(log: &Log) -> Vec<(i64, String)> {
    read_from(log, log.start_offset().unwrap(), Isolation::ReadUncommitted)
}

fn bytes_of(slice: &Slice) -> Vec<u8> {
    let mut bytes = vec![0; slice.len];
    assert_eq!(
        slice.file.read_at(&mut bytes, slice.position).unwrap(),
        slice.len
    );
    bytes
}

fn values(pairs: &[(i64, &str)]) -> Vec<(i64, String)> {
    pairs
        .iter()
        .map(|(offset, value)| (*offset, (*value).to_owned()))
        .collect()
}

fn refused(log: &Log, records: Bytes) -> ErrorCode {
    log.append(records, AT_NOW).unwrap_err().code
}

#[test]
fn what_is_appended_is_read_back_under_its_offsets() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    let first = log.append(batch(&["a", "b"]), AT_NOW).unwrap();
    let second = log.append(batch(&["c"]), AT_NOW).unwrap();
    assert_eq!((first.base_offset, first.last_offset), (0, 1));
    assert_eq!((second.base_offset, second.last_offset), (2, 2));
    log.flush().unwrap();
    assert_eq!(read_all(&log), values(&[(0, "a"), (1, "b"), (2, "c")]));
    assert_eq!(
        read_from(&log, 1, Isolation::ReadUncommitted),
        values(&[(1, "b"), (2, "c")])
    );
}

#[test]
fn a_log_on_a_real_disk_is_there_when_it_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Broker::new(DiskVolume::open(directory.path()).unwrap());
    let log = broker.log_with(LogConfig {
        segment_bytes: 200,
        ..LogConfig::default()
    });
    let flusher = Flusher::start(broker.session.clone());
    let (answer, answers) = mpsc::channel();
    for sequence in 0..20 {
        let appended = log.append(numbered(1, 0, sequence, 1), AT_NOW).unwrap();
        let answer = answer.clone();
        flusher.flush(
            &log,
            &appended,
            Box::new(move |result| answer.send(result).unwrap()),
        );
    }
    assert!(answers.iter().take(20).all(|result| result.is_ok()));
    let slice = log.read(0, EVERYTHING).unwrap().slice.unwrap();
    assert!(slice.file.fd().is_some(), "sendfile needs a descriptor");
    assert_eq!(read_all(&log).len(), 20);
    log.delete_records_before(15).unwrap();
    log.maintain(NOW).unwrap();
    let broker = broker.restart();
    let log = broker.log();
    assert_eq!(read_all(&log).len(), 5);
    assert!(log.append(numbered(1, 0, 19, 1), AT_NOW).unwrap().duplicate);
    assert_eq!(
        log.append(numbered(1, 0, 20, 1), AT_NOW)
            .unwrap()
            .base_offset,
        20
    );
}

#[test]
fn a_record_is_invisible_until_it_is_on_the_disk() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    let appended = log.append(batch(&["a"]), AT_NOW).unwrap();
    assert!(!log.counts(appended.flush_point));
    let read = log.read(0, EVERYTHING).unwrap();
    assert_eq!(
        read.offsets,
        Offsets {
            start: 0,
            last_stable: 0,
            high_watermark: 0,
            end: 1
        }
    );
    assert!(read.slice.is_none());
    log.flush().unwrap();
    assert!(log.counts(appended.flush_point));
    assert_eq!(log.high_watermark().unwrap(), 1);
}

#[test]
fn with_a_larger_flush_messages_records_count_at_once_and_a_flush_is_due_when_they_have_gathered() {
    let broker = Broker::new(MemoryVolume::new());
    let config = LogConfig {
        flush_messages: 3,
        flush_ms: Some(100),
        ..LogConfig::default()
    };
    let log = broker.log_with(config);
    let first = log.append(batch(&["a", "b"]), AT_NOW).unwrap();
    assert!(log.counts(first.flush_point) && !first.flush_is_due);
    assert_eq!(read_all(&log).len(), 2);
    assert!(!log.flush_is_due(NOW + 99) && log.flush_is_due(NOW + 100));
    assert!(log.append(batch(&["c"]), AT_NOW).unwrap().flush_is_due);
    log.flush().unwrap();
    assert!(!log.flush_is_due(NOW + 1_000));
}

#[test]
fn a_read_gives_whole_batches_up_to_its_limit_and_one_in_any_case() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    let len = batch(&["a"]).len();
    for value in ["a", "b", "c"] {
        log.append(batch(&[value]), AT_NOW).unwrap();
    }
    log.flush().unwrap();
    let read = |max_bytes, at_least_one_batch| {
        let options = ReadOptions {
            max_bytes,
            at_least_one_batch,
            ..EVERYTHING
        };
        log.read(0, options)
            .unwrap()
            .slice
            .map(|slice| (slice.len, slice.next_offset))
    };
    assert_eq!(read(2 * len + len / 2, true), Some((2 * len, 2)));
    assert_eq!(read(2 * len, false), Some((2 * len, 2)));
    assert_eq!(read(3 * len, false), Some((3 * len, 3)));
    assert_eq!(read(1, true), Some((len, 1)));
    assert_eq!(read(1, false), None);
}

#[test]
fn offsets_outside_the_log_are_out_of_range_and_its_end_is_not() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    log.append(batch(&["a", "b"]), AT_NOW).unwrap();
    log.flush().unwrap();
    log.delete_records_before(1).unwrap();
    let code = |offset| log.read(offset, EVERYTHING).err().map(|error| error.code);
    assert_eq!(code(0), Some(ErrorCode::OFFSET_OUT_OF_RANGE));
    assert_eq!(code(2), None);
    assert_eq!(code(3), Some(ErrorCode::OFFSET_OUT_OF_RANGE));
    assert_eq!(code(-1), Some(ErrorCode::OFFSET_OUT_OF_RANGE));
}

#[test]
fn a_restarted_broker_continues_in_a_segment_of_its_own_epoch() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    log.append(batch(&["a", "b"]), AT_NOW).unwrap();
    log.flush().unwrap();
    let broker = broker.restart();
    let log = broker.log();
    assert_eq!(broker.files(), ["00000000000000000000.0.log"]);
    assert_eq!(log.append(batch(&["c"]), AT_NOW).unwrap().base_offset, 2);
    log.flush().unwrap();
    assert_eq!(
        broker.files(),
        ["00000000000000000000.0.log", "00000000000000000002.1.log"]
    );
    assert_eq!(read_all(&log), values(&[(0, "a"), (1, "b"), (2, "c")]));
    let reopened = broker.restart().log();
    assert_eq!(read_all(&reopened), values(&[(0, "a"), (1, "b"), (2, "c")]));
}

#[test]
fn opening_a_log_only_lists_its_directory() {
    let memory = MemoryVolume::new();
    let broker = Broker::new(memory.clone());
    let log = broker.log();
    log.append(batch(&["a"]), AT_NOW).unwrap();
    log.flush().unwrap();
    let broker = broker.restart();
    let counted = FaultyVolume::new(Arc::new(memory));
    let before = counted.calls();
    let log = Log::open(
        Arc::new(counted.clone()),
        broker.session.clone(),
        DIR,
        LogConfig::default(),
        1,
    )
    .unwrap();
    assert!(
        counted.calls() - before <= 2,
        "{} calls",
        counted.calls() - before
    );
    assert!(log.size() > 0 && log.known_offsets().is_none());
    assert_eq!(log.end_offset().unwrap(), 1);
}

#[test]
fn what_an_older_epoch_wrote_at_or_above_the_next_segment_is_dead() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    log.append(batch(&["a"]), AT_NOW).unwrap();
    log.flush().unwrap();
    let paused = log.clone();
    let broker = broker.restart();
    let log = broker.log();
    assert_eq!(log.end_offset().unwrap(), 1);
    // The paused broker's write lands late; its session is fenced, so it can acknowledge nothing.
    let late = paused.append(batch(&["late"]), AT_NOW).unwrap();
    assert!(paused.flush().unwrap_err().is_fenced());
    assert!(!paused.counts(late.flush_point));
    log.append(batch(&["b"]), AT_NOW).unwrap();
    log.flush().unwrap();
    assert_eq!(read_all(&log), values(&[(0, "a"), (1, "b")]));
    assert_eq!(
        read_all(&broker.restart().log()),
        values(&[(0, "a"), (1, "b")])
    );
}

#[test]
fn a_fenced_broker_publishes_no_segment() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    broker.restart();
    assert_eq!(
        refused(&log, batch(&["a"])),
        ErrorCode::NOT_LEADER_OR_FOLLOWER
    );
}

#[test]
fn segments_roll_by_size_and_by_the_time_of_their_records() {
    let broker = Broker::new(MemoryVolume::new());
    let len = batch(&["a"]).len() as u64;
    let log = broker.log_with(LogConfig {
        segment_bytes: 2 * len,
        segment_ms: 1_000,
        ..LogConfig::default()
    });
    for _ in 0..3 {
        log.append(batch(&["a"]), AT_NOW).unwrap();
    }
    assert_eq!(broker.files().len(), 2);
    log.append(batch_at(&[NOW + 1_001]).build(), AT_NOW)
        .unwrap();
    log.flush().unwrap();
    assert_eq!(
        broker.files(),
        [
            "00000000000000000000.0.log",
            "00000000000000000002.0.log",
            "00000000000000000003.0.log"
        ]
    );
    assert_eq!(read_all(&log).len(), 4);
    assert_eq!(read_all(&broker.restart().log()).len(), 4);
}

#[test]
fn clients_cannot_append_what_kafka_refuses() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log_with(LogConfig {
        max_message_bytes: 200,
        segment_bytes: 150,
        ..LogConfig::default()
    });
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = batch(&["a"]).to_vec();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        let crc = crc32c::crc32c(&changed[21..]);
        changed[17..21].copy_from_slice(&crc.to_be_bytes());
        Bytes::from(changed)
    };
    let mut flipped = batch(&["a"]).to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    let two = [batch(&["a"]), batch(&["b"])].concat();

    assert_eq!(refused(&log, Bytes::new()), ErrorCode::INVALID_RECORD);
    assert_eq!(
        refused(&log, Bytes::from_static(b"short")),
        ErrorCode::CORRUPT_MESSAGE
    );
    assert_eq!(
        refused(&log, batch(&["a"]).slice(..50)),
        ErrorCode::CORRUPT_MESSAGE
    );
    assert_eq!(
        refused(&log, batch(&["a"]).slice(..65)),
        ErrorCode::CORRUPT_MESSAGE
    );
    assert_eq!(
        refused(&log, Bytes::from(flipped)),
        ErrorCode::CORRUPT_MESSAGE
    );
    assert_eq!(refused(&log, Bytes::from(two)), ErrorCode::INVALID_RECORD);
    assert_eq!(refused(&log, with(16, &[1])), ErrorCode::INVALID_RECORD);
    assert_eq!(
        refused(&log, with(0, &7i64.to_be_bytes())),
        ErrorCode::INVALID_RECORD
    );
    assert_eq!(
        refused(&log, with(23, &1i32.to_be_bytes())),
        ErrorCode::INVALID_RECORD
    );
    assert_eq!(
        refused(&log, with(23, &(-1i32).to_be_bytes())),
        ErrorCode::INVALID_RECORD
    );
    assert_eq!(
        refused(&log, with(57, &2i32.to_be_bytes())),
        ErrorCode::INVALID_RECORD
    );
    assert_eq!(
        refused(&log, with(21, &5i16.to_be_bytes())),
        ErrorCode::CORRUPT_MESSAGE
    );
    assert_eq!(
        refused(&log, numbered(1, 0, -1, 1)),
        ErrorCode::INVALID_RECORD
    );
    assert_eq!(
        refused(&log, BatchBuilder::new(0).build()),
        ErrorCode::INVALID_RECORD
    );
    let control = kaas_wire::batch::marker_batch(kaas_wire::batch::EndTxn::Commit, 1, 0, 0, NOW);
    assert_eq!(refused(&log, control), ErrorCode::INVALID_RECORD);
    assert_eq!(
        refused(&log, batch(&[&"x".repeat(90)])),
        ErrorCode::RECORD_LIST_TOO_LARGE
    );
    assert_eq!(
        refused(&log, batch(&[&"x".repeat(200)])),
        ErrorCode::MESSAGE_TOO_LARGE
    );
    let zstd = BatchBuilder::new(0)
        .compression(Compression::Zstd)
        .record(NOW, None, Some(b"z"))
        .build();
    let old = AppendOptions {
        zstd: false,
        ..AT_NOW
    };
    assert_eq!(
        log.append(zstd.clone(), old).unwrap_err().code,
        ErrorCode::UNSUPPORTED_COMPRESSION_TYPE
    );
    assert_eq!(log.end_offset().unwrap(), 0);
    assert!(log.append(zstd, AT_NOW).is_ok());
}

#[test]
fn timestamps_out_of_bounds_are_refused() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    let hour = 3_600_000;
    assert_eq!(
        refused(&log, batch_at(&[NOW + hour + 1]).build()),
        ErrorCode::INVALID_TIMESTAMP
    );
    assert!(log.append(batch_at(&[NOW + hour]).build(), AT_NOW).is_ok());
    assert!(log.append(batch_at(&[0]).build(), AT_NOW).is_ok());
    assert!(log.append(batch_at(&[-1]).build(), AT_NOW).is_ok());
    log.set_config(LogConfig {
        message_timestamp_before_max_ms: 10,
        ..LogConfig::default()
    });
    assert_eq!(
        refused(&log, batch_at(&[NOW - 11]).build()),
        ErrorCode::INVALID_TIMESTAMP
    );
    assert!(log.append(batch_at(&[NOW - 10]).build(), AT_NOW).is_ok());
}

#[test]
fn with_log_append_time_every_record_has_the_brokers_time() {
    let broker = Broker::new(MemoryVolume::new());
    let config = LogConfig {
        message_timestamp_type: TimestampType::LogAppendTime,
        ..LogConfig::default()
    };
    let log = broker.log_with(config);
    let appended = log
        .append(
            batch_at(&[1, 2]).compression(Compression::Gzip).build(),
            AT_NOW,
        )
        .unwrap();
    assert_eq!(appended.log_append_time_ms, NOW);
    log.flush().unwrap();
    let slice = log.read(0, EVERYTHING).unwrap().slice.unwrap();
    let bytes = bytes_of(&slice);
    let stored = kaas_wire::batch::Batch::parse(&bytes).unwrap();
    stored.verify_crc().unwrap();
    let body = stored.body(1000).unwrap();
    assert!(
        stored
            .records(&body)
            .all(|record| record.unwrap().timestamp == NOW)
    );
    let found = log
        .offset_for_timestamp(3, Isolation::ReadUncommitted)
        .unwrap()
        .unwrap();
    assert_eq!((found.offset, found.timestamp_ms), (0, NOW));
}

#[test]
fn a_repeated_batch_is_answered_with_its_first_offset_also_after_a_restart() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    let first = log.append(numbered(7, 0, 0, 3), AT_NOW).unwrap();
    log.append(numbered(7, 0, 3, 1), AT_NOW).unwrap();
    let again = log.append(numbered(7, 0, 0, 3), AT_NOW).unwrap();
    assert!(again.duplicate && !first.duplicate);
    assert_eq!(
        (
            again.base_offset,
            again.last_offset,
            again.log_append_time_ms
        ),
        (0, 2, NOW)
    );
    assert_eq!(again.flush_point.end_offset, 3);
    log.flush().unwrap();
    for checkpoint in [false, true] {
        if checkpoint {
            log.checkpoint().unwrap();
        }
        let broker = Broker::on(broker.volume.clone(), 1 + i32::from(checkpoint));
        let log = broker.log();
        let again = log.append(numbered(7, 0, 3, 1), AT_NOW).unwrap();
        assert!(again.duplicate && log.counts(again.flush_point));
        assert_eq!(again.base_offset, 3);
        assert_eq!(log.end_offset().unwrap(), 4);
    }
}

#[test]
fn only_the_last_five_batches_of_a_producer_are_remembered() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    for sequence in 0..6 {
        log.append(numbered(7, 0, sequence, 1), AT_NOW).unwrap();
    }
    assert_eq!(
        refused(&log, numbered(7, 0, 0, 1)),
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
    );
    assert!(log.append(numbered(7, 0, 1, 1), AT_NOW).unwrap().duplicate);
}

#[test]
fn sequences_have_no_gaps_start_over_with_an_epoch_and_wrap() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    assert!(
        log.append(numbered(1, 0, 5, 1), AT_NOW).is_ok(),
        "an unknown producer may begin anywhere"
    );
    assert_eq!(
        refused(&log, numbered(1, 0, 7, 1)),
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
    );
    assert_eq!(
        refused(&log, numbered(1, 1, 6, 1)),
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
    );
    assert!(log.append(numbered(1, 1, 0, 1), AT_NOW).is_ok());
    assert_eq!(
        refused(&log, numbered(1, 0, 6, 1)),
        ErrorCode::INVALID_PRODUCER_EPOCH
    );
    assert!(log.append(numbered(2, 0, i32::MAX - 1, 3), AT_NOW).is_ok());
    assert_eq!(log.producers().unwrap()[1].last_sequence(), 0);
    assert!(
        log.append(numbered(2, 0, i32::MAX - 1, 3), AT_NOW)
            .unwrap()
            .duplicate
    );
    assert!(log.append(numbered(2, 0, 1, 1), AT_NOW).is_ok());
}

#[test]
fn a_producer_that_was_silent_for_too_long_is_forgotten() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log_with(LogConfig {
        producer_id_expiration_ms: 100,
        ..LogConfig::default()
    });
    log.append(numbered(1, 0, 0, 1), AT_NOW).unwrap();
    log.append(transactional(2, 0, 0), AT_NOW).unwrap();
    log.flush().unwrap();
    log.maintain(NOW + 99).unwrap();
    assert_eq!(log.producers().unwrap().len(), 2);
    log.maintain(NOW + 100).unwrap();
    let left: Vec<i64> = log
        .producers()
        .unwrap()
        .iter()
        .map(|producer| producer.producer_id)
        .collect();
    assert_eq!(left, [2], "an open transaction keeps its producer");
}

#[test]
fn the_last_stable_offset_waits_for_open_transactions_and_their_markers() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    log.append(batch(&["plain"]), AT_NOW).unwrap();
    log.append(transactional(1, 0, 0), AT_NOW).unwrap();
    log.append(transactional(2, 0, 0), AT_NOW).unwrap();
    log.append(batch(&["after"]), AT_NOW).unwrap();
    log.flush().unwrap();
    assert_eq!(
        (
            log.last_stable_offset().unwrap(),
            log.high_watermark().unwrap()
        ),
        (1, 4)
    );
    assert_eq!(
        read_from(&log, 0, Isolation::ReadCommitted),
        values(&[(0, "plain")])
    );
    assert_eq!(
        refused(&log, numbered(1, 0, 1, 1)),
        ErrorCode::INVALID_TXN_STATE
    );

    log.append_marker(marker(1, 0, false), NOW).unwrap();
    assert_eq!(
        log.last_stable_offset().unwrap(),
        1,
        "the marker is not durable yet"
    );
    log.flush().unwrap();
    assert_eq!(log.last_stable_offset().unwrap(), 2);
    log.append_marker(marker(2, 0, true), NOW).unwrap();
    log.flush().unwrap();
    assert_eq!(log.last_stable_offset().unwrap(), 6);

    let aborted = [AbortedTransaction {
        producer_id: 1,
        first_offset: 1,
        last_offset: 4,
    }];
    for log in [log, broker.restart().log()] {
        assert_eq!(log.aborted_transactions(0, 6).unwrap(), aborted);
        assert_eq!(log.aborted_transactions(5, 6).unwrap(), []);
        assert_eq!(log.aborted_transactions(0, 1).unwrap(), []);
        assert_eq!(log.last_stable_offset().unwrap(), 6);
    }
}

#[test]
fn an_open_transaction_is_still_open_after_a_restart() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    log.append(transactional(1, 0, 0), AT_NOW).unwrap();
    log.close().unwrap();
    let log = broker.restart().log();
    assert_eq!(
        (
            log.last_stable_offset().unwrap(),
            log.high_watermark().unwrap()
        ),
        (0, 1)
    );
    log.append_marker(marker(1, 0, true), NOW).unwrap();
    log.flush().unwrap();
    assert_eq!(log.last_stable_offset().unwrap(), 2);
}

#[test]
fn markers_of_older_epochs_and_coordinators_are_refused() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    log.append(transactional(1, 3, 0), AT_NOW).unwrap();
    let code = |marker| log.append_marker(marker, NOW).map_err(|error| error.code);
    assert_eq!(
        code(marker(1, 2, true)).unwrap_err(),
        ErrorCode::INVALID_PRODUCER_EPOCH
    );
    let strict = TransactionMarker {
        strict: true,
        ..marker(1, 3, true)
    };
    assert_eq!(code(strict).unwrap_err(), ErrorCode::INVALID_PRODUCER_EPOCH);
    let strict = TransactionMarker {
        strict: true,
        coordinator_epoch: 5,
        ..marker(1, 4, true)
    };
    assert!(code(strict).is_ok());
    assert!(
        code(strict).is_ok(),
        "a marker is written again when its answer was lost"
    );
    let older = TransactionMarker {
        coordinator_epoch: 4,
        ..strict
    };
    assert_eq!(
        code(older).unwrap_err(),
        ErrorCode::TRANSACTION_COORDINATOR_FENCED
    );
    assert_eq!(
        refused(&log, transactional(1, 4, 7)),
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
    );
    assert!(log.append(transactional(1, 4, 0), AT_NOW).is_ok());
}

#[test]
fn a_timestamp_is_found_at_its_record() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log_with(LogConfig {
        segment_bytes: 200,
        ..LogConfig::default()
    });
    let found = |log: &Log, timestamp| {
        log.offset_for_timestamp(timestamp, Isolation::ReadUncommitted)
            .unwrap()
            .map(|it| (it.offset, it.timestamp_ms))
    };
    assert_eq!(found(&log, 0), None);
    log.append(batch_at(&[10, 20]).build(), AT_NOW).unwrap();
    assert_eq!(found(&log, 0), None, "nothing is visible yet");
    log.append(
        batch_at(&[15, 40, 30])
            .compression(Compression::Lz4)
            .build(),
        AT_NOW,
    )
    .unwrap();
    log.append(batch_at(&[35]).build(), AT_NOW).unwrap();
    log.flush().unwrap();
    for log in [log, broker.restart().log()] {
        assert_eq!(found(&log, 0), Some((0, 10)));
        assert_eq!(found(&log, 11), Some((1, 20)));
        assert_eq!(found(&log, 21), Some((3, 40)));
        assert_eq!(found(&log, 41), None);
        let highest = log
            .max_timestamp_offset(Isolation::ReadUncommitted)
            .unwrap()
            .unwrap();
        assert_eq!(
            (highest.offset, highest.timestamp_ms, highest.leader_epoch),
            (3, 40, 0)
        );
    }
}

#[test]
fn what_is_not_visible_yet_does_not_hide_the_highest_timestamp() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    log.append(batch_at(&[10]).build(), AT_NOW).unwrap();
    log.flush().unwrap();
    log.append(batch_at(&[20]).build(), AT_NOW).unwrap();
    let highest = || {
        log.max_timestamp_offset(Isolation::ReadUncommitted)
            .unwrap()
            .unwrap()
            .timestamp_ms
    };
    assert_eq!(highest(), 10);
    log.flush().unwrap();
    assert_eq!(highest(), 20);
}

#[test]
fn a_lookup_by_time_skips_deleted_records() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    log.append(batch_at(&[10, 20, 30]).build(), AT_NOW).unwrap();
    log.flush().unwrap();
    log.delete_records_before(1).unwrap();
    let found = log
        .offset_for_timestamp(0, Isolation::ReadUncommitted)
        .unwrap()
        .unwrap();
    assert_eq!((found.offset, found.timestamp_ms), (1, 20));
}

#[test]
fn each_epoch_ends_where_the_next_begins() {
    let mut broker = Broker::new(MemoryVolume::new());
    for _ in 0..2 {
        let log = broker.log();
        log.append(batch(&["a", "b"]), AT_NOW).unwrap();
        log.flush().unwrap();
        broker = broker.restart().restart();
    }
    let log = broker.log();
    let end = |epoch| {
        log.epoch_end_offset(epoch)
            .unwrap()
            .map(|it| (it.leader_epoch, it.end_offset))
    };
    assert_eq!(end(0), Some((0, 2)));
    assert_eq!(end(1), Some((0, 2)));
    assert_eq!(end(2), Some((2, 4)));
    assert_eq!(end(3), Some((2, 4)));
    assert_eq!(end(4), Some((4, 4)));
    assert_eq!((end(5), end(-1)), (None, None));
    log.append(batch(&["c"]), AT_NOW).unwrap();
    log.flush().unwrap();
    assert_eq!(end(4), Some((4, 5)));
    let epochs: Vec<i32> = (0..5).map(|offset| log.epoch_of(offset).unwrap()).collect();
    assert_eq!(epochs, [0, 0, 2, 2, 4]);
}

#[test]
fn retention_by_time_deletes_old_segments_and_keeps_the_end() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log_with(LogConfig {
        segment_bytes: 80,
        retention_ms: Some(100),
        ..LogConfig::default()
    });
    for timestamp in [NOW, NOW + 50, NOW + 60] {
        log.append(batch_at(&[timestamp]).build(), AT_NOW).unwrap();
    }
    log.flush().unwrap();
    assert_eq!(log.enforce_retention(NOW + 100).unwrap(), 0);
    assert_eq!(log.enforce_retention(NOW + 101).unwrap(), 1);
    assert_eq!(log.start_offset().unwrap(), 1);
    assert_eq!(log.enforce_retention(NOW + 1_000).unwrap(), 2);
    assert_eq!(broker.files(), ["00000000000000000003.0.log"]);
    assert_eq!(log.enforce_retention(NOW + 2_000).unwrap(), 0);
    let broker = broker.restart();
    for log in [log, broker.log()] {
        let offsets = log.offsets().unwrap();
        assert_eq!((offsets.start, offsets.end), (3, 3));
    }
    let log = broker.restart().log();
    assert_eq!(log.append(batch(&["next"]), AT_NOW).unwrap().base_offset, 3);
}

#[test]
fn retention_by_size_deletes_no_more_than_is_too_much() {
    let broker = Broker::new(MemoryVolume::new());
    let len = batch(&["a"]).len() as u64;
    let config = LogConfig {
        segment_bytes: len,
        retention_bytes: Some(2 * len),
        retention_ms: None,
        ..LogConfig::default()
    };
    let log = broker.log_with(config);
    for _ in 0..4 {
        log.append(batch(&["a"]), AT_NOW).unwrap();
    }
    log.flush().unwrap();
    assert_eq!(log.enforce_retention(NOW).unwrap(), 2);
    assert_eq!(log.start_offset().unwrap(), 2);
    assert_eq!(log.size(), 2 * len);
}

#[test]
fn deleted_records_stay_deleted() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log_with(LogConfig {
        segment_bytes: 80,
        ..LogConfig::default()
    });
    for value in ["a", "b", "c"] {
        log.append(batch(&[value]), AT_NOW).unwrap();
    }
    log.flush().unwrap();
    assert_eq!(
        log.delete_records_before(4).unwrap_err().code,
        ErrorCode::OFFSET_OUT_OF_RANGE
    );
    assert_eq!(log.delete_records_before(2).unwrap(), 2);
    assert_eq!(log.delete_records_before(1).unwrap(), 2);
    assert_eq!(read_all(&log), values(&[(2, "c")]));
    assert_eq!(log.enforce_retention(NOW).unwrap(), 2);
    assert_eq!(log.delete_records_before(-1).unwrap(), 3);
    log.enforce_retention(NOW).unwrap();
    let broker = broker.restart();
    for log in [log, broker.log()] {
        assert_eq!(
            log.offsets().unwrap(),
            Offsets {
                start: 3,
                last_stable: 3,
                high_watermark: 3,
                end: 3
            }
        );
    }
    for name in broker.files() {
        broker.volume.remove_file(&format!("{DIR}/{name}")).unwrap();
    }
    let log = broker.restart().log();
    assert_eq!(
        log.append(batch(&["d"]), AT_NOW).unwrap().base_offset,
        3,
        "even when all segments are gone"
    );
}

#[test]
fn a_failed_sync_takes_back_what_was_not_acknowledged_and_nothing_else() {
    let faulty = FaultyVolume::new(Arc::new(MemoryVolume::new()));
    let broker = Broker::new(faulty.clone());
    let log = broker.log();
    let kept = log.append(numbered(1, 0, 0, 1), AT_NOW).unwrap();
    log.flush().unwrap();
    let lost = log.append(numbered(1, 0, 1, 1), AT_NOW).unwrap();
    let lost_too = log.append(transactional(2, 0, 0), AT_NOW).unwrap();
    faulty.fail_at(1, Fault::FailedSync);
    assert!(log.flush().is_err());
    assert!(
        log.counts(kept.flush_point)
            && !log.counts(lost.flush_point)
            && !log.counts(lost_too.flush_point)
    );
    assert_eq!(log.end_offset().unwrap(), 1);
    assert_eq!(log.producers().unwrap().len(), 1);

    let retried = log.append(numbered(1, 0, 1, 1), AT_NOW).unwrap();
    assert!(!retried.duplicate);
    assert_eq!(retried.base_offset, 1);
    log.flush().unwrap();
    assert!(log.counts(retried.flush_point) && !log.counts(lost.flush_point));
    assert_eq!(
        broker.files(),
        ["00000000000000000000.0.log", "00000000000000000001.0.log"]
    );
    assert_eq!(read_all(&log).len(), 2);
    let log = broker.restart().log();
    assert_eq!(read_all(&log).len(), 2);
    assert_eq!(log.last_stable_offset().unwrap(), 2);
}

#[test]
fn what_a_restarted_broker_found_survives_a_power_cut() {
    for seed in 0..16 {
        let memory = MemoryVolume::new();
        let broker = Broker::new(memory.clone());
        broker.log().append(batch(&["a"]), AT_NOW).unwrap();
        assert_eq!(read_all(&broker.restart().log()), values(&[(0, "a")]));
        let broker = Broker::on(Arc::new(memory.power_cut(seed)), 2);
        assert_eq!(read_all(&broker.log()), values(&[(0, "a")]));
    }
}

#[test]
fn the_directories_of_a_first_segment_are_durable_when_it_is() {
    for nth in 1..=3 {
        for seed in 0..8 {
            let memory = MemoryVolume::new();
            let faulty = FaultyVolume::new(Arc::new(memory.clone()));
            let broker = Broker::new(faulty.clone());
            let log = broker.log();
            log.append(batch(&["a"]), AT_NOW).unwrap();
            faulty.fail_at(nth, Fault::FailedDirSync);
            assert!(log.flush().is_err());
            log.append(batch(&["b"]), AT_NOW).unwrap();
            log.flush().unwrap();
            let broker = Broker::on(Arc::new(memory.power_cut(seed)), 1);
            assert_eq!(read_all(&broker.log()), values(&[(0, "b")]));
        }
    }
}

#[test]
fn a_segment_whose_name_was_not_synced_gives_way_to_the_next() {
    let memory = MemoryVolume::new();
    let faulty = FaultyVolume::new(Arc::new(memory.clone()));
    let broker = Broker::new(faulty.clone());
    let log = broker.log_with(LogConfig {
        segment_bytes: 150,
        ..LogConfig::default()
    });
    log.append(batch(&["a"]), AT_NOW).unwrap();
    log.append(batch(&[&"x".repeat(60)]), AT_NOW).unwrap();
    assert_eq!(
        log.high_watermark().unwrap(),
        1,
        "the roll made the first segment durable"
    );
    faulty.fail_at(1, Fault::FailedDirSync);
    assert!(log.flush().is_err());
    log.append(batch(&["b"]), AT_NOW).unwrap();
    log.flush().unwrap();
    assert_eq!(read_all(&log), values(&[(0, "a"), (1, "b")]));
    for seed in 0..8 {
        let broker = Broker::on(Arc::new(memory.power_cut(seed)), 1 + seed as i32);
        assert_eq!(read_all(&broker.log()), values(&[(0, "a"), (1, "b")]));
    }
}

#[test]
fn a_full_disk_refuses_appends_until_there_is_room() {
    let faulty = FaultyVolume::new(Arc::new(MemoryVolume::new()));
    let broker = Broker::new(faulty.clone());
    let log = broker.log();
    log.append(batch(&["a"]), AT_NOW).unwrap();
    log.flush().unwrap();
    faulty.fail_from(1, Fault::Full);
    for _ in 0..3 {
        assert_eq!(
            refused(&log, batch(&["no"])),
            ErrorCode::KAFKA_STORAGE_ERROR
        );
    }
    faulty.heal();
    log.append(batch(&["b"]), AT_NOW).unwrap();
    log.flush().unwrap();
    assert_eq!(read_all(&log), values(&[(0, "a"), (1, "b")]));
    assert_eq!(
        read_all(&broker.restart().log()),
        values(&[(0, "a"), (1, "b")])
    );
}

#[test]
fn half_a_write_is_left_behind() {
    let faulty = FaultyVolume::new(Arc::new(MemoryVolume::new()));
    let broker = Broker::new(faulty.clone());
    let log = broker.log();
    log.append(batch(&["a"]), AT_NOW).unwrap();
    faulty.fail_at(2, Fault::ShortWrite);
    assert_eq!(
        refused(&log, batch(&["torn"])),
        ErrorCode::KAFKA_STORAGE_ERROR
    );
    log.append(batch(&["b"]), AT_NOW).unwrap();
    log.flush().unwrap();
    assert_eq!(read_all(&log), values(&[(0, "a"), (1, "b")]));
    assert_eq!(
        read_all(&broker.restart().log()),
        values(&[(0, "a"), (1, "b")])
    );
}

#[test]
fn a_checkpoint_spares_reading_what_it_covers() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log_with(LogConfig {
        segment_bytes: 200,
        ..LogConfig::default()
    });
    for sequence in 0..10 {
        log.append(numbered(1, 0, sequence, 1), AT_NOW).unwrap();
    }
    log.close().unwrap();
    assert_eq!(
        refused(&log, batch(&["a"])),
        ErrorCode::NOT_LEADER_OR_FOLLOWER
    );
    // What only a scan would find is not found: the bytes before the checkpoint are not looked at.
    let first = format!("{DIR}/{}", broker.files()[0]);
    broker.volume.remove_file(&first).unwrap();
    broker
        .volume
        .create(&first)
        .unwrap()
        .write_at(&[0; 200], 0)
        .unwrap();
    let log = broker.restart().log();
    assert_eq!(log.end_offset().unwrap(), 10);
    assert_eq!(log.producers().unwrap()[0].last_sequence(), 9);
    assert!(log.append(numbered(1, 0, 9, 1), AT_NOW).unwrap().duplicate);
}

#[test]
fn a_damaged_segment_is_an_error_where_it_is_read() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log_with(LogConfig {
        segment_bytes: 80,
        ..LogConfig::default()
    });
    for value in ["a", "b"] {
        log.append(batch(&[value]), AT_NOW).unwrap();
    }
    log.flush().unwrap();
    let first = format!("{DIR}/{}", broker.files()[0]);
    broker.volume.remove_file(&first).unwrap();
    broker
        .volume
        .create(&first)
        .unwrap()
        .write_at(&[0; 70], 0)
        .unwrap();
    let log = broker.restart().log();
    assert_eq!(
        log.read(0, EVERYTHING).err().unwrap().code,
        ErrorCode::KAFKA_STORAGE_ERROR
    );
    assert_eq!(
        read_from(&log, 1, Isolation::ReadUncommitted),
        values(&[(1, "b")])
    );
    log.delete_records_before(1).unwrap();
    assert_eq!(read_all(&log), values(&[(1, "b")]));
}

#[test]
fn a_checkpoint_says_nothing_of_what_is_not_durable() {
    for seed in 0..16 {
        let memory = MemoryVolume::new();
        let broker = Broker::new(memory.clone());
        let log = broker.log();
        log.append(numbered(1, 0, 0, 1), AT_NOW).unwrap();
        log.flush().unwrap();
        log.append(numbered(1, 0, 1, 1), AT_NOW).unwrap();
        log.checkpoint().unwrap();
        let log = Broker::on(Arc::new(memory.power_cut(seed)), 1).log();
        let survived = log.end_offset().unwrap() == 2;
        let again = log.append(numbered(1, 0, 1, 1), AT_NOW).unwrap();
        assert_eq!((again.base_offset, again.duplicate), (1, survived));
    }
}

#[test]
fn a_checkpoint_that_does_not_parse_costs_a_scan() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    log.append(numbered(1, 0, 0, 1), AT_NOW).unwrap();
    log.close().unwrap();
    broker
        .session
        .publish(&format!("{DIR}/checkpoint.json"), b"{")
        .unwrap();
    let log = broker.restart().log();
    assert!(log.append(numbered(1, 0, 0, 1), AT_NOW).unwrap().duplicate);
}

#[test]
fn the_hook_is_called_when_something_became_visible() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log();
    let (told, calls) = mpsc::channel();
    log.on_advance(move || told.send(()).unwrap());
    log.append(batch(&["a"]), AT_NOW).unwrap();
    assert_eq!(calls.try_iter().count(), 0);
    log.flush().unwrap();
    assert_eq!(calls.try_iter().count(), 1);
    log.flush().unwrap();
    assert_eq!(calls.try_iter().count(), 0);
}

#[test]
fn the_flusher_answers_all_that_waited_and_tells_those_who_lost() {
    let faulty = FaultyVolume::new(Arc::new(MemoryVolume::new()));
    let broker = Broker::new(faulty.clone());
    let flusher = Flusher::start(broker.session.clone());
    let logs: Vec<Arc<Log>> = (0..20)
        .map(|partition| {
            let dir = format!("topics/t/{partition}");
            let config = LogConfig::default();
            Arc::new(
                Log::open(
                    broker.volume.clone(),
                    broker.session.clone(),
                    &dir,
                    config,
                    0,
                )
                .unwrap(),
            )
        })
        .collect();
    let (answer, answers) = mpsc::channel();
    let produce = |log: &Arc<Log>| {
        let appended = log.append(batch(&["a"]), AT_NOW).unwrap();
        let answer = answer.clone();
        flusher.flush(
            log,
            &appended,
            Box::new(move |result| answer.send(result.is_ok()).unwrap()),
        );
    };
    for _ in 0..10 {
        logs.iter().for_each(produce);
    }
    assert_eq!(answers.iter().take(200).filter(|ok| *ok).count(), 200);
    assert!(logs.iter().all(|log| log.high_watermark().unwrap() == 10));

    faulty.fail_from(1, Fault::FailedSync);
    logs.iter().for_each(produce);
    assert_eq!(answers.iter().take(20).filter(|ok| *ok).count(), 0);
    faulty.heal();
    logs.iter().for_each(produce);
    assert_eq!(answers.iter().take(20).filter(|ok| *ok).count(), 20);
    assert!(logs.iter().all(|log| log.high_watermark().unwrap() == 11));
    fence(&*broker.volume, broker.name()).unwrap();
    logs.iter().for_each(produce);
    drop(flusher);
    assert_eq!(answers.iter().take(20).filter(|ok| *ok).count(), 0);
}

fn keyed(pairs: &[(&str, Option<&str>)]) -> Bytes {
    let builder = pairs
        .iter()
        .fold(BatchBuilder::new(0), |builder, (key, value)| {
            builder.record(NOW, Some(key.as_bytes()), value.map(str::as_bytes))
        });
    builder.compression(Compression::Snappy).build()
}

fn compacted() -> LogConfig {
    LogConfig {
        cleanup_policy: CleanupPolicy {
            delete: false,
            compact: true,
        },
        min_cleanable_dirty_ratio: 0.0,
        segment_bytes: 115,
        ..LogConfig::default()
    }
}

#[test]
fn compaction_keeps_the_latest_record_of_each_key_under_its_offset() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log_with(compacted());
    log.append(
        keyed(&[("a", Some("1")), ("b", Some("2")), ("a", Some("3"))]),
        AT_NOW,
    )
    .unwrap();
    log.append(keyed(&[("b", Some("4"))]), AT_NOW).unwrap();
    log.append(keyed(&[("a", Some("in the last segment"))]), AT_NOW)
        .unwrap();
    log.flush().unwrap();
    assert_eq!(log.compact(NOW).unwrap(), 2);
    let left = values(&[(2, "3"), (3, "4"), (4, "in the last segment")]);
    assert_eq!(read_all(&log), left);
    assert_eq!(
        broker.files(),
        [
            "00000000000000000000.0.1.log",
            "00000000000000000003.0.1.log",
            "00000000000000000004.0.log"
        ]
    );
    assert_eq!(log.compact(NOW).unwrap(), 0, "nothing is dirty");
    let broker = broker.restart();
    let log = broker.log_with(compacted());
    assert_eq!(read_all(&log), left);
    assert_eq!(log.start_offset().unwrap(), 0);
    log.append(keyed(&[("b", Some("5"))]), AT_NOW).unwrap();
    log.append(keyed(&[("c", Some("6"))]), AT_NOW).unwrap();
    log.flush().unwrap();
    assert_eq!(log.compact(NOW).unwrap(), 4);
    assert_eq!(
        read_all(&log),
        values(&[(4, "in the last segment"), (5, "5"), (6, "6")])
    );
    assert_eq!(
        read_from(&log, 1, Isolation::ReadUncommitted).len(),
        3,
        "a gap is read across"
    );
}

#[test]
fn a_tombstone_goes_when_it_was_compacted_before_and_is_old_enough() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log_with(LogConfig {
        delete_retention_ms: 100,
        ..compacted()
    });
    log.append(keyed(&[("a", Some("1"))]), AT_NOW).unwrap();
    log.append(keyed(&[("a", None)]), AT_NOW).unwrap();
    let next = |value| {
        log.append(keyed(&[("b", Some(value))]), AT_NOW).unwrap();
        log.flush().unwrap();
    };
    next("2");
    log.compact(NOW + 1_000).unwrap();
    assert_eq!(read_all(&log), values(&[(1, ""), (2, "2")]));
    next("3");
    log.compact(NOW + 100).unwrap();
    assert_eq!(read_all(&log), values(&[(1, ""), (2, "2"), (3, "3")]));
    next("4");
    log.compact(NOW + 101).unwrap();
    assert_eq!(read_all(&log), values(&[(3, "3"), (4, "4")]));
}

#[test]
fn compaction_leaves_alone_what_is_not_stable_or_too_young_and_an_aborted_record_hides_nothing() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log_with(LogConfig {
        min_compaction_lag_ms: 10,
        ..compacted()
    });
    let in_transaction = |producer_id, value: &str| {
        let builder = BatchBuilder::new(0)
            .producer(producer_id, 0, 0)
            .transactional();
        builder
            .record(NOW, Some(b"a"), Some(value.as_bytes()))
            .build()
    };
    log.append(keyed(&[("a", Some("old"))]), AT_NOW).unwrap();
    log.append(keyed(&[("a", Some("committed"))]), AT_NOW)
        .unwrap();
    log.append(in_transaction(1, "aborted"), AT_NOW).unwrap();
    log.append_marker(marker(1, 0, false), NOW).unwrap();
    log.append(in_transaction(2, "open"), AT_NOW).unwrap();
    log.append(keyed(&[("b", Some("last"))]), AT_NOW).unwrap();
    log.flush().unwrap();
    assert_eq!(log.compact(NOW + 9).unwrap(), 0, "too young");
    log.compact(NOW + 10).unwrap();
    let left: Vec<String> = read_all(&log)
        .into_iter()
        .map(|(_, value)| value)
        .filter(|value| value.len() < 20)
        .collect();
    assert_eq!(left[..2], ["committed", "aborted"]);
    assert_eq!(left[left.len() - 2..], ["open", "last"]);
    assert_eq!(log.aborted_transactions(0, 9).unwrap().len(), 1);
}

#[test]
fn a_compacted_topic_takes_no_record_without_a_key() {
    let broker = Broker::new(MemoryVolume::new());
    let log = broker.log_with(LogConfig {
        segment_bytes: 1_000,
        ..compacted()
    });
    assert_eq!(refused(&log, batch(&["a"])), ErrorCode::INVALID_RECORD);
    assert!(log.append(keyed(&[("a", None)]), AT_NOW).is_ok());
}

#[test]
fn segment_names_say_base_epoch_and_revision_and_nothing_else_is_one() {
    let name = SegmentName {
        base: 42,
        epoch: 7,
        revision: 0,
    };
    assert_eq!(name.to_string(), "00000000000000000042.7.log");
    assert_eq!(SegmentName::parse("00000000000000000042.7.log"), Some(name));
    let compacted = SegmentName {
        revision: 3,
        ..name
    };
    assert_eq!(SegmentName::parse(&compacted.to_string()), Some(compacted));
    for other in [
        "42.7.log",
        "00000000000000000042.log",
        "00000000000000000042.7.0.log",
        "checkpoint.json",
        ".log",
    ] {
        assert_eq!(SegmentName::parse(other), None, "{other}");
    }
}
