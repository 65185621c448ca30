//! Ids that someone, somewhere, uses.

use kaas_tests::files;
use kaas_tests::member::{self, Member, simple_commit, simple_commit_request};
use kaas_tests::topic;
use kaas_wire::ErrorCode;
use kaas_wire::messages::heartbeat::HeartbeatRequest;
use kaas_wire::messages::leave_group::LeaveGroupRequest;
use kaas_wire::messages::sync_group::SyncGroupRequest;

use crate::{quick, shared};

/// H01, H02.
#[test]
fn a_group_id_is_any_text_and_names_nothing_but_its_group() {
    let mut broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 1);
    let longest = "x".repeat(32_767);
    let longest_but_one = "x".repeat(32_766);
    let long = "y".repeat(2_048);
    let names = [
        "/",
        "a/b",
        "a%2Fb",
        "../../etc/x",
        "a//b",
        "a:b",
        "C:\\x",
        "../assignment",
        "#",
        "a b",
        " lead",
        "trail ",
        ".",
        "..",
        "a&b=1",
        "[[x]]`1",
        "\n",
        "\0",
        "\u{1f600}",
        "\u{e9}",
        "e\u{301}",
        "case",
        "CASE",
        "~",
        "%",
        "%41",
        "A",
        &long,
        &longest_but_one,
        &longest,
    ];
    let mut members = Vec::new();
    for (name, offset) in names.iter().zip(1..) {
        let mut member = Member::new(&broker, name);
        member.enter_alone();
        assert_eq!(member.commit("t", 0, offset), ErrorCode::NONE, "{name:?}");
        members.push(member);
    }
    let parent = broker
        .volume()
        .parent()
        .expect("the volume has a parent")
        .to_owned();
    let outside = files::list(&parent);
    broker.kill();
    broker.start_again();
    for (mut member, offset) in members.into_iter().zip(1..) {
        let name = member.join.group_id.clone();
        member.connection = broker.connect();
        assert_eq!(member.heartbeat(), ErrorCode::NONE, "{name:?}");
        assert_eq!(
            member::committed(&mut member.connection, &name, "t", 0),
            offset,
            "{name:?}"
        );
        let described = member::describe(&mut member.connection, 5, &name);
        assert_eq!(
            (described.group_id, described.group_state),
            (name.clone(), "Stable".to_owned())
        );
        member.leave();
    }
    broker.stop();
    broker.start_again();
    let mut connection = broker.connect();
    for (name, offset) in names.iter().zip(1..) {
        assert_eq!(
            member::committed(&mut connection, name, "t", 0),
            offset,
            "{name:?}"
        );
        assert!(member::listed(&mut connection, name).is_some(), "{name:?}");
        assert_eq!(
            member::delete_group(&mut connection, name),
            ErrorCode::NONE,
            "{name:?}"
        );
        assert_eq!(member::listed(&mut connection, name), None, "{name:?}");
        // Nobody else is touched.
        let left = connection.call(
            0,
            &kaas_wire::messages::list_groups::ListGroupsRequest::default(),
        );
        assert_eq!(left.groups.len(), names.len() - offset as usize);
    }
    let made: Vec<String> = files::list(&parent)
        .into_iter()
        .filter(|name| !outside.contains(name) && !name.starts_with("kaas-test-"))
        .filter(|name| name.contains("etc") || name.contains("assignment"))
        .collect();
    assert!(
        made.is_empty(),
        "files came to be outside of the volume: {made:?}"
    );
}

/// H02.
#[test]
fn a_group_id_longer_than_any_text_closes_the_connection() {
    let broker = shared();
    let mut connection = broker.connect();
    // The compact form can say more than 32,767 bytes.
    let frame = connection.frame(8, 1, &simple_commit_request("MARKMARK", "t", &[(0, 1)]));
    let at = frame
        .windows(8)
        .position(|window| window == b"MARKMARK")
        .unwrap();
    let mut body = frame[4..at - 1].to_vec();
    let length = 1_000_001u32;
    body.extend([
        length as u8 | 0x80,
        (length >> 7) as u8 | 0x80,
        (length >> 14) as u8,
    ]);
    body.extend(vec![b'x'; 1_000_000]);
    body.extend_from_slice(&frame[at + 8..]);
    connection.send_frame(&body).unwrap();
    connection.assert_closed();
    simple_commit(&mut broker.connect(), "H02", "t", 0, 1);
}

/// H03.
#[test]
fn the_empty_group_id_holds_offsets_and_has_no_members() {
    let broker = shared();
    let mut connection = broker.connect();
    let mut member = Member::new(&broker, "").version(3);
    let answer = member.connection.call(3, &member.join);
    assert_eq!(answer.error_code, ErrorCode::INVALID_GROUP_ID);
    let answer = connection.call(4, &SyncGroupRequest::default());
    assert_eq!(answer.error_code, ErrorCode::INVALID_GROUP_ID);
    let answer = connection.call(4, &HeartbeatRequest::default());
    assert_eq!(answer.error_code, ErrorCode::INVALID_GROUP_ID);
    let answer = connection.call(2, &LeaveGroupRequest::default());
    assert_eq!(answer.error_code, ErrorCode::INVALID_GROUP_ID);

    assert_eq!(
        simple_commit(&mut connection, "", "t", 0, 4),
        ErrorCode::NONE
    );
    assert_eq!(member::committed(&mut connection, "", "t", 0), 4);
    assert!(member::listed(&mut connection, "").is_some());
    assert_eq!(member::state(&mut connection, ""), "Empty");
    assert_eq!(member::delete_group(&mut connection, ""), ErrorCode::NONE);
    assert_eq!(
        member::delete_group(&mut connection, ""),
        ErrorCode::GROUP_ID_NOT_FOUND
    );
    assert_eq!(member.heartbeat(), ErrorCode::INVALID_GROUP_ID);
}

/// H04.
#[test]
fn a_client_id_is_any_text_or_none() {
    let broker = quick().start();
    topic::create(&mut broker.connect(), "t", 1);
    let long = "c".repeat(30_000);
    let ids = [
        None,
        Some(""),
        Some("a:b,c=d\"?*"),
        Some("line\nline"),
        Some("\u{1f600}"),
        Some(long.as_str()),
    ];
    for (number, client_id) in ids.into_iter().enumerate() {
        let group = format!("H04 {number}");
        let mut member = Member::new(&broker, &group);
        member.connection.client_id = client_id.map(str::to_owned);
        member.enter_alone();
        assert!(
            member.id().starts_with(client_id.unwrap_or_default()),
            "{client_id:?}"
        );
        let described = member::describe(&mut member.connection, 5, &group);
        assert_eq!(
            described.members[0].client_id,
            client_id.unwrap_or_default()
        );
        let produced = topic::produce(&mut member.connection, "t", 0, &[b"x".to_vec()]);
        assert_eq!(produced.error_code, ErrorCode::NONE);
    }
    assert_eq!(
        kaas_tests::admin::get(broker.admin(), "/metrics").status,
        200
    );
}
