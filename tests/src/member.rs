//! A classic member with a connection of its own, and what a client without membership asks of a group.

use bytes::Bytes;
use kaas_wire::ErrorCode;
use kaas_wire::message::encode_versioned;
use kaas_wire::messages::consumer_protocol::ConsumerProtocolSubscription;
use kaas_wire::messages::delete_groups::DeleteGroupsRequest;
use kaas_wire::messages::describe_groups::{DescribeGroupsRequest, DescribedGroup};
use kaas_wire::messages::heartbeat::HeartbeatRequest;
use kaas_wire::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
};
use kaas_wire::messages::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberIdentity};
use kaas_wire::messages::list_groups::{ListGroupsRequest, ListedGroup};
use kaas_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kaas_wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
};
use kaas_wire::messages::sync_group::{
    SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse,
};

use crate::broker::Broker;
use crate::connection::{Connection, Sent};
use crate::time::{SOON, eventually};

/// The metadata of a consumer that subscribes to `topics`.
pub fn subscription(topics: &[&str]) -> Bytes {
    let subscription = ConsumerProtocolSubscription {
        topics: topics.iter().map(|&topic| topic.to_owned()).collect(),
        ..ConsumerProtocolSubscription::default()
    };
    encode_versioned(&subscription, 1)
}

/// A member, or who wants to become one. `join` holds what it asks with; the id is filled in as it is given.
pub struct Member {
    pub connection: Connection,
    pub join: JoinGroupRequest,
    pub version: i16,
    pub generation: i32,
    pub leader: String,
}

impl Member {
    /// A consumer of the topic `t` with assignor `range`, with timeouts that no test reaches.
    pub fn new(broker: &Broker, group: &str) -> Member {
        Member {
            connection: broker.connect(),
            join: JoinGroupRequest {
                group_id: group.to_owned(),
                session_timeout_ms: 60_000,
                rebalance_timeout_ms: 60_000,
                protocol_type: "consumer".to_owned(),
                protocols: vec![JoinGroupRequestProtocol {
                    name: "range".to_owned(),
                    metadata: subscription(&["t"]),
                }],
                ..JoinGroupRequest::default()
            },
            version: 9,
            generation: -1,
            leader: String::new(),
        }
    }

    pub fn instance(mut self, instance: &str) -> Member {
        self.join.group_instance_id = Some(instance.to_owned());
        self
    }

    pub fn timeouts(mut self, session_ms: i32, rebalance_ms: i32) -> Member {
        self.join.session_timeout_ms = session_ms;
        self.join.rebalance_timeout_ms = rebalance_ms;
        self
    }

    pub fn version(mut self, version: i16) -> Member {
        self.version = version;
        self
    }

    pub fn id(&self) -> &str {
        &self.join.member_id
    }

    pub fn is_leader(&self) -> bool {
        self.leader == self.join.member_id
    }

    /// Takes an id if it has none and needs one; it is no member before it joins with it.
    pub fn reserve(&mut self) {
        let response = self.connection.call(self.version, &self.join);
        assert_eq!(response.error_code, ErrorCode::MEMBER_ID_REQUIRED);
        assert!(!response.member_id.is_empty());
        self.join.member_id = response.member_id;
    }

    /// Sends JoinGroup, with an id taken before where one is needed.
    pub fn send_join(&mut self) -> Sent<JoinGroupRequest> {
        let takes_id = self.version >= 4
            && self.join.member_id.is_empty()
            && self.join.group_instance_id.is_none();
        if takes_id {
            self.reserve();
        }
        self.connection.send(self.version, &self.join)
    }

    /// Takes the answer, which must be a success.
    pub fn joined(&mut self, sent: Sent<JoinGroupRequest>) -> JoinGroupResponse {
        let response = self.connection.receive(sent);
        assert_eq!(response.error_code, ErrorCode::NONE, "{response:?}");
        // What every success says, whatever happened before (A17).
        assert!(response.generation_id >= 1);
        let chosen = response.protocol_name.as_deref();
        let offered = &self.join.protocols;
        assert!(
            offered
                .iter()
                .any(|offer| Some(offer.name.as_str()) == chosen)
        );
        let leads = response.leader == response.member_id;
        assert_ne!(
            leads,
            response.members.is_empty(),
            "only the leader is told the members"
        );
        self.join.member_id = response.member_id.clone();
        self.generation = response.generation_id;
        self.leader = response.leader.clone();
        response
    }

    /// Joins; returns when the round is complete.
    pub fn enter(&mut self) -> JoinGroupResponse {
        let sent = self.send_join();
        self.joined(sent)
    }

    pub fn sync_request(&self, assignments: &[(&str, &[u8])]) -> SyncGroupRequest {
        SyncGroupRequest {
            group_id: self.join.group_id.clone(),
            generation_id: self.generation,
            member_id: self.join.member_id.clone(),
            group_instance_id: self.join.group_instance_id.clone(),
            assignments: assignments
                .iter()
                .map(|(member, assignment)| SyncGroupRequestAssignment {
                    member_id: (*member).to_owned(),
                    assignment: Bytes::copy_from_slice(assignment),
                })
                .collect(),
            ..SyncGroupRequest::default()
        }
    }

    pub fn send_sync(&mut self, assignments: &[(&str, &[u8])]) -> Sent<SyncGroupRequest> {
        let request = self.sync_request(assignments);
        self.connection.send(4, &request)
    }

    pub fn sync(&mut self, assignments: &[(&str, &[u8])]) -> SyncGroupResponse {
        let sent = self.send_sync(assignments);
        self.connection.receive(sent)
    }

    /// Joins alone and hands itself an assignment that names it.
    pub fn enter_alone(&mut self) {
        self.enter();
        let id = self.join.member_id.clone();
        let response = self.sync(&[(&id, id.as_bytes())]);
        assert_eq!(response.error_code, ErrorCode::NONE);
    }

    pub fn heartbeat(&mut self) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: self.join.group_id.clone(),
            generation_id: self.generation,
            member_id: self.join.member_id.clone(),
            group_instance_id: self.join.group_instance_id.clone(),
        };
        self.connection.call(4, &request).error_code
    }

    pub fn commit_request(&self, topic: &str, partition: i32, offset: i64) -> OffsetCommitRequest {
        OffsetCommitRequest {
            group_id: self.join.group_id.clone(),
            generation_id_or_member_epoch: self.generation,
            member_id: self.join.member_id.clone(),
            group_instance_id: self.join.group_instance_id.clone(),
            topics: vec![committed_topic(topic, &[(partition, offset)])],
            ..OffsetCommitRequest::default()
        }
    }

    pub fn commit(&mut self, topic: &str, partition: i32, offset: i64) -> ErrorCode {
        let request = self.commit_request(topic, partition, offset);
        let response = self.connection.call(8, &request);
        response.topics[0].partitions[0].error_code
    }

    pub fn leave(&mut self) -> LeaveGroupResponse {
        let request = LeaveGroupRequest {
            group_id: self.join.group_id.clone(),
            members: vec![MemberIdentity {
                member_id: self.join.member_id.clone(),
                group_instance_id: self.join.group_instance_id.clone(),
                ..MemberIdentity::default()
            }],
            ..LeaveGroupRequest::default()
        };
        self.connection.call(5, &request)
    }
}

/// Lets all of them, which are new, become one generation and get their assignments: each its own id.
pub fn enter_together(members: &mut [&mut Member]) {
    let (first, others) = members.split_first_mut().expect("there are members");
    first.enter_alone();
    let mut sent: Vec<Sent<JoinGroupRequest>> =
        others.iter_mut().map(|member| member.send_join()).collect();
    // The round is complete when the one who was there before has come again, which it must not do too early.
    wait_for_members(
        &mut first.connection,
        &first.join.group_id,
        others.len() + 1,
    );
    sent.insert(0, first.send_join());
    for (member, sent) in members.iter_mut().zip(sent) {
        member.joined(sent);
    }
    sync_together(members);
}

/// The second half of `enter_together`.
pub fn sync_together(members: &mut [&mut Member]) {
    let ids: Vec<String> = members
        .iter()
        .map(|member| member.id().to_owned())
        .collect();
    let assignments: Vec<(&str, &[u8])> =
        ids.iter().map(|id| (id.as_str(), id.as_bytes())).collect();
    let mut sent = Vec::new();
    for member in members.iter_mut() {
        let handed_in = if member.is_leader() {
            assignments.as_slice()
        } else {
            &[]
        };
        sent.push(member.send_sync(handed_in));
    }
    for (member, sent) in members.iter_mut().zip(sent) {
        let response = member.connection.receive(sent);
        assert_eq!(response.error_code, ErrorCode::NONE);
        assert_eq!(response.assignment, member.id().as_bytes());
    }
}

/// Partitions and offsets to commit.
pub fn committed_topic(topic: &str, offsets: &[(i32, i64)]) -> OffsetCommitRequestTopic {
    OffsetCommitRequestTopic {
        name: topic.to_owned(),
        partitions: offsets
            .iter()
            .map(
                |&(partition_index, committed_offset)| OffsetCommitRequestPartition {
                    partition_index,
                    committed_offset,
                    ..OffsetCommitRequestPartition::default()
                },
            )
            .collect(),
        ..OffsetCommitRequestTopic::default()
    }
}

/// A commit by someone who is no member.
pub fn simple_commit_request(
    group: &str,
    topic: &str,
    offsets: &[(i32, i64)],
) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: group.to_owned(),
        topics: vec![committed_topic(topic, offsets)],
        ..OffsetCommitRequest::default()
    }
}

/// Commits one offset as someone who is no member.
pub fn simple_commit(
    connection: &mut Connection,
    group: &str,
    topic: &str,
    partition: i32,
    offset: i64,
) -> ErrorCode {
    let request = simple_commit_request(group, topic, &[(partition, offset)]);
    let response = connection.call(8, &request);
    response.topics[0].partitions[0].error_code
}

/// What a group has committed; all of it if `topics` is `None`.
pub fn fetch_offsets(
    connection: &mut Connection,
    group: &str,
    topics: Option<&[(&str, &[i32])]>,
) -> OffsetFetchResponseGroup {
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics: topics.map(|topics| {
                topics
                    .iter()
                    .map(|&(name, partitions)| OffsetFetchRequestTopics {
                        name: name.to_owned(),
                        partition_indexes: partitions.to_vec(),
                        ..OffsetFetchRequestTopics::default()
                    })
                    .collect()
            }),
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    };
    connection.call(8, &request).groups.remove(0)
}

/// One committed offset; -1 is none.
pub fn committed(connection: &mut Connection, group: &str, topic: &str, partition: i32) -> i64 {
    let group = fetch_offsets(connection, group, Some(&[(topic, &[partition])]));
    assert_eq!(group.error_code, ErrorCode::NONE);
    let found = &group.topics[0].partitions[0];
    assert_eq!(found.error_code, ErrorCode::NONE);
    found.committed_offset
}

pub fn describe(connection: &mut Connection, version: i16, group: &str) -> DescribedGroup {
    let request = DescribeGroupsRequest {
        groups: vec![group.to_owned()],
        ..DescribeGroupsRequest::default()
    };
    connection.call(version, &request).groups.remove(0)
}

pub fn state(connection: &mut Connection, group: &str) -> String {
    describe(connection, 5, group).group_state
}

/// Waits until a group is in a state: what another connection sent may still be on its way.
pub fn wait_for_state(connection: &mut Connection, group: &str, expected: &str) {
    eventually(SOON, &format!("{group} is {expected}"), || {
        (state(connection, group) == expected).then_some(())
    });
}

/// Waits until a group has as many members.
pub fn wait_for_members(connection: &mut Connection, group: &str, count: usize) {
    eventually(SOON, &format!("{group} has {count} members"), || {
        (describe(connection, 5, group).members.len() == count).then_some(())
    });
}

/// The entry of a group in the list, if it is there; it must not be there twice.
pub fn listed(connection: &mut Connection, group: &str) -> Option<ListedGroup> {
    let response = connection.call(5, &ListGroupsRequest::default());
    assert_eq!(response.error_code, ErrorCode::NONE);
    let mut found = response
        .groups
        .into_iter()
        .filter(|listed| listed.group_id == group);
    let first = found.next();
    assert!(found.next().is_none(), "{group} is listed twice");
    first
}

pub fn delete_group(connection: &mut Connection, group: &str) -> ErrorCode {
    let request = DeleteGroupsRequest {
        groups_names: vec![group.to_owned()],
    };
    connection.call(2, &request).results[0].error_code
}

/// A committed offset as any version of OffsetFetch tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetRow {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    /// -1 before version 5.
    pub leader_epoch: i32,
    pub metadata: Option<String>,
    pub error_code: ErrorCode,
}

/// Asks by names, or for everything, in any version with names; the error is that of the whole group.
pub fn fetch_rows(
    connection: &mut Connection,
    version: i16,
    group: &str,
    topics: Option<&[(&str, &[i32])]>,
) -> (ErrorCode, Vec<OffsetRow>) {
    let request = OffsetFetchRequest {
        group_id: group.to_owned(),
        topics: topics.map(|topics| {
            topics
                .iter()
                .map(|&(name, partitions)| OffsetFetchRequestTopic {
                    name: name.to_owned(),
                    partition_indexes: partitions.to_vec(),
                })
                .collect()
        }),
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics: topics.map(|topics| {
                topics
                    .iter()
                    .map(|&(name, partitions)| OffsetFetchRequestTopics {
                        name: name.to_owned(),
                        partition_indexes: partitions.to_vec(),
                        ..OffsetFetchRequestTopics::default()
                    })
                    .collect()
            }),
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    };
    let response = connection.call(version, &request);
    let mut rows = Vec::new();
    if version < 8 {
        for topic in &response.topics {
            for row in &topic.partitions {
                rows.push(OffsetRow {
                    topic: topic.name.clone(),
                    partition: row.partition_index,
                    offset: row.committed_offset,
                    leader_epoch: row.committed_leader_epoch,
                    metadata: row.metadata.clone(),
                    error_code: row.error_code,
                });
            }
        }
        return (response.error_code, rows);
    }
    let group = &response.groups[0];
    for topic in &group.topics {
        for row in &topic.partitions {
            rows.push(OffsetRow {
                topic: topic.name.clone(),
                partition: row.partition_index,
                offset: row.committed_offset,
                leader_epoch: row.committed_leader_epoch,
                metadata: row.metadata.clone(),
                error_code: row.error_code,
            });
        }
    }
    (group.error_code, rows)
}
