//! What a stored group may hold that no request of today writes, and what is refused.

use std::collections::BTreeMap;

use bytes::Bytes;

use kaas_coordinator::document::{
    ClassicDocument, Committed, FORMAT, MemberDocument, Offsets, ProtocolDocument, StateDocument,
};
use kaas_coordinator::{
    Call, ChangeKind, DocumentError, Effect, GroupConfig, GroupDocument, Manager, Now, Output,
    Reply, Request, Revision, Status,
};
use kaas_wire::messages::heartbeat::HeartbeatRequest;
use kaas_wire::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use kaas_wire::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kaas_wire::messages::offset_fetch::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kaas_wire::{ErrorCode, Uuid};

const NOW: Now = Now {
    mono_ms: 5_000,
    wall_ms: 1_700_000_000_000,
};
const DAY_MS: u64 = 86_400_000;

fn manager() -> (Manager<u32>, Output<u32>) {
    let mut manager = Manager::new(GroupConfig::default());
    manager.set_term(9);
    (manager, Output::default())
}

fn committed(offset: i64) -> Committed {
    Committed {
        offset,
        leader_epoch: -1,
        metadata: "".into(),
        commit_timestamp: NOW.wall_ms,
        expire_timestamp: None,
        topic_id: Uuid::ZERO,
    }
}

fn offsets(topic: &str, partitions: &[(i32, i64)]) -> Offsets {
    let partitions = partitions
        .iter()
        .map(|(partition, offset)| (*partition, committed(*offset)));
    BTreeMap::from([(topic.to_owned(), partitions.collect())])
}

fn empty() -> ClassicDocument {
    ClassicDocument {
        state: "Empty".to_owned(),
        state_timestamp: Some(NOW.wall_ms),
        generation: 0,
        protocol_type: None,
        protocol_name: None,
        leader: None,
        members: Vec::new(),
    }
}

fn document(state: ClassicDocument) -> GroupDocument {
    GroupDocument {
        format: FORMAT,
        group_id: "g".to_owned(),
        revision: Revision { term: 3, n: 17 },
        state: StateDocument::Classic(state),
        offsets: Offsets::new(),
        pending_offsets: BTreeMap::new(),
    }
}

fn member(id: &str, instance_id: Option<&str>, protocols: &[&str]) -> MemberDocument {
    MemberDocument {
        member_id: id.to_owned(),
        instance_id: instance_id.map(str::to_owned),
        client_id: "client".to_owned(),
        client_host: "/127.0.0.1".to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        protocols: protocols
            .iter()
            .map(|name| ProtocolDocument {
                name: name.to_string(),
                metadata: Bytes::new(),
                subscribed_topics: None,
            })
            .collect(),
        assignment: Bytes::from_static(b"mine"),
        assigned_partitions: None,
    }
}

fn stable(members: Vec<MemberDocument>) -> ClassicDocument {
    ClassicDocument {
        state: "Stable".to_owned(),
        generation: 4,
        protocol_type: Some("consumer".to_owned()),
        protocol_name: Some("range".to_owned()),
        leader: Some("a".to_owned()),
        members,
        ..empty()
    }
}

fn refused(document: GroupDocument) -> DocumentError {
    let (mut manager, mut out) = manager();
    let error = manager
        .load(NOW, "g", Some(document), &mut out)
        .unwrap_err();
    assert_eq!(
        manager.status("g"),
        Status::NotLoaded,
        "what cannot be used is not an empty group"
    );
    error
}

fn fetch(manager: &Manager<u32>, stable: bool, partition: i32) -> (i64, ErrorCode) {
    fetch_as(9, manager, stable, partition)
}

fn fetch_as(
    version: i16,
    manager: &Manager<u32>,
    stable: bool,
    partition: i32,
) -> (i64, ErrorCode) {
    let request = OffsetFetchRequestGroup {
        group_id: "g".to_owned(),
        topics: Some(vec![OffsetFetchRequestTopics {
            name: "t".to_owned(),
            partition_indexes: vec![partition],
            ..OffsetFetchRequestTopics::default()
        }]),
        ..OffsetFetchRequestGroup::default()
    };
    let response = manager.fetch_offsets(&request, stable, version);
    let partition = &response.topics[0].partitions[0];
    assert_eq!(partition.metadata.as_deref(), Some(""));
    (partition.committed_offset, partition.error_code)
}

fn pending_at_0_and_1() -> GroupDocument {
    GroupDocument {
        offsets: offsets("t", &[(0, 10), (2, 12)]),
        pending_offsets: BTreeMap::from([(4711, offsets("t", &[(0, 20), (1, 21)]))]),
        ..document(empty())
    }
}

#[test]
fn of_53_a_stable_fetch_does_not_show_a_partition_with_a_pending_offset() {
    let (mut manager, mut out) = manager();
    manager
        .load(NOW, "g", Some(pending_at_0_and_1()), &mut out)
        .unwrap();
    assert_eq!(fetch(&manager, false, 0), (10, ErrorCode::NONE));
    assert_eq!(
        fetch(&manager, true, 0),
        (-1, ErrorCode::UNSTABLE_OFFSET_COMMIT)
    );
    assert_eq!(fetch(&manager, false, 1), (-1, ErrorCode::NONE));
    assert_eq!(
        fetch(&manager, true, 1),
        (-1, ErrorCode::UNSTABLE_OFFSET_COMMIT)
    );
    assert_eq!(fetch(&manager, true, 2), (12, ErrorCode::NONE));
}

#[test]
fn of_56_before_version_7_no_fetch_is_a_stable_one() {
    let (mut manager, mut out) = manager();
    manager
        .load(NOW, "g", Some(pending_at_0_and_1()), &mut out)
        .unwrap();
    assert_eq!(fetch_as(6, &manager, true, 0), (10, ErrorCode::NONE));
    assert_eq!(
        fetch_as(7, &manager, true, 0),
        (-1, ErrorCode::UNSTABLE_OFFSET_COMMIT)
    );
}

#[test]
fn of_51_all_topics_leave_out_what_is_only_pending() {
    let (mut manager, mut out) = manager();
    manager
        .load(NOW, "g", Some(pending_at_0_and_1()), &mut out)
        .unwrap();
    let request = OffsetFetchRequestGroup {
        group_id: "g".to_owned(),
        topics: None,
        ..OffsetFetchRequestGroup::default()
    };
    let response = manager.fetch_offsets(&request, true, 9);
    let partitions: Vec<_> = response.topics[0]
        .partitions
        .iter()
        .map(|partition| (partition.partition_index, partition.error_code))
        .collect();
    assert_eq!(
        partitions,
        [(0, ErrorCode::UNSTABLE_OFFSET_COMMIT), (2, ErrorCode::NONE)]
    );
}

#[test]
fn of_67_of_69_a_pending_offset_neither_expires_nor_lets_its_group_go() {
    let (mut manager, mut out) = manager();
    manager
        .load(NOW, "g", Some(pending_at_0_and_1()), &mut out)
        .unwrap();
    let later = Now {
        mono_ms: NOW.mono_ms + 8 * DAY_MS,
        wall_ms: NOW.wall_ms + 8 * DAY_MS as i64,
    };
    manager.sweep_expired(later, &mut out);
    assert_eq!(fetch(&manager, false, 0), (10, ErrorCode::NONE));
    assert_eq!(fetch(&manager, false, 2), (-1, ErrorCode::NONE));
    assert_eq!(manager.status("g"), Status::Present);
}

#[test]
fn of_59_of_84_deleting_an_offset_drops_what_is_pending_for_it() {
    let (mut manager, mut out) = manager();
    manager
        .load(NOW, "g", Some(pending_at_0_and_1()), &mut out)
        .unwrap();
    manager.checkpoint("g", &mut out);
    let partitions = [0, 1].map(|partition_index| OffsetDeleteRequestPartition { partition_index });
    let request = OffsetDeleteRequest {
        group_id: "g".to_owned(),
        topics: vec![OffsetDeleteRequestTopic {
            name: "t".to_owned(),
            partitions: partitions.into(),
        }],
    };
    manager.handle(NOW, call(0, Request::OffsetDelete(request)), &mut out);
    let left = manager.document("g").unwrap();
    assert_eq!(left.pending_offsets, BTreeMap::new());
    assert_eq!(left.offsets, offsets("t", &[(2, 12)]));
    let mut replayed = GroupDocument::from_json(&out.changes[0].payload).unwrap();
    assert_eq!(out.changes[1].kind, ChangeKind::Offsets);
    replayed
        .apply(out.changes[1].revision, &out.changes[1].payload)
        .unwrap();
    assert_eq!(replayed, left);
}

#[test]
fn of_72_deleting_a_topic_drops_what_is_pending_for_it() {
    let (mut manager, mut out) = manager();
    manager
        .load(NOW, "g", Some(pending_at_0_and_1()), &mut out)
        .unwrap();
    manager.topic_deleted("t", Uuid::ZERO, &mut out);
    let left = manager.document("g").unwrap();
    assert!(left.pending_offsets.is_empty() && left.offsets.is_empty());
}

#[test]
fn of_64_an_empty_group_without_a_state_timestamp_counts_from_the_commits() {
    let (mut manager, mut out) = manager();
    let state = ClassicDocument {
        state_timestamp: None,
        protocol_type: Some("consumer".to_owned()),
        ..empty()
    };
    let old = GroupDocument {
        offsets: offsets("t", &[(0, 1)]),
        ..document(state)
    };
    manager.load(NOW, "g", Some(old), &mut out).unwrap();
    let wait = |days: u64| Now {
        mono_ms: days * DAY_MS,
        wall_ms: NOW.wall_ms + (days * DAY_MS) as i64,
    };
    manager.sweep_expired(wait(6), &mut out);
    assert_eq!(manager.status("g"), Status::Present);
    manager.sweep_expired(wait(7), &mut out);
    assert_eq!(manager.status("g"), Status::Removed);
}

#[test]
fn cg_07_a_stored_rebalance_timeout_of_minus_1_is_the_session_timeout() {
    let (mut manager, mut out) = manager();
    let old = MemberDocument {
        rebalance_timeout_ms: -1,
        ..member("a", None, &["range"])
    };
    manager
        .load(NOW, "g", Some(document(stable(vec![old]))), &mut out)
        .unwrap();
    let loaded = manager.document("g").unwrap();
    let StateDocument::Classic(state) = loaded.state;
    assert_eq!(state.members[0].rebalance_timeout_ms, 10_000);
}

#[test]
fn cg_128_a_member_that_is_stored_with_the_protocol_in_force_only_rejoins_as_changed() {
    let (mut manager, mut out) = manager();
    let members = vec![member("a", None, &["range"]), member("b", None, &["range"])];
    manager
        .load(NOW, "g", Some(document(stable(members))), &mut out)
        .unwrap();
    let protocols = ["range", "sticky"].map(|name| JoinGroupRequestProtocol {
        name: name.to_owned(),
        metadata: Bytes::new(),
    });
    let request = JoinGroupRequest {
        group_id: "g".to_owned(),
        member_id: "b".to_owned(),
        session_timeout_ms: 10_000,
        protocol_type: "consumer".to_owned(),
        protocols: protocols.into(),
        ..JoinGroupRequest::default()
    };
    out.clear();
    manager.handle(NOW, call(9, Request::JoinGroup(request)), &mut out);
    assert!(out.replies.is_empty());
    assert!(matches!(out.effects[..], [Effect::RebalanceStarted { .. }]));
}

#[test]
fn a_leader_that_is_no_member_is_replaced_by_the_first() {
    let (mut manager, mut out) = manager();
    let state = ClassicDocument {
        leader: Some("gone".to_owned()),
        ..stable(vec![
            member("b", None, &["range"]),
            member("c", None, &["range"]),
        ])
    };
    manager
        .load(NOW, "g", Some(document(state)), &mut out)
        .unwrap();
    let StateDocument::Classic(state) = manager.document("g").unwrap().state;
    assert_eq!(state.leader.as_deref(), Some("b"));
}

#[test]
fn a_document_of_another_group_or_a_later_term_is_refused() {
    let other = GroupDocument {
        group_id: "G".to_owned(),
        ..document(empty())
    };
    assert!(matches!(refused(other), DocumentError::WrongGroup { .. }));
    let ahead = GroupDocument {
        revision: Revision { term: 10, n: 1 },
        ..document(empty())
    };
    assert!(matches!(
        refused(ahead),
        DocumentError::TermAhead {
            found: 10,
            current: 9
        }
    ));
    let newer = GroupDocument {
        format: FORMAT + 1,
        ..document(empty())
    };
    assert!(matches!(refused(newer), DocumentError::Format(_)));
}

#[test]
fn a_document_that_contradicts_itself_is_refused() {
    let contradictions = [
        stable(vec![
            member("a", None, &["range"]),
            member("a", None, &["range"]),
        ]),
        stable(vec![
            member("a", Some("i"), &["range"]),
            member("b", Some("i"), &["range"]),
        ]),
        stable(vec![
            member("a", None, &["range"]),
            member("b", None, &["sticky"]),
        ]),
        ClassicDocument {
            protocol_name: None,
            ..stable(vec![member("a", None, &["range"])])
        },
        ClassicDocument {
            protocol_type: None,
            ..stable(vec![member("a", None, &["range"])])
        },
        ClassicDocument {
            generation: 0,
            ..stable(vec![member("a", None, &["range"])])
        },
        ClassicDocument {
            generation: -1,
            ..empty()
        },
    ];
    for state in contradictions {
        let error = refused(document(state));
        assert!(matches!(error, DocumentError::Inconsistent(_)), "{error}");
    }
}

#[test]
fn what_does_not_parse_says_where() {
    let error = GroupDocument::from_json(b"{\"format\": 1,").unwrap_err();
    assert!(error.to_string().contains("line 1 column"), "{error}");
    let newer = document(empty()).to_json();
    let newer = String::from_utf8(newer)
        .unwrap()
        .replace("\"format\": 1", "\"format\": 2");
    let error = GroupDocument::from_json(newer.as_bytes()).unwrap_err();
    assert!(matches!(error, DocumentError::Format(2)));
}

#[test]
fn a_delta_that_does_not_follow_is_a_gap() {
    for next in [
        Revision { term: 3, n: 17 },
        Revision { term: 3, n: 19 },
        Revision { term: 4, n: 18 },
    ] {
        let error = document(empty()).apply(next, &[1]).unwrap_err();
        assert!(matches!(error, DocumentError::Gap { .. }), "{next:?}");
    }
    let mut followed = document(empty());
    followed.apply(Revision { term: 3, n: 18 }, &[]).unwrap();
    assert_eq!(followed.revision.n, 18);
}

#[test]
fn a_term_loaded_again_in_the_same_session_goes_on_counting() {
    let (mut manager, mut out) = manager();
    let stored = GroupDocument {
        revision: Revision { term: 9, n: 30 },
        ..document(empty())
    };
    manager.load(NOW, "g", Some(stored), &mut out).unwrap();
    manager.checkpoint("g", &mut out);
    assert_eq!(out.changes[0].revision, Revision { term: 9, n: 31 });
    assert_eq!(manager.revision("g"), Some(Revision { term: 9, n: 31 }));
}

#[test]
fn cg_22_s16_a_group_that_is_not_loaded_is_told_from_one_that_is_not_there() {
    let (mut manager, mut out) = manager();
    assert_eq!(manager.status("g"), Status::NotLoaded);
    assert!(!manager.is_loaded("g"));
    manager.load(NOW, "g", None, &mut out).unwrap();
    assert_eq!(manager.status("g"), Status::Absent);
    assert!(manager.is_loaded("g"));
    assert_eq!(
        manager
            .local_groups()
            .map(AsRef::as_ref)
            .collect::<Vec<&str>>(),
        ["g"]
    );
    manager.unload("g", &mut out);
    assert_eq!(manager.local_groups().count(), 0);
}

#[test]
fn every_group_in_memory_is_local_also_a_removed_one() {
    let (mut manager, mut out) = manager();
    manager
        .load(NOW, "g", Some(document(empty())), &mut out)
        .unwrap();
    assert_eq!(manager.delete_group("g", &mut out), ErrorCode::NONE);
    assert_eq!(manager.local_groups().count(), 1);
    assert_eq!(manager.document("g"), None);
    assert_eq!(manager.revision("g"), Some(out.changes[0].revision));
}

#[test]
fn every_committed_offset_is_there_for_the_metrics() {
    let (mut manager, mut out) = manager();
    let stored = GroupDocument {
        offsets: offsets("t", &[(0, 5), (3, 7)]),
        ..document(empty())
    };
    manager.load(NOW, "g", Some(stored), &mut out).unwrap();
    let all: Vec<_> = manager
        .committed_offsets()
        .map(|(group, topic, partition, committed)| {
            (
                group.to_string(),
                topic.to_owned(),
                partition,
                committed.offset,
            )
        })
        .collect();
    let row = |partition, offset| ("g".to_owned(), "t".to_owned(), partition, offset);
    assert_eq!(all, [row(0, 5), row(3, 7)]);
    assert_eq!(manager.members(), 0);
    assert_eq!(manager.groups_by_state()["Empty"], 1);
}

#[test]
fn a_thousand_members_of_one_group_each_get_one_answer_and_one_assignment() {
    let (mut manager, mut out) = manager();
    manager.load(NOW, "g", None, &mut out).unwrap();
    for member in 0..1_000 {
        let request = JoinGroupRequest {
            group_id: "g".to_owned(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 60_000,
            protocol_type: "consumer".to_owned(),
            protocols: vec![JoinGroupRequestProtocol {
                name: "range".to_owned(),
                metadata: Bytes::new(),
            }],
            ..JoinGroupRequest::default()
        };
        let fresh_id = member.to_string();
        let call = Call {
            fresh_id: &fresh_id,
            ..call(3, Request::JoinGroup(request))
        };
        manager.handle(NOW, call, &mut out);
    }
    assert!(out.replies.is_empty());
    let mut now = NOW;
    while out.replies.is_empty() {
        now.mono_ms = manager.next_timeout().unwrap();
        manager.handle_timeout(now, &mut out);
    }
    assert_eq!(out.replies.len(), 1_000);
    let of_leader = out.replies.iter().filter(|(_, reply, _)| match reply {
        Reply::JoinGroup(answer) => answer.members.len() == 1_000,
        _ => false,
    });
    assert_eq!(of_leader.count(), 1);
    assert_eq!(manager.members(), 1_000);
}

#[test]
fn heartbeats_that_come_late_but_before_the_timer_was_looked_at_count() {
    let (mut manager, mut out) = manager();
    let members = vec![member("a", None, &["range"])];
    manager
        .load(NOW, "g", Some(document(stable(members))), &mut out)
        .unwrap();
    let late = Now {
        mono_ms: NOW.mono_ms + 60_000,
        ..NOW
    };
    let request = HeartbeatRequest {
        group_id: "g".to_owned(),
        generation_id: 4,
        member_id: "a".to_owned(),
        group_instance_id: None,
    };
    manager.handle(late, call(4, Request::Heartbeat(request)), &mut out);
    manager.handle_timeout(late, &mut out);
    assert_eq!(manager.members(), 1);
    assert_eq!(manager.next_timeout(), Some(late.mono_ms + 10_000));
}

fn call(version: i16, request: Request) -> Call<'static, u32> {
    Call {
        reply_to: 0,
        version,
        client_id: "client",
        client_host: "/127.0.0.1",
        fresh_id: "1",
        request,
    }
}
