//! Committed offsets: stored, fetched, deleted, expired.

use std::time::Duration;

use kaas_tests::member::{self, Member, committed_topic, simple_commit, simple_commit_request};
use kaas_tests::time::{SOON, eventually, pause};
use kaas_tests::topic;
use kaas_wire::ErrorCode;
use kaas_wire::messages::offset_commit::{OffsetCommitRequest, OffsetCommitRequestPartition};
use kaas_wire::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};

use crate::{quick, shared};

/// C03, C05.
#[test]
fn the_leader_epoch_of_a_commit_comes_back_by_name_and_with_everything() {
    let broker = shared();
    let mut connection = broker.connect();
    let mut request = simple_commit_request("C03", "t", &[(0, 100), (1, 200)]);
    request.topics[0].partitions[0].committed_leader_epoch = 7;
    for version in 6..=9 {
        let answer = connection.call(version, &request);
        assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::NONE);
    }
    for version in 5..=9 {
        for topics in [Some([("t", [0, 1].as_slice())].as_slice()), None] {
            let (code, rows) = member::fetch_rows(&mut connection, version, "C03", topics);
            assert_eq!(code, ErrorCode::NONE);
            let epochs: Vec<_> = rows
                .iter()
                .map(|row| (row.partition, row.leader_epoch))
                .collect();
            assert_eq!(epochs, [(0, 7), (1, -1)], "v{version}");
        }
    }
}

/// C06, C07.
#[test]
fn only_a_retention_that_the_commit_names_makes_it_expire_early_after_a_restart_too() {
    let mut broker = quick()
        .set("offsets.retention.check.interval.ms", 50)
        .start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 1);
    let mut commit = |group: &str, version: i16, retention_time_ms: i64| {
        let request = OffsetCommitRequest {
            retention_time_ms,
            ..simple_commit_request(group, "t", &[(0, 1)])
        };
        let answer = connection.call(version, &request);
        assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::NONE);
    };
    let kept = ["v2", "v4", "v5", "v8"];
    commit("v2", 2, -1);
    commit("v4", 4, -1);
    commit("v5", 5, -1);
    commit("v8", 8, -1);
    commit("short", 3, 200);
    commit("over the restart", 4, 1_500);
    let mut connection = broker.connect();
    eventually(SOON, "the short one expires", || {
        member::listed(&mut connection, "short")
            .is_none()
            .then_some(())
    });
    broker.kill();
    broker.start_again();
    let mut connection = broker.connect();
    eventually(
        SOON,
        "the one with a date expires after the restart",
        || {
            member::listed(&mut connection, "over the restart")
                .is_none()
                .then_some(())
        },
    );
    pause(Duration::from_millis(300));
    for group in kept {
        assert_eq!(
            member::committed(&mut connection, group, "t", 0),
            1,
            "{group}"
        );
    }
    assert_eq!(member::committed(&mut connection, "short", "t", 0), -1);
    assert_eq!(
        member::describe(&mut connection, 5, "short").group_state,
        "Dead"
    );
}

fn delete_request(group: &str, topics: &[(&str, &[i32])]) -> OffsetDeleteRequest {
    OffsetDeleteRequest {
        group_id: group.to_owned(),
        topics: topics
            .iter()
            .map(|&(name, partitions)| OffsetDeleteRequestTopic {
                name: name.to_owned(),
                partitions: partitions
                    .iter()
                    .map(|&partition_index| OffsetDeleteRequestPartition { partition_index })
                    .collect(),
            })
            .collect(),
    }
}

/// C10.
#[test]
fn offsets_of_topics_that_nobody_subscribes_to_can_be_deleted_and_stay_deleted() {
    let mut broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 3);
    topic::create(&mut connection, "former", 3);
    for topic in ["t", "former"] {
        assert_eq!(
            simple_commit(&mut connection, "C10", topic, 0, 5),
            ErrorCode::NONE
        );
    }
    let mut member = Member::new(&broker, "C10");
    member.enter_alone();

    let request = delete_request("C10", &[("t", &[0, 1]), ("former", &[0, 2])]);
    let answer = connection.call(0, &request);
    assert_eq!(answer.error_code, ErrorCode::NONE);
    let codes: Vec<Vec<ErrorCode>> = answer
        .topics
        .iter()
        .map(|topic| {
            topic
                .partitions
                .iter()
                .map(|partition| partition.error_code)
                .collect()
        })
        .collect();
    let subscribed = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
    assert_eq!(
        codes,
        [[subscribed, subscribed], [ErrorCode::NONE, ErrorCode::NONE]]
    );

    for (group, expected) in [
        ("C10 absent", ErrorCode::GROUP_ID_NOT_FOUND),
        ("", ErrorCode::INVALID_GROUP_ID),
    ] {
        let answer = connection.call(0, &delete_request(group, &[("t", &[0])]));
        assert_eq!(answer.error_code, expected, "{group:?}");
    }
    let mut other = Member::new(&broker, "C10 connect");
    other.join.protocol_type = "connect".to_owned();
    other.enter_alone();
    let answer = connection.call(0, &delete_request("C10 connect", &[("t", &[0])]));
    assert_eq!(answer.error_code, ErrorCode::NON_EMPTY_GROUP);

    for _ in 0..2 {
        assert_eq!(member::committed(&mut connection, "C10", "former", 0), -1);
        assert_eq!(member::committed(&mut connection, "C10", "t", 0), 5);
        broker.kill();
        broker.start_again();
        connection = broker.connect();
    }
}

/// C11, C21.
#[test]
fn everything_is_what_was_committed_and_nothing_is_nothing() {
    let broker = shared();
    let mut connection = broker.connect();
    let request = simple_commit_request("C11", "t", &[(0, 10), (2, 20)]);
    connection.call(8, &request);
    for version in 2..=9 {
        let (code, rows) = member::fetch_rows(&mut connection, version, "C11", None);
        assert_eq!(code, ErrorCode::NONE);
        let found: Vec<_> = rows.iter().map(|row| (row.partition, row.offset)).collect();
        assert_eq!(found, [(0, 10), (2, 20)], "v{version}");
        let (code, rows) = member::fetch_rows(&mut connection, version, "C11", Some(&[]));
        assert_eq!((code, rows.len()), (ErrorCode::NONE, 0), "v{version}");
        let (code, rows) = member::fetch_rows(&mut connection, version, "C11 absent", None);
        assert_eq!((code, rows.len()), (ErrorCode::NONE, 0), "v{version}");
    }
    for version in 1..=9 {
        let asked: &[(&str, &[i32])] = &[("t", &[0, 1, 2])];
        let (code, rows) = member::fetch_rows(&mut connection, version, "C11", Some(asked));
        assert_eq!(code, ErrorCode::NONE);
        let found: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.partition,
                    row.offset,
                    row.metadata.as_deref(),
                    row.error_code,
                )
            })
            .collect();
        let none = ErrorCode::NONE;
        let expected = [
            (0, 10, Some(""), none),
            (1, -1, Some(""), none),
            (2, 20, Some(""), none),
        ];
        assert_eq!(found, expected, "v{version}");
    }
}

/// C12.
#[test]
fn topics_come_back_under_the_names_they_were_committed_under() {
    let broker = shared();
    let mut connection = broker.connect();
    let long = "x".repeat(249);
    let names = ["a.b-c_d", "persistent.public.default.t", &long];
    for name in names {
        topic::create(&mut connection, name, 1);
        assert_eq!(
            simple_commit(&mut connection, "C12", name, 0, 1),
            ErrorCode::NONE
        );
    }
    let (_, rows) = member::fetch_rows(&mut connection, 9, "C12", None);
    let mut found: Vec<&str> = rows.iter().map(|row| row.topic.as_str()).collect();
    found.sort();
    assert_eq!(found, names);
}

/// C13, C14.
#[test]
fn what_a_commit_is_told_depends_on_the_phase() {
    let broker = shared();
    for version in [2, 7, 8, 9] {
        let group = format!("C13 v{version}");
        let mut connection = broker.connect();
        let mut leader = Member::new(&broker, &group);
        leader.enter_alone();
        let mut commit = |member: &Member, offset: i64| {
            let answer = connection.call(version, &member.commit_request("t", 0, offset));
            answer.topics[0].partitions[0].error_code
        };
        assert_eq!(commit(&leader, 1), ErrorCode::NONE);
        let old = leader.generation;

        let mut other = Member::new(&broker, &group);
        let other_joins = other.send_join();
        member::wait_for_state(&mut leader.connection, &group, "PreparingRebalance");
        assert_eq!(commit(&leader, 2), ErrorCode::NONE, "preparing");
        let leader_joins = leader.send_join();
        leader.joined(leader_joins);
        other.joined(other_joins);
        assert_eq!(
            commit(&leader, 3),
            ErrorCode::REBALANCE_IN_PROGRESS,
            "completing"
        );
        member::sync_together(&mut [&mut leader, &mut other]);

        let generation = std::mem::replace(&mut leader.generation, old);
        assert_eq!(commit(&leader, 4), ErrorCode::ILLEGAL_GENERATION, "stale");
        leader.generation = generation;
        assert_eq!(leader.heartbeat(), ErrorCode::NONE);
        let id = std::mem::replace(&mut leader.join.member_id, "nobody".to_owned());
        assert_eq!(
            commit(&leader, 5),
            ErrorCode::UNKNOWN_MEMBER_ID,
            "not a member"
        );
        leader.join.member_id = id;
        assert_eq!(member::committed(&mut leader.connection, &group, "t", 0), 2);
        assert_eq!(leader.commit("t", 0, 6), ErrorCode::NONE);
    }
}

/// C13.
#[test]
fn a_commit_counts_as_a_heartbeat() {
    let broker = shared();
    let mut member = Member::new(&broker, "C13 beat").timeouts(1_000, 60_000);
    member.enter_alone();
    for offset in 0..20 {
        pause(Duration::from_millis(100));
        assert_eq!(member.commit("t", 0, offset), ErrorCode::NONE);
    }
}

/// C15.
#[test]
fn who_is_no_member_may_commit_only_while_there_are_none() {
    let broker = shared();
    let mut connection = broker.connect();
    assert_eq!(
        simple_commit(&mut connection, "C15", "t", 0, 1),
        ErrorCode::NONE
    );
    let listed = member::listed(&mut connection, "C15").expect("it is listed");
    assert_eq!(
        (listed.protocol_type.as_str(), listed.group_state.as_str()),
        ("", "Empty")
    );
    let mut member = Member::new(&broker, "C15");
    member.enter_alone();
    assert_eq!(
        simple_commit(&mut connection, "C15", "t", 0, 2),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    member.leave();
    assert_eq!(member::committed(&mut connection, "C15", "t", 0), 1);
    assert_eq!(
        simple_commit(&mut connection, "C15", "t", 0, 3),
        ErrorCode::NONE
    );
}

/// C16.
#[test]
fn a_member_of_a_group_that_is_gone_does_not_bring_it_back() {
    let broker = shared();
    let mut connection = broker.connect();
    for (version, expected) in [
        (2, ErrorCode::ILLEGAL_GENERATION),
        (8, ErrorCode::ILLEGAL_GENERATION),
        (9, ErrorCode::GROUP_ID_NOT_FOUND),
    ] {
        let request = OffsetCommitRequest {
            generation_id_or_member_epoch: 3,
            member_id: "zombie".to_owned(),
            ..simple_commit_request("C16", "t", &[(0, 1)])
        };
        let answer = connection.call(version, &request);
        assert_eq!(
            answer.topics[0].partitions[0].error_code, expected,
            "v{version}"
        );
        assert_eq!(member::listed(&mut connection, "C16"), None);
    }
}

/// C17.
#[test]
fn offsets_of_a_deleted_topic_do_not_wait_for_the_next_of_its_name() {
    let mut broker = quick().start();
    let mut connection = broker.connect();
    let former = topic::create(&mut connection, "t", 1);
    topic::create(&mut connection, "other", 1);
    for topic in ["t", "other"] {
        assert_eq!(
            simple_commit(&mut connection, "C17", topic, 0, 500),
            ErrorCode::NONE
        );
    }
    topic::delete(&mut connection, "t");
    let id = topic::create(&mut connection, "t", 1);
    assert_ne!(id, former);
    for _ in 0..2 {
        assert_eq!(member::committed(&mut connection, "C17", "t", 0), -1);
        assert_eq!(member::committed(&mut connection, "C17", "other", 0), 500);
        broker.kill();
        broker.start_again();
        connection = broker.connect();
    }
}

/// C17.
#[test]
fn a_commit_for_what_does_not_exist_is_refused_and_the_rest_is_stored() {
    let broker = shared();
    let mut connection = broker.connect();
    let request = OffsetCommitRequest {
        group_id: "C17 unknown".to_owned(),
        topics: vec![
            committed_topic("t", &[(0, 1), (99, 1)]),
            committed_topic("missing", &[(0, 1)]),
        ],
        ..OffsetCommitRequest::default()
    };
    let answer = connection.call(8, &request);
    let mut codes = Vec::new();
    for topic in &answer.topics {
        for partition in &topic.partitions {
            codes.push((
                topic.name.as_str(),
                partition.partition_index,
                partition.error_code,
            ));
        }
    }
    codes.sort();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(
        codes,
        [
            ("missing", 0, unknown),
            ("t", 0, ErrorCode::NONE),
            ("t", 99, unknown)
        ]
    );
    assert_eq!(member::committed(&mut connection, "C17 unknown", "t", 0), 1);
}

/// C18.
#[test]
fn metadata_has_a_limit_in_utf_16_units_and_only_the_partition_over_it_is_refused() {
    let broker = shared();
    topic::create(&mut broker.connect(), "C18", 7);
    let mut connection = broker.connect();
    // Two units each, four bytes each.
    let emoji = |count: usize| "\u{1f600}".repeat(count);
    let texts = [
        String::new(),
        "x".repeat(4095),
        "x".repeat(4096),
        "x".repeat(4097),
        "x".repeat(32_000),
        emoji(2048),
        emoji(2049),
    ];
    let mut request = simple_commit_request("C18", "C18", &[]);
    request.topics[0].partitions = texts
        .iter()
        .zip(0..)
        .map(|(text, partition_index)| OffsetCommitRequestPartition {
            partition_index,
            committed_offset: 1,
            committed_metadata: Some(text.clone()),
            ..OffsetCommitRequestPartition::default()
        })
        .collect();
    let answer = connection.call(8, &request);
    let codes: Vec<ErrorCode> = answer.topics[0]
        .partitions
        .iter()
        .map(|partition| partition.error_code)
        .collect();
    let (none, large) = (ErrorCode::NONE, ErrorCode::OFFSET_METADATA_TOO_LARGE);
    assert_eq!(codes, [none, none, none, large, large, none, large]);
    let (_, rows) = member::fetch_rows(&mut connection, 9, "C18", None);
    let found: Vec<_> = rows
        .iter()
        .map(|row| row.metadata.as_deref().unwrap())
        .collect();
    assert_eq!(
        found,
        [&texts[0], &texts[1], &texts[2], &texts[5]].map(String::as_str)
    );
}

/// C20.
#[test]
fn metadata_is_any_text_and_survives_a_restart() {
    let mut broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 1);
    for text in ["\n\u{14}\0\u{1e}(", "\u{1f600}", "\"\\", ""] {
        let mut request = simple_commit_request("C20", "t", &[(0, 1)]);
        request.topics[0].partitions[0].committed_metadata = Some(text.to_owned());
        let answer = connection.call(8, &request);
        assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::NONE);
        broker.kill();
        broker.start_again();
        connection = broker.connect();
        let (_, rows) = member::fetch_rows(&mut connection, 9, "C20", None);
        assert_eq!(rows[0].metadata.as_deref(), Some(text));
    }
    // What is no text is taken as Kafka takes it.
    let mut request = simple_commit_request("C20", "t", &[(0, 1)]);
    request.topics[0].partitions[0].committed_metadata = Some("MARK".to_owned());
    let mut frame = connection.frame(8, 1, &request);
    let at = frame
        .windows(4)
        .position(|window| window == b"MARK")
        .unwrap();
    frame[at..at + 2].copy_from_slice(&[0xff, 0xfe]);
    connection.send_bytes(&frame).unwrap();
    connection.next_frame(SOON).unwrap();
    let mut connection = broker.connect();
    let (_, rows) = member::fetch_rows(&mut connection, 9, "C20", None);
    assert_eq!(rows[0].metadata.as_deref(), Some("\u{fffd}\u{fffd}RK"));
}

/// A commit that found a group cold erased the rest of it.
#[test]
fn a_commit_to_a_group_that_is_only_on_disk_keeps_its_other_offsets() {
    let mut broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 3);
    for partition in 0..3 {
        assert_eq!(
            simple_commit(&mut connection, "cold", "t", partition, 10),
            ErrorCode::NONE
        );
    }
    broker.stop();
    broker.start_again();
    let mut connection = broker.connect();
    assert_eq!(
        simple_commit(&mut connection, "cold", "t", 1, 11),
        ErrorCode::NONE
    );
    let (_, rows) = member::fetch_rows(&mut connection, 9, "cold", None);
    let found: Vec<_> = rows.iter().map(|row| (row.partition, row.offset)).collect();
    assert_eq!(found, [(0, 10), (1, 11), (2, 10)]);
}

/// D07.
#[test]
fn a_commit_is_seen_at_once_by_everybody() {
    let broker = shared();
    let mut writer = broker.connect();
    let mut reader = broker.connect();
    for offset in 0..2_000 {
        assert_eq!(
            simple_commit(&mut writer, "D07", "t", 0, offset),
            ErrorCode::NONE
        );
        assert_eq!(member::committed(&mut reader, "D07", "t", 0), offset);
    }
}
