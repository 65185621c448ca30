//! What comes in over a socket, well formed and not.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kaas_tests::broker::Broker;
use kaas_tests::connection::{Connection, NoFrame};
use kaas_tests::dice::Dice;
use kaas_tests::files;
use kaas_tests::member::{self, Member};
use kaas_tests::time::{SOON, Stopwatch, eventually, pause};
use kaas_tests::topic;
use kaas_wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use kaas_wire::messages::heartbeat::HeartbeatRequest;
use kaas_wire::messages::list_groups::ListGroupsRequest;
use kaas_wire::messages::metadata::MetadataRequest;
use kaas_wire::{ApiKey, ErrorCode, Message, Reader};

use crate::samples::samples;
use crate::{kaas, quick, shared};

const MIB: usize = 1024 * 1024;

fn api_versions(connection: &mut Connection) -> ApiVersionsResponse {
    let response = connection.call(
        4,
        &ApiVersionsRequest {
            client_software_name: "test".to_owned(),
            client_software_version: "1".to_owned(),
            ..ApiVersionsRequest::default()
        },
    );
    assert_eq!(response.error_code, ErrorCode::NONE);
    response
}

#[test]
fn every_advertised_api_answers_in_every_version() {
    let broker = quick().start();
    let mut connection = broker.connect();
    let samples = samples(topic::create(&mut connection, "t", 3));
    let mut left: BTreeSet<i16> = BTreeSet::new();
    let advertised = api_versions(&mut connection).api_keys;
    left.extend(advertised.iter().map(|api| api.api_key));
    for api in advertised {
        let key = ApiKey(api.api_key);
        let Some(sample) = samples.iter().find(|sample| sample.key == key) else {
            continue;
        };
        // Produce is advertised from 0 for the sake of old clients and served from 3.
        let first = if key == ApiKey::PRODUCE {
            3
        } else {
            api.min_version
        };
        for version in first..=api.max_version {
            sample.call(&mut connection, version);
        }
        left.remove(&api.api_key);
    }
    let unasked: Vec<ApiKey> = left.into_iter().map(ApiKey).collect();
    assert!(unasked.is_empty(), "no sample of {unasked:?}");
}

/// I01, I02.
#[test]
fn api_versions_above_the_served_is_answered_in_version_0_with_its_range() {
    let broker = shared();
    let mut dice = Dice::of_run("api versions");
    for version in [6, 7, 99, i16::MAX] {
        let mut connection = broker.connect();
        let mut frame = Vec::new();
        frame.extend_from_slice(&18i16.to_be_bytes());
        frame.extend_from_slice(&version.to_be_bytes());
        frame.extend_from_slice(&77i32.to_be_bytes());
        frame.extend_from_slice(&(-1i16).to_be_bytes());
        frame.push(0);
        frame.extend_from_slice(&dice.bytes(40));
        connection.send_frame(&frame).unwrap();
        let answer = connection.next_frame(SOON).expect("an answer");
        let mut reader = Reader::new(answer, MIB);
        assert_eq!(reader.i32().unwrap(), 77);
        let response = ApiVersionsResponse::decode(&mut reader, 0).unwrap();
        assert_eq!(response.error_code, ErrorCode::UNSUPPORTED_VERSION);
        let own = response.api_keys.iter().find(|api| api.api_key == 18);
        assert_eq!(
            own.map(|own| (own.min_version, own.max_version)),
            Some((0, 5))
        );
        // The connection is as good as before.
        api_versions(&mut connection);
    }
}

/// I02.
#[test]
fn api_versions_with_an_odd_software_name_is_an_invalid_request() {
    let broker = shared();
    let mut connection = broker.connect();
    let response = connection.call(
        3,
        &ApiVersionsRequest {
            client_software_name: "-odd name-".to_owned(),
            client_software_version: "1".to_owned(),
            ..ApiVersionsRequest::default()
        },
    );
    assert_eq!(response.error_code, ErrorCode::INVALID_REQUEST);
    api_versions(&mut connection);
}

/// I03, B01, I06.
#[test]
fn the_advertised_versions_switch_no_feature_of_a_client_off() {
    let broker = shared();
    let advertised = api_versions(&mut broker.connect()).api_keys;
    let range = |key: ApiKey| {
        let api = advertised.iter().find(|api| api.api_key == key.0);
        let api = api.unwrap_or_else(|| panic!("{key} is not advertised"));
        api.min_version..=api.max_version
    };
    // Consumer groups of old librdkafka.
    for (key, version) in [
        (ApiKey::PRODUCE, 0),
        (ApiKey::FIND_COORDINATOR, 0),
        (ApiKey::OFFSET_COMMIT, 2),
        (ApiKey::OFFSET_FETCH, 1),
        (ApiKey::JOIN_GROUP, 0),
        (ApiKey::SYNC_GROUP, 0),
        (ApiKey::HEARTBEAT, 0),
        (ApiKey::LEAVE_GROUP, 0),
        // Static membership.
        (ApiKey::JOIN_GROUP, 5),
        (ApiKey::SYNC_GROUP, 3),
        (ApiKey::HEARTBEAT, 3),
        (ApiKey::LEAVE_GROUP, 3),
        (ApiKey::OFFSET_COMMIT, 7),
        (ApiKey::DESCRIBE_GROUPS, 4),
        // Topic ids, without which the newer fetches and commits are useless.
        (ApiKey::METADATA, 12),
        (ApiKey::FETCH, 13),
        (ApiKey::PRODUCE, 13),
        (ApiKey::OFFSET_COMMIT, 10),
    ] {
        assert!(range(key).contains(&version), "{key} v{version}");
    }
}

/// H05.
#[test]
fn what_is_not_kafka_is_closed_at_once() {
    let broker = shared();
    let before = files::resident(broker.pid());
    let hello = [
        &[
            0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03,
        ][..],
        &[0; 32],
    ]
    .concat();
    let over_the_limit = (100 * MIB as u32 + 1).to_be_bytes();
    for first in [
        b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n".as_slice(),
        &hello,
        &0i32.to_be_bytes(),
        &(-1i32).to_be_bytes(),
        &i32::MIN.to_be_bytes(),
        &i32::MAX.to_be_bytes(),
        &over_the_limit,
    ] {
        for _ in 0..100 {
            let mut connection = broker.connect();
            connection.send_bytes(first).unwrap();
            connection.assert_closed();
        }
    }
    let grown = files::resident(broker.pid()).saturating_sub(before);
    assert!(grown < 64 * MIB, "memory grew by {grown} bytes");
    api_versions(&mut broker.connect());
}

#[test]
fn a_header_that_is_too_short_closes_the_connection() {
    let broker = shared();
    let whole = broker.connect().frame(1, 1, &ListGroupsRequest::default());
    let header = &whole[4..];
    for length in 1..header.len().min(10) {
        let mut connection = broker.connect();
        connection.send_frame(&header[..length]).unwrap();
        connection.assert_closed();
    }
}

#[test]
fn an_array_that_announces_more_than_the_frame_holds_closes_the_connection() {
    let broker = shared();
    let before = files::resident(broker.pid());
    // Metadata v0 is an array and nothing else; v9 counts in a varint.
    for version in [0i16, 1, 8] {
        for count in [1, 1_000, i32::MAX, i32::MIN, -2] {
            let mut connection = broker.connect();
            let mut frame = vec![0, 3];
            frame.extend_from_slice(&version.to_be_bytes());
            frame.extend_from_slice(&[0, 0, 0, 1, 0, 1, b'x']);
            frame.extend_from_slice(&count.to_be_bytes());
            connection.send_frame(&frame).unwrap();
            connection.assert_closed();
        }
    }
    let mut connection = broker.connect();
    let frame = [
        0, 3, 0, 9, 0, 0, 0, 1, 0, 1, b'x', 0, 0xff, 0xff, 0xff, 0xff, 0x0f,
    ];
    connection.send_frame(&frame).unwrap();
    connection.assert_closed();
    let grown = files::resident(broker.pid()).saturating_sub(before);
    assert!(grown < 64 * MIB, "memory grew by {grown} bytes");
}

/// H12.
#[test]
fn requests_before_an_unknown_one_are_answered_and_then_the_connection_closes() {
    let broker = shared();
    let heartbeat = HeartbeatRequest {
        group_id: "unknown".to_owned(),
        member_id: "nobody".to_owned(),
        ..HeartbeatRequest::default()
    };
    for (key, version) in [(999i16, 0i16), (-1, 0), (12, 99), (12, -1), (24, 0), (0, 2)] {
        let mut connection = broker.connect();
        let first = connection.send(3, &heartbeat);
        let mut frame = Vec::new();
        frame.extend_from_slice(&key.to_be_bytes());
        frame.extend_from_slice(&version.to_be_bytes());
        frame.extend_from_slice(&[0, 0, 0, 9, 0, 1, b'x', 0, 0, 0, 0]);
        connection.send_frame(&frame).unwrap();
        // The broker may have closed already.
        let _ = connection.try_send(3, &heartbeat);
        let answer = connection.receive(first);
        assert_eq!(answer.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(
            connection.next_frame(SOON),
            Err(NoFrame::Closed),
            "key {key} v{version}"
        );
    }
}

/// H11.
#[test]
fn bytes_after_a_request_are_ignored() {
    let broker = shared();
    let mut connection = broker.connect();
    for version in 0..=5 {
        for spare in 1..=8 {
            let mut frame = connection.frame(version, 1, &ListGroupsRequest::default());
            frame.extend(vec![0; spare]);
            connection.send_frame(&frame[4..]).unwrap();
            assert!(
                connection.next_frame(SOON).is_ok(),
                "v{version}, {spare} bytes"
            );
        }
    }
}

#[test]
fn half_a_frame_and_then_silence_is_closed_after_the_idle_time() {
    let broker = quick().set("connections.max.idle.ms", 300).start();
    let mut half = broker.connect();
    let frame = half.frame(1, 1, &ListGroupsRequest::default());
    half.send_bytes(&frame[..frame.len() - 3]).unwrap();
    let mut silent = broker.connect();
    half.assert_closed();
    silent.assert_closed();
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let broker = shared();
    let mut connection = broker.connect();
    let mut member = Member::new(&broker, "pipelined");
    member.enter_alone();
    // Those that wait for the disk, those that do not, and those that have the connection to themselves.
    for _ in 0..50 {
        let produced = connection.send(
            12,
            &topic::produce_request("t", 3, topic::batch(&[vec![7]])),
        );
        let beat = connection.send(3, &HeartbeatRequest::default());
        let commit = member::simple_commit_request("pipelined by others", "t", &[(0, 1)]);
        let committed = connection.send(8, &commit);
        let metadata = connection.send(9, &MetadataRequest::default());
        let listed = connection.send(4, &ListGroupsRequest::default());
        let versions = connection.send(0, &ApiVersionsRequest::default());
        connection.receive(produced);
        connection.receive(beat);
        connection.receive(committed);
        connection.receive(metadata);
        connection.receive(listed);
        connection.receive(versions);
    }
}

#[test]
fn over_max_connections_a_client_waits_until_another_goes() {
    let broker = kaas().set("max.connections", 3).start();
    let mut connections: Vec<Connection> = (0..3).map(|_| broker.connect()).collect();
    for connection in &mut connections {
        api_versions(connection);
    }
    let mut waiting = broker.connect();
    let sent = waiting.send(0, &ApiVersionsRequest::default());
    waiting.assert_silent(Duration::from_millis(200));
    connections.pop();
    waiting.receive(sent);
}

#[test]
fn over_max_connections_per_ip_a_client_is_closed_at_once() {
    let broker = kaas().set("max.connections.per.ip", 2).start();
    let mut first = broker.connect();
    api_versions(&mut first);
    let mut second = broker.connect();
    api_versions(&mut second);
    broker.connect().assert_closed();
    drop(second);
    eventually(SOON, "a place is free again", || {
        let mut connection = broker.connect();
        connection.try_call(0, &ApiVersionsRequest::default())
    });
    api_versions(&mut first);
}

#[test]
fn a_client_that_does_not_read_costs_the_broker_little() {
    let broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "big", 1);
    for _ in 0..16 {
        let produced = topic::produce(&mut connection, "big", 0, &[vec![7; MIB / 2]]);
        assert_eq!(produced.error_code, ErrorCode::NONE);
    }
    let before = files::resident(broker.pid());
    let fetch = broker
        .connect()
        .frame(11, 1, &topic::fetch_request("big", 0, 0));
    let listing = broker.connect().frame(0, 1, &ApiVersionsRequest::default());
    let mut deaf = Vec::new();
    for frame in [fetch, listing] {
        let mut connection = broker.connect();
        // Until the broker takes no more: what it has not answered it does not read.
        let stream = connection.stream();
        stream
            .set_write_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let asked = frame.repeat(1_000);
        for _ in 0..1_000 {
            if let Err(error) = connection.send_bytes(&asked) {
                assert_eq!(
                    error.kind(),
                    ErrorKind::WouldBlock,
                    "it may only wait: {error}"
                );
                break;
            }
        }
        deaf.push(connection);
    }
    let grown = files::resident(broker.pid()).saturating_sub(before);
    assert!(grown < 96 * MIB, "memory grew by {grown} bytes");
    api_versions(&mut connection);
}

/// E08.
#[test]
fn told_to_stop_the_broker_answers_or_closes_what_is_parked_and_exits_with_0() {
    let mut broker = kaas()
        .set("group.initial.rebalance.delay.ms", 60_000)
        .start();
    let mut parked = Vec::new();
    for _ in 0..50 {
        let mut member = Member::new(&broker, "parked").version(3);
        let sent = member.send_join();
        parked.push((member.connection, sent));
    }
    let mut connection = broker.connect();
    eventually(SOON, "all have joined", || {
        (member::describe(&mut connection, 5, "parked").members.len() == 50).then_some(())
    });
    let watch = Stopwatch::start();
    broker.signal(rustix::process::Signal::TERM);
    for (mut connection, sent) in parked {
        match connection.receive_within(sent, SOON) {
            Ok(answer) => assert!(
                [
                    ErrorCode::NOT_COORDINATOR,
                    ErrorCode::COORDINATOR_NOT_AVAILABLE
                ]
                .contains(&answer.error_code),
                "{answer:?}"
            ),
            Err(no_frame) => assert_eq!(no_frame, NoFrame::Closed),
        }
    }
    let answered = watch.elapsed();
    let ended = broker.wait(SOON);
    let ended_after = watch.elapsed();
    assert!(
        answered < Duration::from_secs(2),
        "answered after {answered:?}"
    );
    assert!(
        ended_after < Duration::from_secs(5),
        "ended after {ended_after:?}"
    );
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn ten_thousand_hostile_frames_disturb_nobody() {
    const FRAMES: usize = 10_000;
    const THREADS: usize = 4;
    let broker = quick().start();
    let mut connection = broker.connect();
    let samples = samples(topic::create(&mut connection, "t", 3));
    topic::create(&mut connection, "steady", 1);
    let apis = api_versions(&mut connection).api_keys;
    let before = files::resident(broker.pid());
    let mut valid = Vec::new();
    for sample in &samples {
        let Some(api) = apis.iter().find(|api| api.api_key == sample.key.0) else {
            continue;
        };
        let lowest = if sample.key == ApiKey::PRODUCE {
            3
        } else {
            api.min_version
        };
        for version in lowest..=api.max_version {
            valid.push(sample.frame(&connection, version));
        }
    }
    let mut dice = Dice::of_run("hostile frames");
    let hostile_over = AtomicBool::new(false);
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let attackers: Vec<_> = (0..THREADS)
            .map(|_| {
                let mut dice = dice.split();
                let (broker, valid) = (&broker, &valid);
                scope.spawn(move || {
                    for _ in 0..FRAMES / THREADS {
                        attack(broker, &hostile(&mut dice, valid));
                    }
                })
            })
            .collect();
        let steady = scope.spawn(|| {
            let mut member = Member::new(&broker, "steady");
            member.enter_alone();
            let mut offset = 0;
            while !hostile_over.load(Ordering::Relaxed) {
                assert_eq!(member.heartbeat(), ErrorCode::NONE);
                assert_eq!(member.commit("steady", 0, offset), ErrorCode::NONE);
                let produced = topic::produce(&mut member.connection, "steady", 0, &[vec![1; 10]]);
                assert_eq!(produced.error_code, ErrorCode::NONE);
                assert_eq!(produced.base_offset, offset);
                offset += 1;
                answered.fetch_add(1, Ordering::Relaxed);
                pause(Duration::from_millis(2));
            }
            let found = member::committed(&mut member.connection, "steady", "steady", 0);
            assert_eq!(found, offset - 1);
        });
        let mut attacks_failed = false;
        for attacker in attackers {
            attacks_failed |= attacker.join().is_err();
        }
        hostile_over.store(true, Ordering::Relaxed);
        steady.join().expect("the steady client was disturbed");
        assert!(!attacks_failed, "an attacker failed");
    });
    assert!(
        answered.load(Ordering::Relaxed) > 10,
        "the steady client got somewhere"
    );
    assert_eq!(broker.log().count("panicked"), 0);
    let grown = files::resident(broker.pid()).saturating_sub(before);
    assert!(grown < 128 * MIB, "memory grew by {grown} bytes");
}

/// Bytes to send: valid ones spoilt in some way, or none that ever were valid.
fn hostile(dice: &mut Dice, valid: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = dice.pick(valid).clone();
    match dice.below(8) {
        // Noise behind a length that fits.
        0 => {
            let length = dice.below(300);
            frame = (length as u32).to_be_bytes().to_vec();
            frame.extend(dice.bytes(length));
        }
        // Noise behind a plausible header.
        1 => {
            frame.truncate(frame.len().min(15));
            let length = dice.below(300);
            frame.extend(dice.bytes(length));
            set_length(&mut frame);
        }
        // Cut off, and the length says so.
        2 => {
            frame.truncate(4 + dice.below(frame.len() - 4));
            set_length(&mut frame);
        }
        // Cut off, and the rest never comes.
        3 => frame.truncate(dice.below(frame.len())),
        // A count or length somewhere is huge.
        4 => {
            let at = 12 + dice.below(frame.len() - 12);
            let huge: &[u8] = match dice.below(4) {
                0 => &[0x7f, 0xff, 0xff, 0xff],
                1 => &[0xff, 0xff, 0xff, 0xfe],
                2 => &[0xff, 0xff, 0xff, 0xff, 0x0f],
                _ => &[0x00, 0x10, 0x00, 0x00],
            };
            for (place, byte) in frame[at..].iter_mut().zip(huge) {
                *place = *byte;
            }
        }
        // A part comes twice.
        5 => {
            let at = 12 + dice.below(frame.len() - 12);
            let again = frame[at..].to_vec();
            frame.extend(again);
            set_length(&mut frame);
        }
        // Some bits are others.
        _ => {
            for _ in 0..=dice.below(4) {
                let at = 4 + dice.below(frame.len() - 4);
                frame[at] ^= 1 << dice.below(8);
            }
        }
    }
    frame
}

fn set_length(frame: &mut [u8]) {
    let length = (frame.len() - 4) as u32;
    frame[..4].copy_from_slice(&length.to_be_bytes());
}

/// Sends the bytes and goes, sometimes before the answer.
fn attack(broker: &Broker, bytes: &[u8]) {
    let mut connection = broker.connect();
    // The broker may close before it has read all.
    if connection.stream().write_all(bytes).is_ok() {
        connection.finish_sending();
        // Whatever comes is as good as anything else; a parked request says nothing.
        let _ = connection.next_frame(Duration::from_millis(10));
    }
}
