//! Groups listed, described and deleted.

use bytes::Bytes;
use kaas_tests::member::{self, Member, simple_commit};
use kaas_tests::time::{SOON, eventually};
use kaas_tests::topic;
use kaas_wire::ErrorCode;
use kaas_wire::messages::delete_groups::DeleteGroupsRequest;
use kaas_wire::messages::describe_groups::DescribeGroupsRequest;
use kaas_wire::messages::find_coordinator::FindCoordinatorRequest;
use kaas_wire::messages::list_groups::ListGroupsRequest;

use crate::{quick, shared};

/// D01, D02.
#[test]
fn a_group_whose_members_left_is_described_and_listed_as_empty() {
    let broker = shared();
    let mut connection = broker.connect();
    let mut member = Member::new(&broker, "D01");
    member.enter_alone();
    assert_eq!(member.commit("t", 0, 9), ErrorCode::NONE);
    member.leave();
    for version in 0..=6 {
        let described = member::describe(&mut connection, version, "D01");
        assert_eq!(described.error_code, ErrorCode::NONE);
        assert_eq!(described.group_state, "Empty");
        assert_eq!(described.protocol_type, "consumer");
        assert_eq!(described.protocol_data, "");
        assert!(described.members.is_empty());
        assert_eq!(described.authorized_operations, i32::MIN);
    }
    let listed = member::listed(&mut connection, "D01").expect("it is listed");
    assert_eq!(listed.group_state, "Empty");
    assert_eq!(listed.protocol_type, "consumer");
    assert_eq!(member::committed(&mut connection, "D01", "t", 0), 9);
}

/// D03.
#[test]
fn states_have_kafkas_names() {
    let broker = shared();
    let mut connection = broker.connect();
    let mut assert_state = |expected: &str| {
        for version in [0, 4, 5] {
            let described = member::describe(&mut connection, version, "D03");
            assert_eq!(described.error_code, ErrorCode::NONE);
            assert_eq!(described.group_state, expected);
        }
        let described = member::describe(&mut connection, 6, "D03");
        let missing = expected == "Dead";
        let code = if missing {
            ErrorCode::GROUP_ID_NOT_FOUND
        } else {
            ErrorCode::NONE
        };
        assert_eq!(
            (described.error_code, described.group_state.as_str()),
            (code, expected)
        );
    };
    assert_state("Dead");
    let mut first = Member::new(&broker, "D03");
    first.enter();
    assert_state("CompletingRebalance");
    let id = first.id().to_owned();
    first.sync(&[(&id, b"")]);
    assert_state("Stable");
    let mut second = Member::new(&broker, "D03");
    let second_joins = second.send_join();
    member::wait_for_state(&mut first.connection, "D03", "PreparingRebalance");
    assert_state("PreparingRebalance");
    let first_joins = first.send_join();
    first.joined(first_joins);
    second.joined(second_joins);
    first.leave();
    second.leave();
    assert_state("Empty");
    assert_eq!(
        member::delete_group(&mut broker.connect(), "D03"),
        ErrorCode::NONE
    );
    assert_state("Dead");
}

/// D06.
#[test]
fn groups_are_listed_by_state_and_type_whatever_the_case() {
    let broker = shared();
    let mut connection = broker.connect();
    simple_commit(&mut connection, "D06 empty", "t", 0, 1);
    let mut member = Member::new(&broker, "D06 stable");
    member.enter_alone();
    let mut find = |version: i16, states: &[&str], types: &[&str]| {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let request = ListGroupsRequest {
            states_filter: owned(states),
            types_filter: owned(types),
        };
        let response = connection.call(version, &request);
        assert_eq!(response.error_code, ErrorCode::NONE);
        let mut names: Vec<String> = response
            .groups
            .into_iter()
            .map(|group| group.group_id)
            .filter(|name| name.starts_with("D06"))
            .collect();
        names.sort();
        names
    };
    let both = ["D06 empty", "D06 stable"];
    for version in 0..=5 {
        assert_eq!(find(version, &[], &[]), both, "v{version}");
    }
    for version in 4..=5 {
        assert_eq!(find(version, &["empty"], &[]), ["D06 empty"]);
        assert_eq!(find(version, &["STABLE"], &[]), ["D06 stable"]);
        assert_eq!(find(version, &["Stable", "Empty"], &[]), both);
        assert!(find(version, &["nonsense"], &[]).is_empty());
    }
    assert_eq!(find(5, &[], &["CLASSIC"]), both);
    assert!(find(5, &[], &["consumer"]).is_empty());
    let listed = member::listed(&mut broker.connect(), "D06 stable").unwrap();
    assert_eq!(
        (listed.group_state.as_str(), listed.group_type.as_str()),
        ("Stable", "classic")
    );
}

/// D08.
#[test]
fn the_protocol_type_of_a_group_survives_its_members_and_a_restart() {
    let mut broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 1);
    simple_commit(&mut connection, "only offsets", "t", 0, 1);
    for protocol_type in ["consumer", "connect"] {
        let mut member = Member::new(&broker, protocol_type);
        member.join.protocol_type = protocol_type.to_owned();
        member.enter_alone();
        member.commit("t", 0, 1);
        member.leave();
    }
    for _ in 0..2 {
        for (group, protocol_type) in [
            ("only offsets", ""),
            ("consumer", "consumer"),
            ("connect", "connect"),
        ] {
            let listed = member::listed(&mut connection, group).expect("it is listed");
            assert_eq!(listed.protocol_type, protocol_type);
            assert_eq!(listed.group_state, "Empty");
        }
        broker.stop();
        broker.start_again();
        connection = broker.connect();
    }
}

/// D11.
#[test]
fn a_group_that_is_only_on_disk_can_be_deleted_and_stays_deleted() {
    let mut broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 1);
    for group in ["stopped", "killed"] {
        simple_commit(&mut connection, group, "t", 0, 1);
    }
    for group in ["stopped", "killed"] {
        match group {
            "stopped" => {
                broker.stop();
            }
            _ => broker.kill(),
        }
        broker.start_again();
        // It is the first that this process hears of.
        assert_eq!(
            member::delete_group(&mut broker.connect(), group),
            ErrorCode::NONE
        );
    }
    broker.kill();
    broker.start_again();
    let mut connection = broker.connect();
    for group in ["stopped", "killed"] {
        assert_eq!(member::listed(&mut connection, group), None);
        assert_eq!(member::committed(&mut connection, group, "t", 0), -1);
        assert_eq!(
            member::delete_group(&mut connection, group),
            ErrorCode::GROUP_ID_NOT_FOUND
        );
    }
}

/// D12, H03.
#[test]
fn each_group_of_a_delete_has_its_own_answer() {
    let broker = shared();
    let mut connection = broker.connect();
    for version in 0..=3 {
        let mut left = Member::new(&broker, "D12 no offsets");
        left.enter_alone();
        left.leave();
        simple_commit(&mut connection, "D12 offsets", "t", 0, 1);
        let mut live = Member::new(&broker, "D12 live");
        live.enter_alone();
        let request = DeleteGroupsRequest {
            groups_names: ["D12 no offsets", "D12 offsets", "D12 live", "D12 missing"]
                .map(str::to_owned)
                .to_vec(),
        };
        let answer = connection.call(version, &request);
        let codes: Vec<ErrorCode> = answer
            .results
            .iter()
            .map(|result| result.error_code)
            .collect();
        assert_eq!(
            codes,
            [
                ErrorCode::NONE,
                ErrorCode::NONE,
                ErrorCode::NON_EMPTY_GROUP,
                ErrorCode::GROUP_ID_NOT_FOUND
            ]
        );
        assert_eq!(live.heartbeat(), ErrorCode::NONE);
        live.leave();
    }
}

/// D13.
#[test]
fn a_group_of_a_deleted_ones_name_starts_with_nothing() {
    let mut broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 1);
    for round in 0..300 {
        assert_eq!(
            simple_commit(&mut connection, "D13", "t", 0, round),
            ErrorCode::NONE
        );
        assert_eq!(
            member::delete_group(&mut connection, "D13"),
            ErrorCode::NONE
        );
        if round % 100 == 99 {
            broker.kill();
            broker.start_again();
            connection = broker.connect();
        }
        let mut member = Member::new(&broker, "D13");
        member.enter_alone();
        assert_eq!(member::committed(&mut connection, "D13", "t", 0), -1);
        member.leave();
    }
}

/// D14.
#[test]
fn a_group_goes_with_the_last_topic_it_has_offsets_of() {
    let broker = quick()
        .set("offsets.retention.check.interval.ms", 50)
        .start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 1);
    // Without a reserved id: a sweep between its two joins would take the group, which is empty, and the id with it.
    let mut member = Member::new(&broker, "D14").version(3);
    member.enter_alone();
    member.commit("t", 0, 1);
    member.leave();
    topic::delete(&mut connection, "t");
    eventually(SOON, "the group is gone", || {
        member::listed(&mut connection, "D14")
            .is_none()
            .then_some(())
    });
    assert_eq!(member::state(&mut connection, "D14"), "Dead");
}

/// D16.
#[test]
fn a_members_metadata_comes_back_byte_for_byte_whatever_it_is() {
    let broker = shared();
    let version_0 = [
        &[0, 0, 0, 0, 0, 1, 0, 1, b't'][..],
        &[0xff, 0xff, 0xff, 0xff],
    ]
    .concat();
    let version_1 = [&[0, 1][..], &version_0[2..], &[0, 0, 0, 0]].concat();
    let version_99 = [&[0, 99][..], &version_1[2..], b"more"].concat();
    for (number, metadata) in [
        version_0.clone(),
        version_1.clone(),
        version_1[..version_1.len() - 2].to_vec(),
        version_99,
        vec![0xff; 7],
        vec![0],
        Vec::new(),
    ]
    .into_iter()
    .enumerate()
    {
        let group = format!("D16 {number}");
        let mut member = Member::new(&broker, &group);
        member.join.protocols[0].metadata = Bytes::from(metadata.clone());
        let answer = member.enter();
        assert_eq!(answer.members[0].metadata, metadata);
        let id = member.id().to_owned();
        member.sync(&[(&id, &metadata)]);
        let described = member::describe(&mut broker.connect(), 5, &group);
        assert_eq!(described.members[0].member_metadata, metadata);
        assert_eq!(described.members[0].member_assignment, metadata);
        assert_eq!(member.commit("t", 0, 1), ErrorCode::NONE);
    }
}

/// D04.
#[test]
fn one_describe_answers_for_each_group_on_its_own() {
    let broker = shared();
    let mut member = Member::new(&broker, "D04");
    member.enter_alone();
    let request = DescribeGroupsRequest {
        groups: ["D04", "D04 missing"].map(str::to_owned).to_vec(),
        ..DescribeGroupsRequest::default()
    };
    let answer = broker.connect().call(5, &request);
    let found: Vec<_> = answer
        .groups
        .iter()
        .map(|group| {
            (
                group.group_id.as_str(),
                group.group_state.as_str(),
                group.error_code,
            )
        })
        .collect();
    let none = ErrorCode::NONE;
    assert_eq!(
        found,
        [("D04", "Stable", none), ("D04 missing", "Dead", none)]
    );
    let described = &answer.groups[0].members[0];
    assert_eq!(described.client_id, "test");
    assert_eq!(described.client_host, "/127.0.0.1");
}

/// I09, E10.
#[test]
fn a_coordinator_is_found_for_one_group_or_for_many() {
    let broker = shared();
    let mut connection = broker.connect();
    let (host, port) = (
        broker.address.ip().to_string(),
        i32::from(broker.address.port()),
    );
    for version in 0..=6 {
        let keys = ["a", "b", "a/b"];
        let request = FindCoordinatorRequest {
            key: "a".to_owned(),
            key_type: 0,
            coordinator_keys: keys.map(str::to_owned).to_vec(),
        };
        let answer = connection.call(version, &request);
        if version < 4 {
            let found = (answer.error_code, answer.node_id, answer.host, answer.port);
            assert_eq!(found, (ErrorCode::NONE, 0, host.clone(), port));
            continue;
        }
        assert_eq!(answer.coordinators.len(), keys.len());
        for (key, found) in keys.iter().zip(answer.coordinators) {
            assert_eq!(found.key, *key);
            assert_eq!(
                (found.error_code, found.node_id, found.host, found.port),
                (ErrorCode::NONE, 0, host.clone(), port)
            );
        }
    }
    for version in 1..=6 {
        let request = FindCoordinatorRequest {
            key: "a".to_owned(),
            key_type: 9,
            coordinator_keys: vec!["a".to_owned()],
        };
        let answer = connection.call(version, &request);
        let code = if version < 4 {
            answer.error_code
        } else {
            answer.coordinators[0].error_code
        };
        assert_eq!(code, ErrorCode::INVALID_REQUEST, "v{version}");
    }
}
