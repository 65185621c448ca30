//! What holds over all histories: random requests, time, restarts and failed writes against a few small groups.
//! In debug builds the core checks its own invariants after every event as well.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;

use kaas_coordinator::{
    Call, Change, ChangeKind, GroupConfig, GroupDocument, Manager, Now, Output, Reply, Request,
    Revision, Status,
};
use kaas_wire::messages::describe_groups::DescribedGroup;
use kaas_wire::messages::heartbeat::HeartbeatRequest;
use kaas_wire::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
};
use kaas_wire::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use kaas_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kaas_wire::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kaas_wire::messages::offset_fetch::{OffsetFetchRequestGroup, OffsetFetchResponseGroup};
use kaas_wire::messages::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};
use kaas_wire::{ErrorCode, Uuid};

const GROUPS: [&str; 2] = ["g", "h"];
const CLIENTS: usize = 5;
const MAX_SIZE: i32 = 3;
const TOPICS: [&str; 2] = ["t", "u"];

/// Which member id a request names.
#[derive(Clone, Copy, Debug)]
enum Id {
    Own,
    Empty,
    OfClient(usize),
    Unknown,
}

#[derive(Clone, Debug)]
enum Op {
    Join {
        client: usize,
        id: Id,
        version: i16,
        protocols: u8,
        session_ms: i32,
        rebalance_ms: i32,
    },
    Sync {
        client: usize,
        id: Id,
        stale: bool,
    },
    Heartbeat {
        client: usize,
        id: Id,
        stale: bool,
    },
    Leave {
        client: usize,
        id: Id,
        version: i16,
        another: Option<usize>,
    },
    Commit {
        client: usize,
        id: Id,
        version: i16,
        partition: i32,
        long: bool,
        retention_ms: i64,
    },
    DeleteOffsets {
        partition: i32,
    },
    Advance {
        ms: u64,
    },
    Sweep,
    TopicDeleted {
        topic: usize,
        id: u8,
    },
    Delete,
    FileGone,
    Reload,
    Unload,
    Durable,
    /// These clients do all it takes to form a generation.
    Form {
        clients: Vec<usize>,
    },
    Fail {
        found: bool,
    },
    Term,
}

fn id() -> impl Strategy<Value = Id> {
    prop_oneof![
        12 => Just(Id::Own),
        3 => Just(Id::Empty),
        1 => (0..CLIENTS).prop_map(Id::OfClient),
        1 => Just(Id::Unknown),
    ]
}

fn op() -> impl Strategy<Value = (usize, Op)> {
    let client = || 0..CLIENTS;
    let join = (
        client(),
        id(),
        prop::sample::select(vec![0i16, 3, 4, 5, 8, 9]),
        0u8..6,
        prop::sample::select(vec![6_000, 10_000, 30_000]),
        // Not -1: a reload takes that for the session timeout (CG-07).
        prop::sample::select(vec![-2, 0, 5_000, 60_000, 60_000, 60_000, 60_000]),
    );
    let join = join.prop_map(
        |(client, id, version, protocols, session_ms, rebalance_ms)| Op::Join {
            client,
            id,
            version,
            protocols,
            session_ms,
            rebalance_ms,
        },
    );
    let sync = (client(), id(), prop::bool::weighted(0.1));
    let beat = (client(), id(), prop::bool::weighted(0.1));
    let leave = (
        client(),
        id(),
        prop::sample::select(vec![1i16, 3, 5]),
        prop::option::of(client()),
    );
    let commit = (
        client(),
        id(),
        prop::sample::select(vec![2i16, 8, 9, 10]),
        0..3i32,
        prop::bool::weighted(0.1),
        prop::sample::select(vec![-1i64, -1, 0, 60_000]),
    );
    let op = prop_oneof![
        10 => join,
        8 => sync.prop_map(|(client, id, stale)| Op::Sync { client, id, stale }),
        5 => beat.prop_map(|(client, id, stale)| Op::Heartbeat { client, id, stale }),
        3 => leave.prop_map(|(client, id, version, another)| Op::Leave { client, id, version, another }),
        5 => commit.prop_map(|(client, id, version, partition, long, retention_ms)| Op::Commit {
            client, id, version, partition, long, retention_ms,
        }),
        1 => (0..3i32).prop_map(|partition| Op::DeleteOffsets { partition }),
        6 => prop::sample::select(vec![0u64, 1, 500, 500, 3_000, 3_000, 5_000, 7_000, 70_000, 400_000])
            .prop_map(|ms| Op::Advance { ms }),
        6 => prop::sample::subsequence((0..CLIENTS).collect::<Vec<_>>(), 1..=MAX_SIZE as usize)
            .prop_map(|clients| Op::Form { clients }),
        1 => Just(Op::Sweep),
        1 => (0..TOPICS.len(), 0..3u8).prop_map(|(topic, id)| Op::TopicDeleted { topic, id }),
        1 => Just(Op::Delete),
        1 => Just(Op::FileGone),
        2 => Just(Op::Reload),
        1 => Just(Op::Unload),
        2 => Just(Op::Durable),
        1 => any::<bool>().prop_map(|found| Op::Fail { found }),
        1 => Just(Op::Term),
    ];
    (prop_oneof![4 => Just(0), 1 => Just(1)], op)
}

#[derive(Clone, Copy)]
enum Asked {
    Join { version: i16, caller_had_id: bool },
    Other,
}

struct World {
    manager: Manager<u32>,
    now_ms: u64,
    term: u64,
    out: Output<u32>,
    asked: BTreeMap<u32, Asked>,
    calls: u32,
    fresh_ids: u32,
    /// By group and client: member id and generation as last answered.
    known: BTreeMap<(usize, usize), (String, i32)>,
    callers: BTreeMap<u32, (usize, usize)>,
    disk: BTreeMap<usize, (Revision, Option<GroupDocument>)>,
    durable_disk: BTreeMap<usize, (Revision, Option<GroupDocument>)>,
    /// Keys of which a delta may come, because a change was made since they were loaded.
    journaled: BTreeSet<usize>,
    last_change: u64,
    durable: u64,
}

/// The two clients of `i` are rivals, the fourth has an instance of its own.
fn instance(client: usize) -> Option<String> {
    match client {
        2 | 3 => Some("i".to_owned()),
        4 => Some("j".to_owned()),
        _ => None,
    }
}

fn topic_id(id: u8) -> Uuid {
    let mut bytes = [0; 16];
    bytes[15] = id;
    Uuid::from_bytes(bytes)
}

impl World {
    fn new(config: GroupConfig) -> World {
        let mut manager = Manager::new(config);
        manager.set_term(1);
        World {
            manager,
            now_ms: 0,
            term: 1,
            out: Output::default(),
            asked: BTreeMap::new(),
            calls: 0,
            fresh_ids: 0,
            known: BTreeMap::new(),
            callers: BTreeMap::new(),
            disk: BTreeMap::new(),
            durable_disk: BTreeMap::new(),
            journaled: BTreeSet::new(),
            last_change: 0,
            durable: 0,
        }
    }

    fn now(&self) -> Now {
        Now {
            mono_ms: self.now_ms,
            wall_ms: 1_700_000_000_000 + self.now_ms as i64,
        }
    }

    fn play(&mut self, group: usize, op: &Op) {
        let group_id = GROUPS[group].to_owned();
        let client_of = |client: &usize| (group, *client);
        match op {
            Op::Join {
                client,
                id,
                version,
                protocols,
                session_ms,
                rebalance_ms,
            } => {
                let names: &[&str] = match protocols {
                    0 | 1 => &["range", "sticky"],
                    2 => &["sticky", "range"],
                    3 => &["range"],
                    4 => &["odd", "range", "odd"],
                    _ => &[],
                };
                let protocols = names.iter().map(|name| JoinGroupRequestProtocol {
                    name: name.to_string(),
                    metadata: subscription(if *version == 8 { "u" } else { "t" }),
                });
                let request = JoinGroupRequest {
                    group_id,
                    session_timeout_ms: *session_ms,
                    rebalance_timeout_ms: *rebalance_ms,
                    member_id: self.member_id(group, *client, *id),
                    group_instance_id: instance(*client).filter(|_| *version >= 5),
                    protocol_type: "consumer".to_owned(),
                    protocols: protocols.collect(),
                    reason: None,
                };
                self.call(client_of(client), *version, Request::JoinGroup(request));
            }
            Op::Sync { client, id, stale } => {
                let ids = self.known.iter().filter(|((of, _), _)| *of == group);
                let assignments = ids.map(|(_, (member_id, _))| SyncGroupRequestAssignment {
                    member_id: member_id.clone(),
                    assignment: Bytes::from(format!("for {member_id}")),
                });
                let request = SyncGroupRequest {
                    group_id,
                    generation_id: self.generation(group, *client) - i32::from(*stale),
                    member_id: self.member_id(group, *client, *id),
                    group_instance_id: instance(*client),
                    assignments: assignments.collect(),
                    ..SyncGroupRequest::default()
                };
                self.call(client_of(client), 4, Request::SyncGroup(request));
            }
            Op::Heartbeat { client, id, stale } => {
                let request = HeartbeatRequest {
                    group_id,
                    generation_id: self.generation(group, *client) - i32::from(*stale),
                    member_id: self.member_id(group, *client, *id),
                    group_instance_id: instance(*client),
                };
                self.call(client_of(client), 4, Request::Heartbeat(request));
            }
            Op::Leave {
                client,
                id,
                version,
                another,
            } => {
                let member_id = self.member_id(group, *client, *id);
                let clients = std::iter::once(client)
                    .chain(another)
                    .filter(|_| *version >= 3);
                let members = clients.map(|client| MemberIdentity {
                    member_id: self.member_id(group, *client, *id),
                    group_instance_id: instance(*client),
                    reason: None,
                });
                let members = members.collect();
                let request = LeaveGroupRequest {
                    group_id,
                    member_id,
                    members,
                };
                self.call(client_of(client), *version, Request::LeaveGroup(request));
            }
            Op::Commit {
                client,
                id,
                version,
                partition,
                long,
                retention_ms,
            } => {
                let member_id = self.member_id(group, *client, *id);
                let topics = TOPICS.iter().take(if *long { 2 } else { 1 });
                let topics = topics.map(|topic| OffsetCommitRequestTopic {
                    name: topic.to_string(),
                    topic_id: topic_id(match version {
                        10 => 1,
                        9 => 2,
                        _ => 0,
                    }),
                    partitions: vec![OffsetCommitRequestPartition {
                        partition_index: *partition,
                        committed_offset: i64::from(self.calls),
                        committed_leader_epoch: *partition - 1,
                        committed_metadata: (*long).then(|| "long".repeat(topic.len() + 1)),
                    }],
                });
                let topics = topics.collect();
                let generation = if member_id.is_empty() {
                    -1
                } else {
                    self.generation(group, *client)
                };
                let request = OffsetCommitRequest {
                    group_id,
                    generation_id_or_member_epoch: generation,
                    group_instance_id: instance(*client).filter(|_| !member_id.is_empty()),
                    member_id,
                    retention_time_ms: *retention_ms,
                    topics,
                };
                self.call(client_of(client), *version, Request::OffsetCommit(request));
            }
            Op::DeleteOffsets { partition } => {
                let topics = TOPICS.iter().map(|topic| OffsetDeleteRequestTopic {
                    name: topic.to_string(),
                    partitions: vec![OffsetDeleteRequestPartition {
                        partition_index: *partition,
                    }],
                });
                let request = OffsetDeleteRequest {
                    group_id,
                    topics: topics.collect(),
                };
                self.call((group, 0), 0, Request::OffsetDelete(request));
            }
            Op::Advance { ms } => self.advance(*ms),
            Op::Sweep => {
                let now = self.now();
                self.manager.sweep_expired(now, &mut self.out);
            }
            Op::TopicDeleted { topic, id } => {
                self.manager
                    .topic_deleted(TOPICS[*topic], topic_id(*id), &mut self.out);
            }
            Op::Delete => {
                let present = self.manager.status(&group_id) == Status::Present;
                let empty = self.describe(group).group_state == "Empty";
                let error = self.manager.delete_group(&group_id, &mut self.out);
                assert_eq!(
                    error.is_ok(),
                    present && empty,
                    "an empty group can be deleted"
                );
            }
            Op::FileGone => self.manager.file_gone(&group_id),
            Op::Reload => self.reload(group),
            Op::Unload => self.unload(group),
            Op::Durable => {
                self.durable = self.last_change;
                self.manager.durable(self.durable);
                self.durable_disk = self.disk.clone();
            }
            Op::Fail { found } => {
                self.manager.append_failed(
                    &group_id,
                    ErrorCode::KAFKA_STORAGE_ERROR,
                    &mut self.out,
                );
                self.settle();
                self.journaled.remove(&group);
                if !found {
                    match self.durable_disk.get(&group) {
                        Some(stored) => self.disk.insert(group, stored.clone()),
                        None => self.disk.remove(&group),
                    };
                }
                self.load(group);
                self.manager.checkpoint(&group_id, &mut self.out);
            }
            Op::Form { clients } => {
                for client in clients.iter().chain(clients) {
                    let join = Op::Join {
                        client: *client,
                        id: Id::Own,
                        version: 9,
                        protocols: 0,
                        session_ms: 30_000,
                        rebalance_ms: 60_000,
                    };
                    self.play(group, &join);
                }
                self.advance(6_000);
                for client in clients {
                    self.play(
                        group,
                        &Op::Sync {
                            client: *client,
                            id: Id::Own,
                            stale: false,
                        },
                    );
                }
            }
            Op::Term => {
                self.term += 1;
                self.manager.set_term(self.term);
            }
        }
        self.settle();
        self.check(group);
    }

    fn member_id(&self, group: usize, client: usize, id: Id) -> String {
        let known = |client| {
            self.known
                .get(&(group, client))
                .map(|(id, _)| id.clone())
                .unwrap_or_default()
        };
        match id {
            Id::Own => known(client),
            Id::Empty => String::new(),
            Id::OfClient(other) => known(other),
            Id::Unknown => "ghost".to_owned(),
        }
    }

    fn generation(&self, group: usize, client: usize) -> i32 {
        self.known
            .get(&(group, client))
            .map_or(0, |(_, generation)| *generation)
    }

    fn call(&mut self, (group, client): (usize, usize), version: i16, request: Request) {
        self.load(group);
        let reply_to = self.calls;
        self.calls += 1;
        let asked = match &request {
            Request::JoinGroup(join) => Asked::Join {
                version,
                caller_had_id: !join.member_id.is_empty(),
            },
            _ => Asked::Other,
        };
        self.asked.insert(reply_to, asked);
        self.callers.insert(reply_to, (group, client));
        self.fresh_ids += 1;
        let fresh_id = self.fresh_ids.to_string();
        let client_id = client.to_string();
        let call = Call {
            reply_to,
            version,
            client_id: &client_id,
            client_host: "/127.0.0.1",
            fresh_id: &fresh_id,
            request,
        };
        let now = self.now();
        self.manager.handle(now, call, &mut self.out);
    }

    fn advance(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        let mut steps = 0;
        while let Some(deadline) = self
            .manager
            .next_timeout()
            .filter(|deadline| *deadline <= end)
        {
            self.now_ms = self.now_ms.max(deadline);
            let now = self.now();
            self.manager.handle_timeout(now, &mut self.out);
            self.settle();
            steps += 1;
            assert!(steps < 5_000, "time goes on");
        }
        self.now_ms = end;
    }

    fn load(&mut self, group: usize) {
        if self.manager.is_loaded(GROUPS[group]) {
            return;
        }
        let document = self
            .disk
            .get(&group)
            .and_then(|(_, document)| document.as_ref());
        let document =
            document.map(|document| GroupDocument::from_json(&document.to_json()).unwrap());
        let now = self.now();
        self.manager
            .load(now, GROUPS[group], document, &mut self.out)
            .unwrap();
        self.journaled.remove(&group);
    }

    fn unload(&mut self, group: usize) {
        self.manager.unload(GROUPS[group], &mut self.out);
        self.settle();
        self.journaled.remove(&group);
    }

    /// A group at rest looks the same before and after.
    fn reload(&mut self, group: usize) {
        let at_rest = ["Empty", "Stable"].contains(&self.describe(group).group_state.as_str());
        let before = (
            self.describe(group),
            self.fetch(group),
            self.manager.document(GROUPS[group]),
        );
        self.unload(group);
        self.load(group);
        self.settle();
        if at_rest {
            let after = (
                self.describe(group),
                self.fetch(group),
                self.manager.document(GROUPS[group]),
            );
            assert_eq!(before, after, "a reload changes nothing");
        }
    }

    fn describe(&self, group: usize) -> DescribedGroup {
        self.manager.describe(GROUPS[group], 6, true)
    }

    fn fetch(&self, group: usize) -> OffsetFetchResponseGroup {
        let request = OffsetFetchRequestGroup {
            group_id: GROUPS[group].to_owned(),
            topics: None,
            ..OffsetFetchRequestGroup::default()
        };
        self.manager.fetch_offsets(&request, true, 10)
    }

    /// Takes in what the core put out since the last time.
    fn settle(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        for change in out.changes.drain(..) {
            self.store(change);
        }
        let mut joined = BTreeMap::new();
        for (reply_to, reply, wait) in out.replies.drain(..) {
            let asked = self
                .asked
                .remove(&reply_to)
                .expect("a request has one reply");
            let (group, client) = self.callers.remove(&reply_to).unwrap();
            if let Some(change) = wait {
                assert!(change > self.durable, "what is durable is not waited for");
                assert!(
                    change <= self.last_change,
                    "a reply waits for a change that was made"
                );
            }
            if let (
                Asked::Join {
                    version,
                    caller_had_id,
                },
                Reply::JoinGroup(response),
            ) = (asked, &reply)
            {
                check_join(version, caller_had_id, response);
                if response.error_code.is_ok() {
                    *joined.entry((group, response.generation_id)).or_insert(0) += 1;
                    let learnt = (response.member_id.clone(), response.generation_id);
                    self.known.insert((group, client), learnt);
                } else if response.error_code == ErrorCode::MEMBER_ID_REQUIRED {
                    let generation = self.generation(group, client);
                    self.known
                        .insert((group, client), (response.member_id.clone(), generation));
                }
            }
        }
        assert!(
            joined.values().all(|count| *count <= MAX_SIZE),
            "no more join than may"
        );
        self.out = out;
    }

    fn store(&mut self, change: Change) {
        assert_eq!(change.number, self.last_change + 1, "changes are counted");
        self.last_change = change.number;
        let group = GROUPS
            .iter()
            .position(|group_id| **group_id == *change.group_id)
            .unwrap();
        let first = self.journaled.insert(group);
        let held = self.disk.remove(&group);
        let last = held.as_ref().map(|(revision, _)| *revision);
        assert!(
            last.is_none_or(|last| last < change.revision),
            "revisions rise"
        );
        let was_there = held
            .as_ref()
            .is_some_and(|(_, document)| document.is_some());
        if first {
            assert_ne!(
                change.kind,
                ChangeKind::Offsets,
                "the first change is the whole state"
            );
            assert_eq!(
                change.revision.n, change.number,
                "and has the session's count"
            );
        } else if was_there {
            assert_eq!(
                change.revision.n,
                last.unwrap().n + 1,
                "a later change follows by one"
            );
        }
        let document = match change.kind {
            ChangeKind::Document => Some(GroupDocument::from_json(&change.payload).unwrap()),
            ChangeKind::Offsets => {
                let mut document = held.and_then(|(_, document)| document).unwrap();
                document.apply(change.revision, &change.payload).unwrap();
                Some(document)
            }
            ChangeKind::Removed => None,
        };
        assert!(
            document
                .as_ref()
                .is_none_or(|document| document.revision == change.revision)
        );
        self.disk.insert(group, (change.revision, document));
    }

    fn check(&mut self, group: usize) {
        let stored = self
            .disk
            .get(&group)
            .and_then(|(_, document)| document.as_ref());
        if self.manager.is_loaded(GROUPS[group]) {
            let held = self.manager.document(GROUPS[group]);
            assert_eq!(
                stored,
                held.as_ref(),
                "the journal replayed is what the core holds"
            );
        }
        let pending = self.manager.pending_change(GROUPS[group]);
        assert!(pending.is_none_or(|change| change > self.durable && change <= self.last_change));
        let described = self.describe(group);
        let present = self.manager.status(GROUPS[group]) == Status::Present;
        assert_eq!(described.error_code.is_ok(), present);
        let ids: BTreeSet<&str> = described
            .members
            .iter()
            .map(|member| member.member_id.as_str())
            .collect();
        assert_eq!(
            ids.len(),
            described.members.len(),
            "a member is listed once"
        );
    }

    /// When all groups leave, nobody waits any longer.
    fn end(&mut self) {
        for group in 0..GROUPS.len() {
            self.unload(group);
        }
        assert!(self.asked.is_empty(), "every request has its reply");
        assert_eq!(self.manager.next_timeout(), None, "no timer is left");
    }
}

fn check_join(version: i16, caller_had_id: bool, response: &JoinGroupResponse) {
    assert_eq!(
        response.protocol_name.is_none(),
        version >= 7 && !response.error_code.is_ok()
    );
    if !response.error_code.is_ok() {
        assert_eq!(response.generation_id, -1);
        assert!(response.members.is_empty() && response.leader.is_empty());
        let new_id = response.error_code == ErrorCode::MEMBER_ID_REQUIRED;
        assert!(!new_id || (version >= 4 && !caller_had_id && !response.member_id.is_empty()));
        return;
    }
    assert!(response.generation_id >= 1);
    assert!(!response.member_id.is_empty());
    let leads = response.leader == response.member_id;
    assert_eq!(
        leads,
        !response.members.is_empty(),
        "the leader, and it alone, gets the members"
    );
    if leads {
        let ids: BTreeSet<&str> = response
            .members
            .iter()
            .map(|member| member.member_id.as_str())
            .collect();
        assert_eq!(ids.len(), response.members.len(), "a member is listed once");
        assert!(ids.contains(response.member_id.as_str()));
    }
    assert!(!response.skip_assignment || (leads && version >= 9));
}

fn subscription(topic: &str) -> Bytes {
    let mut bytes = vec![0, 0, 0, 0, 0, 1, 0, topic.len() as u8];
    bytes.extend(topic.as_bytes());
    bytes.extend((-1i32).to_be_bytes());
    bytes.into()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_request_has_one_reply_and_the_journal_replayed_is_what_the_core_holds(
        delay_ms in prop::sample::select(vec![0, 3_000]),
        ops in prop::collection::vec(op(), 1..100),
    ) {
        let mut world = World::new(GroupConfig {
            group_initial_rebalance_delay_ms: delay_ms,
            group_max_size: MAX_SIZE,
            offset_metadata_max_bytes: 8,
            offsets_retention_minutes: 10,
            ..GroupConfig::default()
        });
        for (group, op) in &ops {
            world.play(*group, op);
        }
        world.end();
    }

    #[test]
    fn no_bytes_make_a_document_or_a_delta_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut version_first = vec![1];
        version_first.extend(&bytes);
        for bytes in [&bytes, &version_first] {
            let _ = GroupDocument::from_json(bytes);
            let mut document = empty_document();
            if document.apply(Revision { term: 1, n: 2 }, bytes).is_err() {
                prop_assert_eq!(document.revision.n, 1);
            }
        }
    }
}

fn empty_document() -> GroupDocument {
    let json = r#"{"format": 1, "group_id": "g", "revision": {"term": 1, "n": 1}, "offsets": {}, "state": {"classic":
        {"state": "Empty", "state_timestamp": 0, "generation": 0, "protocol_type": null, "protocol_name": null,
        "leader": null, "members": []}}}"#;
    GroupDocument::from_json(json.as_bytes()).unwrap()
}
