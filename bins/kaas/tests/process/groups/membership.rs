//! Join, sync, heartbeat and leave.

use std::time::Duration;

use bytes::Bytes;
use kaas_tests::files;
use kaas_tests::member::{self, Member, subscription};
use kaas_tests::time::{SOON, Stopwatch, eventually, pause};
use kaas_wire::ErrorCode;
use kaas_wire::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};

use crate::{quick, shared};

/// A01.
#[test]
fn an_id_that_was_given_and_never_used_holds_a_round_up_for_its_session_timeout_only() {
    let broker = shared();
    let mut stable = Member::new(&broker, "A01 expiry");
    stable.enter_alone();
    let before = stable.generation;

    let mut newcomer = Member::new(&broker, "A01 expiry").timeouts(700, 60_000);
    newcomer.reserve();
    let watch = Stopwatch::start();
    newcomer.join.member_id = String::new();
    newcomer.join.session_timeout_ms = 60_000;
    newcomer.reserve();
    let described = member::describe(&mut stable.connection, 5, "A01 expiry");
    assert_eq!(described.members.len(), 1, "an id alone is no member");

    let joined = newcomer.send_join();
    let rejoined = stable.send_join();
    let answer = stable.joined(rejoined);
    newcomer.joined(joined);
    assert!(
        watch.elapsed() >= Duration::from_millis(600),
        "the id was waited for"
    );
    assert_eq!(answer.generation_id, before + 1);
    assert_eq!(answer.members.len(), 2);
}

/// A01.
#[test]
fn an_id_that_was_given_may_leave_and_the_round_completes() {
    let broker = shared();
    let mut stable = Member::new(&broker, "A01 leave");
    stable.enter_alone();
    let mut unused = Member::new(&broker, "A01 leave");
    unused.reserve();
    let mut newcomer = Member::new(&broker, "A01 leave");
    let joined = newcomer.send_join();
    let rejoined = stable.send_join();
    stable.connection.assert_silent(Duration::from_millis(100));
    let left = unused.leave();
    assert_eq!(left.error_code, ErrorCode::NONE);
    assert_eq!(left.members[0].error_code, ErrorCode::NONE);
    assert_eq!(stable.joined(rejoined).members.len(), 2);
    newcomer.joined(joined);
}

/// A02.
#[test]
fn an_id_that_is_not_used_within_its_session_timeout_is_forgotten() {
    let broker = shared();
    let mut gone = Member::new(&broker, "A02").timeouts(300, 300);
    gone.reserve();
    let mut consumer = Member::new(&broker, "A02");
    consumer.enter_alone();
    pause(Duration::from_millis(500));
    let answer = gone.connection.call(5, &gone.join);
    assert_eq!(answer.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(consumer.heartbeat(), ErrorCode::NONE);
}

/// A03.
#[test]
fn members_that_vanish_in_an_open_round_leave_the_group_empty() {
    let broker = shared();
    let mut members: Vec<Member> = (0..3)
        .map(|_| Member::new(&broker, "A03").timeouts(600, 800))
        .collect();
    let mut together: Vec<&mut Member> = members.iter_mut().collect();
    member::enter_together(&mut together);
    let before = members[0].generation;
    let mut fourth = Member::new(&broker, "A03").timeouts(600, 800);
    let _never_taken = fourth.send_join();
    drop(fourth);
    drop(members);
    let mut connection = broker.connect();
    eventually(SOON, "the group is empty", || {
        let described = member::describe(&mut connection, 5, "A03");
        (described.group_state == "Empty" && described.members.is_empty()).then_some(())
    });
    let mut next = Member::new(&broker, "A03");
    next.enter_alone();
    assert!(next.generation > before);
}

/// A06.
#[test]
fn a_thousand_joins_whose_connections_drop_leave_no_members_behind() {
    let broker = quick().start();
    let mut first = Member::new(&broker, "A06");
    first.enter_alone();
    let mut second = Member::new(&broker, "A06");
    let second_joins = second.send_join();
    let before = files::resident(broker.pid());
    let mut connection = broker.connect();

    // Since version 4 there is no member before the second join.
    for _ in 0..1_000 {
        let mut ghost = Member::new(&broker, "A06").timeouts(300, 60_000).version(5);
        let _never_taken = ghost.connection.send(5, &ghost.join);
    }
    let described = member::describe(&mut connection, 5, "A06");
    assert_eq!(described.members.len(), 2);

    for _ in 0..1_000 {
        let mut ghost = Member::new(&broker, "A06").timeouts(300, 60_000).version(3);
        let _never_taken = ghost.send_join();
    }
    let grown = files::resident(broker.pid()).saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "memory grew by {grown} bytes");
    let first_joins = first.send_join();
    first.joined(first_joins);
    second.joined(second_joins);
    // The ghosts take part in no round but the one they came into.
    eventually(SOON, "the ghosts are gone", || {
        let (first_joins, second_joins) = (first.send_join(), second.send_join());
        first.joined(first_joins);
        second.joined(second_joins);
        let described = member::describe(&mut connection, 5, "A06");
        (described.members.len() == 2).then_some(())
    });
}

/// A07.
#[test]
fn after_a_clean_end_any_protocol_may_follow() {
    let broker = shared();
    for round in 0..50 {
        let mut member = Member::new(&broker, "A07");
        member.join.protocols[0].name =
            ["range", "roundrobin", "cooperative-sticky"][round % 3].to_owned();
        member.join.protocol_type = ["consumer", "connect"][round / 3 % 2].to_owned();
        member.enter_alone();
        assert_eq!(member.leave().error_code, ErrorCode::NONE);
    }
}

/// A07.
#[test]
fn a_newcomer_that_shares_no_protocol_with_the_members_is_refused() {
    let broker = shared();
    let mut member = Member::new(&broker, "A07 live");
    member.enter_alone();
    let mut other = Member::new(&broker, "A07 live");
    other.join.protocols[0].name = "other".to_owned();
    let answer = other.connection.call(5, &other.join);
    assert_eq!(answer.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    other.join.protocols[0].name = "range".to_owned();
    other.join.protocol_type = "connect".to_owned();
    let answer = other.connection.call(5, &other.join);
    assert_eq!(answer.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    assert_eq!(member.heartbeat(), ErrorCode::NONE);
}

/// A09.
#[test]
fn a_member_whose_join_or_sync_is_held_does_not_expire_meanwhile() {
    let broker = shared();
    let mut slow = Member::new(&broker, "A09");
    slow.enter_alone();
    let mut waiting = Member::new(&broker, "A09").timeouts(1_000, 60_000);
    let joined = waiting.send_join();
    waiting
        .connection
        .assert_silent(Duration::from_millis(2_200));
    let slow_joins = slow.send_join();
    slow.joined(slow_joins);
    waiting.joined(joined);
    // Its time begins again with the answer. Now it is the leader's assignment that it waits for.
    pause(Duration::from_millis(300));
    let synced = waiting.send_sync(&[]);
    waiting
        .connection
        .assert_silent(Duration::from_millis(2_200));
    let (a, b) = (slow.id().to_owned(), waiting.id().to_owned());
    assert!(slow.is_leader());
    slow.sync(&[(&a, b"a"), (&b, b"b")]);
    let answer = waiting.connection.receive(synced);
    assert_eq!(
        (answer.error_code, answer.assignment),
        (ErrorCode::NONE, Bytes::from_static(b"b"))
    );
    assert_eq!(waiting.heartbeat(), ErrorCode::NONE);
}

/// A10.
#[test]
fn a_member_id_is_asked_for_since_version_4_and_never_of_static_members() {
    let broker = shared();
    for version in 0..=9 {
        let mut member = Member::new(&broker, &format!("A10 v{version}"));
        let answer = member.connection.call(version, &member.join);
        assert!(!answer.member_id.is_empty());
        if version < 4 {
            assert_eq!(answer.error_code, ErrorCode::NONE);
            assert_eq!(answer.generation_id, 1);
        } else {
            assert_eq!(answer.error_code, ErrorCode::MEMBER_ID_REQUIRED);
            assert_eq!(answer.generation_id, -1);
            assert!(answer.members.is_empty());
        }
        if version >= 5 {
            let mut member = Member::new(&broker, &format!("A10 static v{version}")).instance("i");
            let answer = member.connection.call(version, &member.join);
            assert_eq!(answer.error_code, ErrorCode::NONE);
            assert_eq!(answer.generation_id, 1);
        }
    }
}

/// A11.
#[test]
fn a_join_with_an_unknown_id_is_refused_at_once_in_every_state() {
    let broker = shared();
    let mut connection = broker.connect();
    let refused = |group: &str| {
        let mut ghost = Member::new(&broker, group).version(5);
        ghost.join.member_id = "ghost".to_owned();
        let answer = ghost.connection.call(5, &ghost.join);
        assert_eq!(answer.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(answer.member_id, "ghost");
        assert_eq!(answer.generation_id, -1);
    };
    refused("A11 absent");
    assert_eq!(member::listed(&mut connection, "A11 absent"), None);

    let mut stable = Member::new(&broker, "A11");
    stable.enter_alone();
    refused("A11");
    let mut parked = Member::new(&broker, "A11");
    let joined = parked.send_join();
    member::wait_for_state(&mut connection, "A11", "PreparingRebalance");
    refused("A11");
    let stable_joins = stable.send_join();
    stable.joined(stable_joins);
    parked.joined(joined);
    assert_eq!(member::state(&mut connection, "A11"), "CompletingRebalance");
    refused("A11");
    stable.leave();
    parked.leave();
    assert_eq!(member::state(&mut connection, "A11"), "Empty");
    refused("A11");
    assert_eq!(member::describe(&mut connection, 5, "A11").members.len(), 0);
}

/// A12.
#[test]
fn a_full_group_refuses_newcomers_and_keeps_its_members() {
    let mut broker = quick().set("group.max.size", 2).start();
    let mut members = [Member::new(&broker, "A12"), Member::new(&broker, "A12")];
    let [first, second] = &mut members;
    member::enter_together(&mut [first, second]);
    for version in [3, 5, 9, 3, 5, 9, 3, 5, 9, 3] {
        let mut newcomer = Member::new(&broker, "A12");
        let answer = newcomer.connection.call(version, &newcomer.join);
        assert_eq!(
            answer.error_code,
            ErrorCode::GROUP_MAX_SIZE_REACHED,
            "v{version}"
        );
        assert_eq!(answer.member_id, "");
    }
    for member in &mut members {
        assert_eq!(member.heartbeat(), ErrorCode::NONE);
    }
    broker.kill();
    broker.start_again();
    let mut newcomer = Member::new(&broker, "A12");
    let answer = newcomer.connection.call(5, &newcomer.join);
    assert_eq!(answer.error_code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    for member in &mut members {
        member.connection = broker.connect();
        assert_eq!(member.heartbeat(), ErrorCode::NONE);
    }
}

/// A14.
#[test]
fn a_newcomer_ends_the_waiting_for_the_leaders_assignment() {
    let broker = shared();
    let mut leader = Member::new(&broker, "A14");
    leader.enter_alone();
    let mut follower = Member::new(&broker, "A14");
    let follower_joins = follower.send_join();
    let leader_joins = leader.send_join();
    leader.joined(leader_joins);
    follower.joined(follower_joins);
    let old = leader.sync_request(&[]);
    let parked = follower.send_sync(&[]);

    let mut newcomer = Member::new(&broker, "A14");
    let newcomer_joins = newcomer.send_join();
    let answer = follower.connection.receive(parked);
    assert_eq!(answer.error_code, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(follower.heartbeat(), ErrorCode::REBALANCE_IN_PROGRESS);
    let late = leader.connection.call(4, &old);
    assert_eq!(late.error_code, ErrorCode::REBALANCE_IN_PROGRESS);

    let (leader_joins, follower_joins) = (leader.send_join(), follower.send_join());
    leader.joined(leader_joins);
    follower.joined(follower_joins);
    newcomer.joined(newcomer_joins);
    let late = leader.connection.call(4, &old);
    assert_eq!(late.error_code, ErrorCode::ILLEGAL_GENERATION);
    member::sync_together(&mut [&mut leader, &mut follower, &mut newcomer]);
}

/// A15.
#[test]
fn a_sync_that_does_not_name_the_chosen_protocol_is_refused_since_version_5() {
    let broker = shared();
    let mut member = Member::new(&broker, "A15");
    member.enter_alone();
    let mut request = member.sync_request(&[]);
    for (protocol_type, name, expected) in [
        (
            Some("consumer"),
            Some("unmatched"),
            ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        ),
        (
            Some("connect"),
            Some("range"),
            ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        ),
        (Some("consumer"), Some("range"), ErrorCode::NONE),
        // Naming none is as wrong, as in Kafka (CG-88).
        (None, None, ErrorCode::INCONSISTENT_GROUP_PROTOCOL),
        (
            Some("consumer"),
            None,
            ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        ),
        (None, Some("range"), ErrorCode::INCONSISTENT_GROUP_PROTOCOL),
    ] {
        request.protocol_type = protocol_type.map(str::to_owned);
        request.protocol_name = name.map(str::to_owned);
        let answer = member.connection.call(5, &request);
        assert_eq!(answer.error_code, expected, "{protocol_type:?} {name:?}");
        if expected.is_ok() {
            assert_eq!(answer.protocol_type.as_deref(), Some("consumer"));
            assert_eq!(answer.protocol_name.as_deref(), Some("range"));
        }
    }
}

/// A16.
#[test]
fn a_leader_that_joins_again_starts_a_round_and_a_follower_only_if_it_changed() {
    let broker = shared();
    let (mut a, mut b) = (Member::new(&broker, "A16"), Member::new(&broker, "A16"));
    member::enter_together(&mut [&mut a, &mut b]);
    let (mut leader, mut follower) = if a.is_leader() { (a, b) } else { (b, a) };
    let generation = leader.generation;

    let answer = follower.enter();
    assert_eq!(answer.generation_id, generation);
    assert!(answer.members.is_empty());
    assert_eq!(leader.heartbeat(), ErrorCode::NONE);

    let leader_joins = leader.send_join();
    member::wait_for_state(&mut follower.connection, "A16", "PreparingRebalance");
    assert_eq!(follower.heartbeat(), ErrorCode::REBALANCE_IN_PROGRESS);
    leader.connection.assert_silent(Duration::from_millis(50));
    let follower_joins = follower.send_join();
    leader.joined(leader_joins);
    follower.joined(follower_joins);
    assert_eq!(leader.generation, generation + 1);
    member::sync_together(&mut [&mut leader, &mut follower]);

    follower.join.protocols[0].metadata = subscription(&["t", "other"]);
    let follower_joins = follower.send_join();
    member::wait_for_state(&mut leader.connection, "A16", "PreparingRebalance");
    assert_eq!(leader.heartbeat(), ErrorCode::REBALANCE_IN_PROGRESS);
    let leader_joins = leader.send_join();
    let answer = leader.joined(leader_joins);
    follower.joined(follower_joins);
    let seen = answer
        .members
        .iter()
        .find(|seen| seen.member_id == follower.id());
    assert_eq!(seen.unwrap().metadata, subscription(&["t", "other"]));
}

/// A17.
#[test]
fn the_chosen_protocol_is_one_that_all_offer() {
    let broker = shared();
    let protocol = |name: &str| JoinGroupRequestProtocol {
        name: name.to_owned(),
        metadata: subscription(&["t"]),
    };
    let mut a = Member::new(&broker, "A17");
    a.join.protocols = vec![protocol("sticky"), protocol("range")];
    let mut b = Member::new(&broker, "A17");
    b.join.protocols = vec![protocol("range"), protocol("other")];
    member::enter_together(&mut [&mut a, &mut b]);
    let answer = a.connection.call(5, &b.join);
    assert_eq!(answer.protocol_name.as_deref(), Some("range"));
}

/// A18.
#[test]
fn a_member_without_partitions_stays_and_takes_part_in_the_next_round() {
    let broker = shared();
    let mut busy = Member::new(&broker, "A18");
    busy.enter_alone();
    let mut idle = Member::new(&broker, "A18").timeouts(800, 60_000);
    let idle_joins = idle.send_join();
    let busy_joins = busy.send_join();
    busy.joined(busy_joins);
    idle.joined(idle_joins);
    let id = busy.id().to_owned();
    let idle_syncs = idle.send_sync(&[]);
    busy.sync(&[(&id, b"all")]);
    let answer = idle.connection.receive(idle_syncs);
    assert_eq!(
        (answer.error_code, answer.assignment),
        (ErrorCode::NONE, Bytes::new())
    );
    let watch = Stopwatch::start();
    while watch.left_of(Duration::from_millis(1_600)).is_some() {
        assert_eq!(idle.heartbeat(), ErrorCode::NONE);
        pause(Duration::from_millis(50));
    }
    busy.leave();
    assert_eq!(idle.heartbeat(), ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(idle.enter().members.len(), 1);
}

#[test]
fn a_member_that_stops_beating_is_removed_and_the_rest_rebalance() {
    let broker = shared();
    let mut steady = Member::new(&broker, "silence");
    let mut silent = Member::new(&broker, "silence").timeouts(500, 60_000);
    member::enter_together(&mut [&mut steady, &mut silent]);
    assert_eq!(steady.heartbeat(), ErrorCode::NONE);
    eventually(SOON, "the silent one is noticed", || {
        (steady.heartbeat() == ErrorCode::REBALANCE_IN_PROGRESS).then_some(())
    });
    let answer = steady.enter();
    assert_eq!(answer.members.len(), 1);
    assert_eq!(silent.heartbeat(), ErrorCode::UNKNOWN_MEMBER_ID);
}

/// I04.
#[test]
fn a_member_of_version_0_is_waited_for_no_longer_than_its_session_timeout() {
    let broker = shared();
    let mut old = Member::new(&broker, "I04").timeouts(700, -1).version(0);
    old.enter_alone();
    let mut newcomer = Member::new(&broker, "I04").timeouts(60_000, 1);
    let joined = newcomer.send_join();
    // It beats, and it does not join.
    let mut beats = 0;
    while newcomer
        .connection
        .next_frame(Duration::from_millis(50))
        .is_err()
    {
        if old.heartbeat() == ErrorCode::REBALANCE_IN_PROGRESS {
            beats += 1;
        }
        assert!(beats < 200, "it is waited for too long");
    }
    drop(joined);
    assert_eq!(old.heartbeat(), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_session_timeout_out_of_range_is_refused() {
    let broker = quick().set("group.min.session.timeout.ms", 500).start();
    let mut member = Member::new(&broker, "range").timeouts(499, 60_000);
    let answer = member.connection.call(5, &member.join);
    assert_eq!(answer.error_code, ErrorCode::INVALID_SESSION_TIMEOUT);
    member.join.session_timeout_ms = i32::MAX;
    let answer = member.connection.call(5, &member.join);
    assert_eq!(answer.error_code, ErrorCode::INVALID_SESSION_TIMEOUT);
    assert_eq!(member::listed(&mut broker.connect(), "range"), None);
    let none = JoinGroupRequest {
        protocols: Vec::new(),
        session_timeout_ms: 10_000,
        ..member.join.clone()
    };
    let answer = member.connection.call(5, &none);
    assert_eq!(answer.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

/// H08.
#[test]
fn an_assignment_of_megabytes_is_handed_out_and_kept() {
    let mut broker = quick().start();
    for mebibytes in [1, 8] {
        let mut member = Member::new(&broker, &format!("H08 {mebibytes}"));
        member.enter();
        let id = member.id().to_owned();
        let assignment = vec![7; mebibytes * 1024 * 1024];
        let answer = member.sync(&[(&id, &assignment)]);
        assert_eq!(answer.error_code, ErrorCode::NONE, "{mebibytes} MiB");
        assert!(answer.assignment == assignment);
        broker.kill();
        broker.start_again();
        member.connection = broker.connect();
        assert_eq!(member.heartbeat(), ErrorCode::NONE);
        assert!(member.sync(&[]).assignment == assignment);
    }
}
