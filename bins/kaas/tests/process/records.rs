//! Records as clients write and read them: what is refused and how, what waits for what, and what is there after a
//! restart. The answers are Kafka 4.4's own, read off a running one.

use std::time::Duration;

use bytes::Bytes;
use kaas_tests::connection::Connection;
use kaas_tests::time::{SOON, Stopwatch};
use kaas_tests::topic;
use kaas_wire::batch::{BatchBuilder, Compression};
use kaas_wire::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use kaas_wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use kaas_wire::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic, PartitionData,
};
use kaas_wire::messages::init_producer_id::InitProducerIdRequest;
use kaas_wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use kaas_wire::messages::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kaas_wire::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData,
};
use kaas_wire::{ErrorCode, Records, Uuid};

use crate::{kaas, shared};

/// No wait of these tests ends at it.
const LONG_MS: i32 = 20_000;

fn numbered(values: &[&str], producer_id: i64, epoch: i16, sequence: i32) -> Bytes {
    values
        .iter()
        .fold(
            BatchBuilder::new(0).producer(producer_id, epoch, sequence),
            |batch, value| batch.record(1_000, Some(b"k"), Some(value.as_bytes())),
        )
        .build()
}

fn plain(values: &[&str]) -> Bytes {
    timed(values, 1_000)
}

fn timed(values: &[&str], timestamp: i64) -> Bytes {
    values
        .iter()
        .fold(BatchBuilder::new(0), |batch, value| {
            batch.record(timestamp, Some(b"k"), Some(value.as_bytes()))
        })
        .build()
}

/// With its crc made right again.
fn patched(batch: &Bytes, patch: impl FnOnce(&mut [u8])) -> Bytes {
    let mut bytes = batch.to_vec();
    patch(&mut bytes);
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    Bytes::from(bytes)
}

fn create_compacted(connection: &mut Connection, name: &str) {
    let configs = vec![CreatableTopicConfig {
        name: "cleanup.policy".to_owned(),
        value: Some("compact".to_owned()),
    }];
    let topics = vec![CreatableTopic {
        name: name.to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        configs,
        ..Default::default()
    }];
    connection.call(
        7,
        &CreateTopicsRequest {
            topics,
            timeout_ms: 10_000,
            validate_only: false,
        },
    );
}

/// The error and the new start of partition 0.
fn delete_below(connection: &mut Connection, name: &str, offset: i64) -> (ErrorCode, i64) {
    let partitions = vec![DeleteRecordsPartition {
        partition_index: 0,
        offset,
    }];
    let topics = vec![DeleteRecordsTopic {
        name: name.to_owned(),
        partitions,
    }];
    let mut response = connection.call(
        2,
        &DeleteRecordsRequest {
            topics,
            timeout_ms: 10_000,
        },
    );
    let deleted = response.topics.remove(0).partitions.remove(0);
    (deleted.error_code, deleted.low_watermark)
}

/// Bit by bit: the suites need no crate for it.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                crc >> 1 ^ 0x82f6_3b78
            } else {
                crc >> 1
            }
        })
    })
}

fn produce(
    connection: &mut Connection,
    version: i16,
    request: &ProduceRequest,
) -> PartitionProduceResponse {
    connection
        .call(version, request)
        .responses
        .remove(0)
        .partition_responses
        .remove(0)
}

fn append(connection: &mut Connection, name: &str, records: Bytes) -> PartitionProduceResponse {
    produce(connection, 12, &topic::produce_request(name, 0, records))
}

fn refusal(
    connection: &mut Connection,
    version: i16,
    name: &str,
    records: Option<Bytes>,
) -> (ErrorCode, i64) {
    let mut request = topic::produce_request(name, 0, Bytes::new());
    request.topic_data[0].partition_data[0].records = records;
    let answer = produce(connection, version, &request);
    assert_eq!(answer.base_offset, -1);
    (answer.error_code, answer.log_start_offset)
}

#[test]
fn batches_that_may_not_be_appended_are_refused_with_kafkas_codes() {
    let broker = shared();
    let connection = &mut broker.connect();
    topic::create(connection, "picky", 1);
    let good = plain(&["one", "two"]);
    let broken = {
        let mut bytes = good.to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        Bytes::from(bytes)
    };
    let twice = Bytes::from([&good[..], &good[..]].concat());
    let magic = |magic: u8| patched(&good, |bytes| bytes[16] = magic);
    let zstd = patched(&good, |bytes| bytes[22] = 4);
    let invalid = ErrorCode::INVALID_RECORD;
    for (what, version, records, code, start) in [
        ("nothing", 9, Some(Bytes::new()), invalid, -1),
        ("null", 9, None, invalid, -1),
        ("two batches", 9, Some(twice), invalid, -1),
        (
            "a broken crc",
            9,
            Some(broken),
            ErrorCode::CORRUPT_MESSAGE,
            -1,
        ),
        ("half a header", 9, Some(good.slice(..40)), invalid, -1),
        (
            "half a batch",
            9,
            Some(good.slice(..good.len() - 1)),
            invalid,
            -1,
        ),
        ("magic 1", 9, Some(magic(1)), invalid, -1),
        ("magic 3", 9, Some(magic(3)), ErrorCode::CORRUPT_MESSAGE, -1),
        (
            "zstd for those who cannot read it",
            6,
            Some(zstd),
            ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
            -1,
        ),
        (
            "a control batch",
            9,
            Some(patched(&good, |bytes| bytes[22] = 0x20)),
            invalid,
            0,
        ),
        (
            "a base offset",
            9,
            Some(patched(&good, |bytes| bytes[7] = 5)),
            invalid,
            0,
        ),
        (
            "too many records",
            9,
            Some(patched(&good, |bytes| bytes[26] = 9)),
            invalid,
            0,
        ),
        (
            "too large a batch",
            9,
            Some(plain(&["x".repeat(1_100_000).as_str()])),
            ErrorCode::MESSAGE_TOO_LARGE,
            -1,
        ),
        (
            "a transaction without an id",
            9,
            Some(patched(&numbered(&["a"], 5, 0, 0), |bytes| {
                bytes[22] = 0x10
            })),
            ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            -1,
        ),
    ] {
        assert_eq!(
            refusal(connection, version, "picky", records),
            (code, start),
            "{what}"
        );
    }
    // What trails a batch and is no batch of its own is ignored.
    let trailed = Bytes::from([&good[..], &good[..30]].concat());
    assert_eq!(
        append(connection, "picky", trailed).error_code,
        ErrorCode::NONE
    );
    assert_eq!(topic::offset(connection, "picky", 0, -1), 2);
}

#[test]
fn each_partition_of_a_produce_has_its_own_answer() {
    let broker = shared();
    let connection = &mut broker.connect();
    let id = topic::create(connection, "each", 1);
    let data = |index| PartitionProduceData {
        index,
        records: Some(plain(&["x"])),
    };
    let by_name = ProduceRequest {
        acks: 1,
        topic_data: vec![
            TopicProduceData {
                name: "nowhere".to_owned(),
                partition_data: vec![data(0)],
                ..Default::default()
            },
            TopicProduceData {
                name: "each".to_owned(),
                partition_data: vec![data(0), data(7)],
                ..Default::default()
            },
        ],
        ..Default::default()
    };
    let codes = |response: kaas_wire::messages::produce::ProduceResponse| -> Vec<ErrorCode> {
        response
            .responses
            .iter()
            .flat_map(|topic| &topic.partition_responses)
            .map(|one| one.error_code)
            .collect()
    };
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(
        codes(connection.call(9, &by_name)),
        [unknown, ErrorCode::NONE, unknown]
    );
    let by_id = ProduceRequest {
        acks: 1,
        topic_data: [id, Uuid::from_bytes([9; 16])]
            .map(|topic_id| TopicProduceData {
                topic_id,
                partition_data: vec![data(0)],
                ..Default::default()
            })
            .to_vec(),
        ..Default::default()
    };
    assert_eq!(
        codes(connection.call(13, &by_id)),
        [ErrorCode::NONE, ErrorCode::UNKNOWN_TOPIC_ID]
    );
    let odd_acks = ProduceRequest {
        acks: 2,
        ..topic::produce_request("each", 0, plain(&["x"]))
    };
    assert_eq!(
        codes(connection.call(9, &odd_acks)),
        [ErrorCode::INVALID_REQUIRED_ACKS]
    );
}

#[test]
fn with_acks_0_there_is_no_answer_and_an_error_closes_the_connection() {
    let broker = shared();
    let connection = &mut broker.connect();
    topic::create(connection, "silent", 1);
    let unanswered = |name: &str| ProduceRequest {
        acks: 0,
        ..topic::produce_request(name, 0, plain(&["x"]))
    };
    let send = |connection: &mut Connection, name: &str| {
        let frame = connection.frame(9, 7, &unanswered(name));
        connection
            .send_bytes(&frame)
            .expect("the connection is open");
    };
    for _ in 0..3 {
        send(connection, "silent");
    }
    // The next answer is that of the next request that wants one.
    assert_eq!(append(connection, "silent", plain(&["y"])).base_offset, 3);
    send(connection, "nowhere");
    connection.assert_closed();
}

#[test]
fn records_to_blame_are_named() {
    let broker = shared();
    let connection = &mut broker.connect();
    topic::create(connection, "future", 1);
    let far = 99_999_999_999_999;
    let answer = append(connection, "future", timed(&["a", "b"], far));
    assert_eq!(answer.error_code, ErrorCode::INVALID_TIMESTAMP);
    assert_eq!(
        answer.error_message.as_deref(),
        Some("One or more records have been rejected due to invalid timestamp")
    );
    let blamed: Vec<i32> = answer
        .record_errors
        .iter()
        .map(|one| one.batch_index)
        .collect();
    assert_eq!(blamed, [0, 1]);
    let why = answer.record_errors[1]
        .batch_index_error_message
        .as_deref()
        .unwrap();
    let expected = format!(
        "Timestamp {far} of message with offset 1 is out of range. The timestamp should be within ["
    );
    assert!(why.starts_with(&expected), "{why}");

    create_compacted(connection, "keyed");
    for compression in [Compression::None, Compression::Gzip] {
        let batch = BatchBuilder::new(0)
            .compression(compression)
            .record(1_000, Some(b"k"), Some(b"v"))
            .record(1_000, None, Some(b"v"))
            .build();
        let answer = append(connection, "keyed", batch);
        assert_eq!(
            (answer.error_code, answer.log_start_offset),
            (ErrorCode::INVALID_RECORD, 0)
        );
        let why = "Compacted topic cannot accept message without key in topic partition keyed-0";
        assert_eq!(answer.record_errors.len(), 1);
        assert_eq!(answer.record_errors[0].batch_index, 1);
        assert_eq!(
            answer.record_errors[0].batch_index_error_message.as_deref(),
            Some(why)
        );
        assert_eq!(
            answer.error_message,
            Some(format!(
                "One or more records have been rejected due to 1 record errors in total, and only showing the first three errors at most: [RecordError(batchIndex=1, message='{why}')]"
            ))
        );
    }
}

#[test]
fn an_idempotent_producers_batches_are_in_the_log_once_and_in_order_over_a_restart() {
    let mut broker = kaas().start();
    let connection = &mut broker.connect();
    topic::create(connection, "once", 1);
    let id = |connection: &mut Connection| {
        let given = connection.call(
            4,
            &InitProducerIdRequest {
                transactional_id: None,
                producer_id: -1,
                producer_epoch: -1,
                ..Default::default()
            },
        );
        assert_eq!(
            (given.error_code, given.producer_epoch),
            (ErrorCode::NONE, 0)
        );
        given.producer_id
    };
    let producer = id(connection);
    assert_ne!(id(connection), producer);
    let told = |answer: PartitionProduceResponse| (answer.error_code, answer.base_offset);
    assert_eq!(
        told(append(
            connection,
            "once",
            numbered(&["a", "b"], producer, 0, 0)
        )),
        (ErrorCode::NONE, 0)
    );
    broker.kill();
    broker.start_again();
    let connection = &mut broker.connect();
    assert_eq!(
        told(append(
            connection,
            "once",
            numbered(&["a", "b"], producer, 0, 0)
        )),
        (ErrorCode::NONE, 0)
    );
    let gap = append(connection, "once", numbered(&["d"], producer, 0, 3));
    assert_eq!(told(gap), (ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1));
    assert_eq!(
        told(append(connection, "once", numbered(&["c"], producer, 0, 2))),
        (ErrorCode::NONE, 2)
    );
    assert_eq!(
        told(append(connection, "once", numbered(&["d"], producer, 1, 0))),
        (ErrorCode::NONE, 3)
    );
    let fenced = append(connection, "once", numbered(&["e"], producer, 0, 3));
    assert_eq!(told(fenced), (ErrorCode::INVALID_PRODUCER_EPOCH, -1));
    let values: Vec<Vec<u8>> = topic::read_all(connection, "once", 0)
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    assert_eq!(values, [b"a", b"b", b"c", b"d"]);
    let later = id(connection);
    assert!(
        later > producer + 1,
        "{later} may have been given before the restart"
    );
}

/// One partition of a fetch in version 12.
struct Wanted<'a> {
    topic: &'a str,
    offset: i64,
    max_bytes: i32,
    epoch: i32,
}

fn wanted(topic: &str, offset: i64) -> Wanted<'_> {
    Wanted {
        topic,
        offset,
        max_bytes: 1 << 20,
        epoch: -1,
    }
}

fn fetch_request(wanted: &[Wanted]) -> FetchRequest {
    let topics = wanted
        .iter()
        .map(|one| FetchTopic {
            topic: one.topic.to_owned(),
            partitions: vec![FetchPartition {
                partition: 0,
                fetch_offset: one.offset,
                partition_max_bytes: one.max_bytes,
                current_leader_epoch: one.epoch,
                ..Default::default()
            }],
            ..Default::default()
        })
        .collect();
    FetchRequest {
        min_bytes: 1,
        max_bytes: 1 << 24,
        topics,
        ..Default::default()
    }
}

fn data(response: &FetchResponse) -> Vec<&PartitionData> {
    response
        .responses
        .iter()
        .flat_map(|topic| &topic.partitions)
        .collect()
}

fn size(data: &PartitionData) -> usize {
    match &data.records {
        Records::Inline(bytes) => bytes.len(),
        other => panic!("records came as {other:?}"),
    }
}

#[test]
fn a_fetch_waits_until_there_is_enough_or_its_time_is_over() {
    let broker = shared();
    let connection = &mut broker.connect();
    topic::create(connection, "awaited", 1);
    // Nothing comes: its own time ends it.
    let clock = Stopwatch::start();
    let short = FetchRequest {
        max_wait_ms: 300,
        ..fetch_request(&[wanted("awaited", 0)])
    };
    assert_eq!(size(data(&connection.call(12, &short))[0]), 0);
    assert!(clock.elapsed() >= Duration::from_millis(300));
    // Enough comes: that ends it.
    let one = plain(&["x"]).len();
    let patient = FetchRequest {
        max_wait_ms: LONG_MS,
        min_bytes: 2 * one as i32,
        ..fetch_request(&[wanted("awaited", 0)])
    };
    let sent = connection.send(12, &patient);
    let producer = &mut broker.connect();
    append(producer, "awaited", plain(&["x"]));
    connection.assert_silent(Duration::from_millis(200));
    append(producer, "awaited", plain(&["y"]));
    let response = connection
        .receive_within(sent, SOON)
        .expect("it is answered");
    assert_eq!(size(data(&response)[0]), 2 * one);
    assert_eq!(data(&response)[0].high_watermark, 2);
}

#[test]
fn a_fetch_that_waits_is_answered_when_its_topic_goes() {
    let broker = shared();
    let connection = &mut broker.connect();
    topic::create(connection, "vanishing", 1);
    let sent = connection.send(
        12,
        &FetchRequest {
            max_wait_ms: LONG_MS,
            ..fetch_request(&[wanted("vanishing", 0)])
        },
    );
    topic::delete(&mut broker.connect(), "vanishing");
    let response = connection
        .receive_within(sent, SOON)
        .expect("it is answered");
    assert_eq!(
        data(&response)[0].error_code,
        ErrorCode::NOT_LEADER_OR_FOLLOWER
    );
}

#[test]
fn the_first_batch_comes_whatever_its_size_and_the_others_within_the_limits() {
    let broker = shared();
    let connection = &mut broker.connect();
    for name in ["first", "second"] {
        topic::create(connection, name, 1);
        for _ in 0..3 {
            append(connection, name, plain(&["x".repeat(500).as_str()]));
        }
    }
    let one = plain(&["x".repeat(500).as_str()]).len();
    let mut sizes = |max_bytes: i32, of_each: i32| {
        let wanted = ["first", "second"].map(|topic| Wanted {
            max_bytes: of_each,
            ..wanted(topic, 0)
        });
        let response = connection.call(
            12,
            &FetchRequest {
                max_bytes,
                ..fetch_request(&wanted)
            },
        );
        data(&response).into_iter().map(size).collect::<Vec<_>>()
    };
    assert_eq!(sizes(1, 1), [one, 0]);
    assert_eq!(sizes(1 << 20, 1), [one, 0]);
    assert_eq!(sizes(1 << 20, 1 << 20), [3 * one, 3 * one]);
    assert_eq!(sizes(4 * one as i32, 1 << 20), [3 * one, one]);
    assert_eq!(sizes(1 << 20, 2 * one as i32), [2 * one, 2 * one]);
}

#[test]
fn offsets_outside_the_log_and_unknown_partitions_are_told_at_once() {
    let broker = shared();
    let connection = &mut broker.connect();
    topic::create(connection, "short", 1);
    append(connection, "short", plain(&["x"]));
    let request = FetchRequest {
        max_wait_ms: LONG_MS,
        ..fetch_request(&[
            wanted("short", 2),
            wanted("short", -1),
            wanted("nowhere", 0),
        ])
    };
    let response = connection.call(12, &request);
    let codes: Vec<(ErrorCode, i64)> = data(&response)
        .iter()
        .map(|data| (data.error_code, data.high_watermark))
        .collect();
    let out = (ErrorCode::OFFSET_OUT_OF_RANGE, -1);
    assert_eq!(
        codes,
        [out, out, (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, -1)]
    );
    let mut by_id = fetch_request(&[wanted("", 0)]);
    by_id.topics[0].topic_id = Uuid::from_bytes([9; 16]);
    let response = connection.call(13, &by_id);
    assert_eq!(data(&response)[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID);
}

#[test]
fn names_and_ids_fetch_the_same_in_every_version() {
    let broker = shared();
    let connection = &mut broker.connect();
    let id = topic::create(connection, "same", 1);
    append(connection, "same", plain(&["x", "y"]));
    let expected = {
        let response = connection.call(12, &fetch_request(&[wanted("same", 0)]));
        data(&response)[0].records.clone()
    };
    for version in 4..=18 {
        let mut request = fetch_request(&[wanted("same", 0)]);
        request.topics[0].topic_id = id;
        let response = connection.call(version, &request);
        assert_eq!(data(&response)[0].records, expected, "version {version}");
    }
}

#[test]
fn every_restart_is_a_new_leader_epoch_and_old_ones_are_refused() {
    let mut broker = kaas().start();
    let connection = &mut broker.connect();
    topic::create(connection, "epochs", 1);
    append(connection, "epochs", plain(&["a", "b"]));
    broker.kill();
    broker.start_again();
    let connection = &mut broker.connect();
    append(connection, "epochs", plain(&["c"]));
    let mut code = |epoch| {
        let response = connection.call(
            12,
            &fetch_request(&[Wanted {
                epoch,
                ..wanted("epochs", 0)
            }]),
        );
        data(&response)[0].error_code
    };
    assert_eq!(code(0), ErrorCode::FENCED_LEADER_EPOCH);
    assert_eq!(code(1), ErrorCode::NONE);
    assert_eq!(code(2), ErrorCode::UNKNOWN_LEADER_EPOCH);
    let mut end = |current_leader_epoch, leader_epoch| {
        let partitions = vec![OffsetForLeaderPartition {
            partition: 0,
            current_leader_epoch,
            leader_epoch,
        }];
        let topics = vec![OffsetForLeaderTopic {
            topic: "epochs".to_owned(),
            partitions,
        }];
        let mut response = connection.call(
            4,
            &OffsetForLeaderEpochRequest {
                replica_id: -1,
                topics,
            },
        );
        let found = response.topics.remove(0).partitions.remove(0);
        (found.error_code, found.leader_epoch, found.end_offset)
    };
    assert_eq!(end(-1, 0), (ErrorCode::NONE, 0, 2));
    assert_eq!(end(1, 1), (ErrorCode::NONE, 1, 3));
    assert_eq!(end(-1, 5), (ErrorCode::NONE, -1, -1));
    assert_eq!(end(0, 0), (ErrorCode::FENCED_LEADER_EPOCH, -1, -1));
    assert_eq!(end(9, 0), (ErrorCode::UNKNOWN_LEADER_EPOCH, -1, -1));
    // The epoch is in the batches too.
    let Records::Inline(records) = ({
        let response = connection.call(12, &fetch_request(&[wanted("epochs", 0)]));
        data(&response)[0].records.clone()
    }) else {
        panic!("records come in the answer")
    };
    let epochs: Vec<i32> = kaas_wire::batch::batches(&records)
        .map_while(Result::ok)
        .map(|batch| batch.header.partition_leader_epoch)
        .collect();
    assert_eq!(epochs.first(), Some(&0));
}

#[test]
fn offsets_are_found_by_time() {
    let broker = shared();
    let connection = &mut broker.connect();
    topic::create(connection, "timed", 1);
    let mut list = |version: i16, timestamp: i64| {
        let partitions = vec![ListOffsetsPartition {
            partition_index: 0,
            current_leader_epoch: -1,
            timestamp,
        }];
        let topics = vec![ListOffsetsTopic {
            name: "timed".to_owned(),
            partitions,
        }];
        let request = ListOffsetsRequest {
            replica_id: -1,
            topics,
            ..Default::default()
        };
        let found = connection
            .call(version, &request)
            .topics
            .remove(0)
            .partitions
            .remove(0);
        (found.error_code, found.timestamp, found.offset)
    };
    let none = (ErrorCode::NONE, -1, -1);
    assert_eq!(list(11, -1), (ErrorCode::NONE, -1, 0));
    assert_eq!(list(11, -3), none);
    let producer = &mut broker.connect();
    for (timestamp, values) in [(100, &["a"][..]), (200, &["b", "c"]), (150, &["d"])] {
        append(producer, "timed", timed(values, timestamp));
    }
    let unsupported = (ErrorCode::UNSUPPORTED_VERSION, -1, -1);
    for (version, timestamp, expected) in [
        (1, -1, (ErrorCode::NONE, -1, 4)),
        (1, -2, (ErrorCode::NONE, -1, 0)),
        (1, 0, (ErrorCode::NONE, 100, 0)),
        (1, 100, (ErrorCode::NONE, 100, 0)),
        (1, 101, (ErrorCode::NONE, 200, 1)),
        (1, 200, (ErrorCode::NONE, 200, 1)),
        (1, 201, none),
        (6, -3, unsupported),
        (7, -3, (ErrorCode::NONE, 200, 1)),
        (7, -4, unsupported),
        (8, -4, (ErrorCode::NONE, -1, 0)),
        (8, -5, unsupported),
        (9, -5, none),
        (10, -6, unsupported),
        (11, -6, none),
        (11, -7, unsupported),
    ] {
        assert_eq!(
            list(version, timestamp),
            expected,
            "{timestamp} in version {version}"
        );
    }
}

#[test]
fn deleted_records_stay_deleted_over_a_restart() {
    let mut broker = kaas().start();
    let connection = &mut broker.connect();
    topic::create(connection, "trimmed", 1);
    append(connection, "trimmed", plain(&["a", "b", "c"]));
    append(connection, "trimmed", plain(&["d"]));
    assert_eq!(delete_below(connection, "trimmed", 2), (ErrorCode::NONE, 2));
    assert_eq!(delete_below(connection, "trimmed", 1), (ErrorCode::NONE, 2));
    assert_eq!(
        delete_below(connection, "trimmed", 99),
        (ErrorCode::OFFSET_OUT_OF_RANGE, -1)
    );
    assert_eq!(
        delete_below(connection, "trimmed", -5),
        (ErrorCode::OFFSET_OUT_OF_RANGE, -1)
    );
    assert_eq!(
        delete_below(connection, "nowhere", 1),
        (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, -1)
    );
    broker.kill();
    broker.start_again();
    let connection = &mut broker.connect();
    assert_eq!(
        topic::read_all(connection, "trimmed", 0),
        [(2, b"c".to_vec()), (3, b"d".to_vec())]
    );
    assert_eq!(
        delete_below(connection, "trimmed", -1),
        (ErrorCode::NONE, 4)
    );
    assert_eq!(topic::offset(connection, "trimmed", 0, -2), 4);
    assert_eq!(append(connection, "trimmed", plain(&["e"])).base_offset, 4);
}

#[test]
fn what_is_only_compacted_is_not_deleted_on_request() {
    let broker = shared();
    let connection = &mut broker.connect();
    create_compacted(connection, "kept");
    assert_eq!(
        delete_below(connection, "kept", 0),
        (ErrorCode::POLICY_VIOLATION, -1)
    );
}

#[test]
fn a_fetch_session_answers_only_what_is_new() {
    let broker = shared();
    let connection = &mut broker.connect();
    for name in ["busy", "calm"] {
        topic::create(connection, name, 1);
        append(connection, name, plain(&["x"]));
    }
    let in_session = |session_id, session_epoch, wanted: &[Wanted]| FetchRequest {
        session_id,
        session_epoch,
        ..fetch_request(wanted)
    };
    let opened = connection.call(
        12,
        &in_session(0, 0, &[wanted("busy", 0), wanted("calm", 0)]),
    );
    let id = opened.session_id;
    assert_ne!(id, 0);
    assert_eq!(data(&opened).len(), 2);
    // Asked for nothing else, it gets the same again: it did not say that it has it.
    assert_eq!(data(&connection.call(12, &in_session(id, 1, &[]))).len(), 2);
    let moved = connection.call(
        12,
        &in_session(id, 2, &[wanted("busy", 1), wanted("calm", 1)]),
    );
    assert_eq!((moved.session_id, data(&moved).len()), (id, 0));
    append(&mut broker.connect(), "busy", plain(&["y"]));
    let news = connection.call(12, &in_session(id, 3, &[]));
    assert_eq!(
        news.responses
            .iter()
            .map(|topic| topic.topic.as_str())
            .collect::<Vec<_>>(),
        ["busy"]
    );
    assert_eq!(data(&news)[0].high_watermark, 2);

    let mut refused = |version, request: FetchRequest| {
        let response = connection.call(version, &request);
        assert!(response.responses.is_empty());
        (response.error_code, response.session_id)
    };
    assert_eq!(
        refused(12, in_session(id, 3, &[])),
        (ErrorCode::INVALID_FETCH_SESSION_EPOCH, 0)
    );
    assert_eq!(
        refused(13, in_session(id, 4, &[])),
        (ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR, 0)
    );
    assert_eq!(
        refused(12, in_session(id ^ 1, 1, &[])),
        (ErrorCode::FETCH_SESSION_ID_NOT_FOUND, 0)
    );
    let forgotten_topics_data = ["busy", "calm"]
        .map(|topic| ForgottenTopic {
            topic: topic.to_owned(),
            partitions: vec![0],
            ..Default::default()
        })
        .to_vec();
    let forget = FetchRequest {
        forgotten_topics_data,
        ..in_session(id, 4, &[])
    };
    assert_eq!(refused(12, forget), (ErrorCode::NONE, 0));
    assert_eq!(
        refused(12, in_session(id, 5, &[])),
        (ErrorCode::FETCH_SESSION_ID_NOT_FOUND, 0)
    );
}

#[test]
fn a_small_answer_starves_no_partition_of_a_session() {
    let broker = shared();
    let connection = &mut broker.connect();
    let names = ["turn-a", "turn-b", "turn-c"];
    for name in names {
        topic::create(connection, name, 1);
        append(connection, name, plain(&["x"]));
    }
    let request = |session_id, session_epoch, wanted: &[Wanted]| FetchRequest {
        session_id,
        session_epoch,
        max_bytes: 1,
        ..fetch_request(wanted)
    };
    let all = names.map(|name| wanted(name, 0));
    let mut served = Vec::new();
    let mut response = connection.call(12, &request(0, 0, &all));
    for epoch in 1..=3 {
        served.extend(
            response
                .responses
                .iter()
                .filter(|topic| topic.partitions.iter().any(|data| size(data) > 0))
                .map(|topic| topic.topic.clone()),
        );
        response = connection.call(12, &request(response.session_id, epoch, &[]));
    }
    served.sort();
    served.dedup();
    // The first answer was of a full fetch, whose order stands; the turns begin after it.
    assert!(served.len() >= 2, "only {served:?} were served");
}

#[test]
fn read_committed_readers_get_lists_of_aborted_transactions_and_others_none() {
    let broker = shared();
    let connection = &mut broker.connect();
    topic::create(connection, "isolated", 1);
    append(connection, "isolated", plain(&["x"]));
    for (isolation_level, expected) in [(0, None), (1, Some(Vec::new()))] {
        let request = FetchRequest {
            isolation_level,
            ..fetch_request(&[wanted("isolated", 0)])
        };
        let response = connection.call(12, &request);
        assert_eq!(data(&response)[0].aborted_transactions, expected);
        assert_eq!(data(&response)[0].last_stable_offset, 1);
    }
}

#[test]
fn a_transactional_id_is_refused_for_good() {
    let broker = shared();
    let connection = &mut broker.connect();
    let mut code = |transactional_id: Option<&str>, producer_id, producer_epoch| {
        let request = InitProducerIdRequest {
            transactional_id: transactional_id.map(str::to_owned),
            transaction_timeout_ms: 1_000,
            producer_id,
            producer_epoch,
            ..Default::default()
        };
        connection.call(4, &request).error_code
    };
    assert_eq!(code(Some("tx"), -1, -1), ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(code(Some(""), -1, -1), ErrorCode::INVALID_REQUEST);
    assert_eq!(code(None, 5, -1), ErrorCode::INVALID_REQUEST);
    assert_eq!(code(None, -1, 5), ErrorCode::INVALID_REQUEST);
    assert_eq!(code(None, 5, 5), ErrorCode::NONE);
}
