//! Static members.

use std::time::Duration;

use kaas_tests::member::{self, Member};
use kaas_tests::time::{SOON, Stopwatch, eventually, pause};
use kaas_tests::topic;
use kaas_wire::ErrorCode;
use kaas_wire::messages::leave_group::{LeaveGroupRequest, MemberIdentity};

use crate::{quick, shared};

/// B02.
#[test]
fn an_instance_id_is_any_text_and_comes_back_as_it_was() {
    let broker = shared();
    let mut a = Member::new(&broker, "B02").instance("myGroup/0");
    let mut b = Member::new(&broker, "B02").instance("é:\u{1f600} ");
    member::enter_together(&mut [&mut a, &mut b]);
    for version in 4..=6 {
        let described = member::describe(&mut broker.connect(), version, "B02");
        let mut found: Vec<_> = described
            .members
            .iter()
            .map(|member| member.group_instance_id.as_deref())
            .collect();
        found.sort();
        assert_eq!(found, [Some("myGroup/0"), Some("é:\u{1f600} ")]);
    }
}

/// B03.
#[test]
fn a_second_join_of_an_instance_ends_the_first_that_waits() {
    let broker = shared();
    let mut other = Member::new(&broker, "B03");
    other.enter_alone();
    let mut old = Member::new(&broker, "B03").instance("i1");
    let old_joins = old.send_join();
    member::wait_for_members(&mut other.connection, "B03", 2);
    let mut new = Member::new(&broker, "B03").instance("i1");
    let new_joins = new.send_join();
    let fenced = old.connection.receive(old_joins);
    assert_eq!(fenced.error_code, ErrorCode::FENCED_INSTANCE_ID);
    let other_joins = other.send_join();
    let answer = other.joined(other_joins);
    new.joined(new_joins);
    assert_eq!(answer.members.len(), 2);
    old.join.member_id = fenced.member_id;
    old.generation = new.generation;
    let code = old.heartbeat();
    let is_refused = [ErrorCode::FENCED_INSTANCE_ID, ErrorCode::UNKNOWN_MEMBER_ID].contains(&code);
    assert!(is_refused, "{code}");
    member::sync_together(&mut [&mut other, &mut new]);
}

/// B08.
#[test]
fn a_static_member_outlives_restarts_of_the_broker_unfenced() {
    let mut broker = quick().start();
    topic::create(&mut broker.connect(), "t", 1);
    let mut member = Member::new(&broker, "B08").instance("i");
    member.enter_alone();
    for round in 0..5 {
        broker.kill();
        broker.start_again();
        member.connection = broker.connect();
        if round % 2 == 0 {
            assert_eq!(member.heartbeat(), ErrorCode::NONE);
        }
        assert_eq!(member.commit("t", 0, round), ErrorCode::NONE);
        // The same pair is never fenced.
        let joined = member.send_join();
        member.joined(joined);
        let id = member.id().to_owned();
        member.sync(&[(&id, b"all")]);
    }
}

/// B08.
#[test]
fn a_static_member_that_was_away_too_long_during_a_restart_joins_anew() {
    let mut broker = quick().start();
    let mut member = Member::new(&broker, "B08 long")
        .instance("i")
        .timeouts(500, 60_000);
    member.enter_alone();
    broker.kill();
    broker.start_again();
    pause(Duration::from_millis(1_000));
    member.connection = broker.connect();
    assert_eq!(member.heartbeat(), ErrorCode::UNKNOWN_MEMBER_ID);
    member.join.member_id = String::new();
    member.enter_alone();
}

/// B09, B10.
#[test]
fn the_newest_of_two_with_one_instance_wins_and_the_other_is_told_everywhere() {
    let broker = shared();
    let mut old = Member::new(&broker, "B09").instance("i");
    old.enter_alone();
    assert_eq!(old.commit("t", 0, 5), ErrorCode::NONE);
    let mut new = Member::new(&broker, "B09").instance("i");
    new.enter();
    assert_ne!(new.id(), old.id());

    assert_eq!(old.heartbeat(), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(old.sync(&[]).error_code, ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(old.commit("t", 0, 9), ErrorCode::FENCED_INSTANCE_ID);
    let answer = old.connection.call(5, &old.join);
    assert_eq!(answer.error_code, ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(answer.member_id, old.id());
    assert_eq!(member::committed(&mut old.connection, "B09", "t", 0), 5);
    assert_eq!(new.heartbeat(), ErrorCode::NONE);

    let mut unknown = Member::new(&broker, "B09").instance("another");
    unknown.join.member_id = "stale".to_owned();
    let answer = unknown.connection.call(5, &unknown.join);
    assert_eq!(answer.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}

/// B11.
#[test]
fn a_static_leader_that_comes_back_is_told_that_it_leads_since_version_9() {
    let broker = shared();
    for version in [8, 9] {
        let group = format!("B11 v{version}");
        let mut leader = Member::new(&broker, &group)
            .instance("leader")
            .version(version);
        let mut follower = Member::new(&broker, &group)
            .instance("follower")
            .version(version);
        member::enter_together(&mut [&mut leader, &mut follower]);
        assert!(leader.is_leader());
        let (former, generation) = (leader.id().to_owned(), leader.generation);

        let mut back = Member::new(&broker, &group)
            .instance("leader")
            .version(version);
        let sent = back.send_join();
        let answer = back.connection.receive(sent);
        assert_eq!(answer.error_code, ErrorCode::NONE);
        assert_eq!(answer.generation_id, generation);
        if version == 9 {
            assert_eq!(answer.leader, answer.member_id);
            assert!(answer.skip_assignment);
            assert_eq!(answer.members.len(), 2);
        } else {
            assert_eq!(answer.leader, former);
            assert!(answer.members.is_empty());
        }
        back.join.member_id = answer.member_id;
        back.generation = answer.generation_id;
        let synced = back.sync(&[]);
        assert_eq!(synced.error_code, ErrorCode::NONE);
        assert_eq!(synced.assignment, former.as_bytes(), "it gets what it had");
        assert_eq!(follower.heartbeat(), ErrorCode::NONE);
    }
}

/// B12.
#[test]
fn a_static_member_that_comes_back_brings_its_timeouts_along() {
    let broker = shared();
    let mut other = Member::new(&broker, "B12");
    let mut before = Member::new(&broker, "B12").instance("i");
    member::enter_together(&mut [&mut other, &mut before]);
    let mut back = Member::new(&broker, "B12").instance("i").timeouts(600, 500);
    let sent = back.connection.send(9, &back.join);
    back.joined(sent);
    // What it brought counts from its first beat on (CG-100).
    assert_eq!(back.heartbeat(), ErrorCode::NONE);
    assert_eq!(other.heartbeat(), ErrorCode::NONE);
    let watch = Stopwatch::start();
    eventually(SOON, "it is removed for its silence", || {
        (other.heartbeat() == ErrorCode::REBALANCE_IN_PROGRESS).then_some(())
    });
    assert!(watch.elapsed() < Duration::from_secs(15));
}

/// B13.
#[test]
fn a_batch_of_leaves_has_an_answer_for_each() {
    let broker = shared();
    let mut stays = Member::new(&broker, "B13");
    let mut by_instance = Member::new(&broker, "B13").instance("i");
    let mut by_id = Member::new(&broker, "B13");
    member::enter_together(&mut [&mut stays, &mut by_instance, &mut by_id]);
    let identity = |member_id: &str, instance: Option<&str>| MemberIdentity {
        member_id: member_id.to_owned(),
        group_instance_id: instance.map(str::to_owned),
        ..MemberIdentity::default()
    };
    let request = LeaveGroupRequest {
        group_id: "B13".to_owned(),
        members: vec![
            identity("", Some("i")),
            identity(by_id.id(), None),
            identity("unknown", None),
            identity("", Some("unknown")),
        ],
        ..LeaveGroupRequest::default()
    };
    let answer = broker.connect().call(4, &request);
    assert_eq!(answer.error_code, ErrorCode::NONE);
    let codes: Vec<ErrorCode> = answer
        .members
        .iter()
        .map(|member| member.error_code)
        .collect();
    assert_eq!(
        codes,
        [
            ErrorCode::NONE,
            ErrorCode::NONE,
            ErrorCode::UNKNOWN_MEMBER_ID,
            ErrorCode::UNKNOWN_MEMBER_ID
        ]
    );
    let generation = stays.generation;
    assert_eq!(stays.heartbeat(), ErrorCode::REBALANCE_IN_PROGRESS);
    let answer = stays.enter();
    assert_eq!(answer.generation_id, generation + 1, "one round for all");
    assert_eq!(answer.members.len(), 1);

    // Up to version 2 the one member's error is the answer's.
    let single = LeaveGroupRequest {
        group_id: "B13".to_owned(),
        member_id: "unknown".to_owned(),
        ..LeaveGroupRequest::default()
    };
    for version in 0..=2 {
        let answer = broker.connect().call(version, &single);
        assert_eq!(answer.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    }
}
