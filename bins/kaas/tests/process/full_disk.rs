//! The disk is full: errors, nothing acknowledged is lost, and all is well when there is room again.

use kaas_tests::broker::Broker;
use kaas_tests::connection::Connection;
use kaas_tests::disk::SmallDisk;
use kaas_tests::member::{self, Member, simple_commit_request};
use kaas_tests::time::{SOON, eventually};
use kaas_tests::topic;
use kaas_wire::ErrorCode;
use kaas_wire::messages::offset_commit::OffsetCommitRequest;

use crate::quick;

const PARTITIONS: i32 = 100;

/// More than the journal and the log can hold in what they took beforehand.
const TRIES: i64 = 400;

/// A commit of the same offset everywhere, large enough to fill a journal soon.
fn large_commit(offset: i64) -> OffsetCommitRequest {
    let offsets: Vec<(i32, i64)> = (0..PARTITIONS)
        .map(|partition| (partition, offset))
        .collect();
    let mut request = simple_commit_request("g", "t", &offsets);
    for partition in &mut request.topics[0].partitions {
        partition.committed_metadata = Some("m".repeat(4_000));
    }
    request
}

fn commit(connection: &mut Connection, offset: i64) -> ErrorCode {
    let answer = connection.call(8, &large_commit(offset));
    let codes: Vec<ErrorCode> = answer.topics[0]
        .partitions
        .iter()
        .map(|partition| partition.error_code)
        .collect();
    assert!(
        codes.iter().all(|code| *code == codes[0]),
        "one write, one outcome"
    );
    codes[0]
}

fn value(number: usize) -> Vec<u8> {
    let mut value = number.to_be_bytes().to_vec();
    value.resize(200_000, 7);
    value
}

/// All records that were acknowledged are there, in their order.
fn assert_records(connection: &mut Connection, acknowledged: &[(i64, usize)]) {
    let found = topic::read_all(connection, "t", 0);
    for (offset, number) in acknowledged {
        let at = found.iter().find(|(found, _)| found == offset);
        assert!(
            at.is_some_and(|(_, found)| *found == value(*number)),
            "offset {offset} is lost"
        );
    }
}

/// The group's offset is one that was acknowledged or tried later.
fn assert_offsets(connection: &mut Connection, acknowledged: i64, tried: i64) {
    let (code, rows) = member::fetch_rows(connection, 8, "g", None);
    assert_eq!((code, rows.len()), (ErrorCode::NONE, PARTITIONS as usize));
    for row in rows {
        assert!((acknowledged..=tried).contains(&row.offset), "{row:?}");
    }
}

#[test]
fn on_a_full_disk_nothing_acknowledged_is_lost_and_service_heals() {
    let Some(disk) = SmallDisk::mount("full_disk", 96) else {
        return;
    };
    let mut broker: Broker = quick().volume(disk.path()).start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", PARTITIONS);
    let mut bystander = Member::new(&broker, "bystander");
    bystander.enter_alone();
    assert_eq!(commit(&mut connection, 0), ErrorCode::NONE);
    let mut records = Vec::new();
    let mut produced = 0;
    let mut produce = |connection: &mut Connection| {
        let number = produced;
        produced += 1;
        let answer = topic::produce(connection, "t", 0, &[value(number)]);
        if answer.error_code.is_ok() {
            records.push((answer.base_offset, number));
        }
        answer.error_code
    };
    assert_eq!(produce(&mut connection), ErrorCode::NONE);

    disk.fill();
    let refused = (0..TRIES).any(|_| !produce(&mut connection).is_ok());
    assert!(refused, "produce fails when there is no room");
    let mut acknowledged = 0;
    let mut tried = 0;
    while tried < TRIES {
        tried += 1;
        if !commit(&mut connection, tried).is_ok() {
            break;
        }
        acknowledged = tried;
    }
    assert!(acknowledged < tried, "a commit fails when there is no room");
    assert_eq!(bystander.heartbeat(), ErrorCode::NONE);

    disk.relieve();
    eventually(SOON, "commits are taken again", || {
        tried += 1;
        commit(&mut connection, tried).is_ok().then_some(())
    });
    acknowledged = tried;
    eventually(SOON, "records are taken again", || {
        produce(&mut connection).is_ok().then_some(())
    });
    assert_offsets(&mut connection, acknowledged, tried);
    assert_records(&mut connection, &records);
    assert_eq!(bystander.heartbeat(), ErrorCode::NONE);
    assert_eq!(bystander.commit("t", 0, 1), ErrorCode::NONE);

    broker.kill();
    broker.start_again();
    let mut connection = broker.connect();
    assert_offsets(&mut connection, acknowledged, tried);
    assert_records(&mut connection, &records);
    bystander.connection = broker.connect();
    assert_eq!(bystander.heartbeat(), ErrorCode::NONE);
}

#[test]
fn killed_on_a_full_disk_a_broker_loses_nothing_it_acknowledged() {
    let Some(disk) = SmallDisk::mount("full_disk, killed", 96) else {
        return;
    };
    let mut broker = quick().volume(disk.path()).start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", PARTITIONS);
    assert_eq!(commit(&mut connection, 0), ErrorCode::NONE);
    let first = topic::produce(&mut connection, "t", 0, &[value(0)]);
    assert_eq!(first.error_code, ErrorCode::NONE);
    disk.fill();
    let mut acknowledged = 0;
    let mut tried = 0;
    while tried < TRIES {
        tried += 1;
        if !commit(&mut connection, tried).is_ok() {
            break;
        }
        acknowledged = tried;
    }
    assert!(acknowledged < tried, "a commit fails when there is no room");
    broker.kill();
    disk.relieve();
    broker.start_again();
    let mut connection = broker.connect();
    assert_offsets(&mut connection, acknowledged, tried);
    assert_records(&mut connection, &[(0, 0)]);
    assert_eq!(commit(&mut connection, tried + 1), ErrorCode::NONE);
}
