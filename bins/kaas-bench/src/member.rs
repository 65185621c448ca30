//! A member of a consumer group, with a connection of its own.
//!
//! The leader gives every member an assignment that names the member and the generation, so that each can tell whether
//! it was given its own.

use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kaas_wire::message::{decode_versioned, encode_versioned};
use kaas_wire::messages::consumer_protocol::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, TopicPartition,
};
use kaas_wire::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use kaas_wire::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
};
use kaas_wire::messages::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberIdentity};
use kaas_wire::messages::sync_group::{
    SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse,
};
use kaas_wire::{ApiKey, ErrorCode};
use tokio::time::sleep;

use crate::client::{Answer, Connection, Failure, Frame};
use crate::clock;
use crate::load::Load;
use crate::measure::Measure;

const PROTOCOL_TYPE: &str = "consumer";
const PROTOCOL: &str = "range";
const SESSION_TIMEOUT_MS: i32 = 45_000;
const REBALANCE_TIMEOUT_MS: i32 = 300_000;
const RETRY_AFTER: Duration = Duration::from_millis(50);

pub struct Member {
    pub connection: Connection,
    pub group: Rc<str>,
    pub topic: Rc<str>,
    pub id: String,
    pub generation: i32,
    pub leads: bool,
}

/// When the steps of joining were done.
#[derive(Clone, Copy)]
pub struct Joined {
    pub id_given: Instant,
    pub joined: Instant,
    pub synced: Instant,
}

impl Member {
    pub fn new(connection: Connection, group: Rc<str>, topic: Rc<str>) -> Member {
        Member {
            connection,
            group,
            topic,
            id: String::new(),
            generation: -1,
            leads: false,
        }
    }

    /// Joins and syncs until the member is in a stable generation.
    pub async fn join(&mut self, measure: &Measure) -> Result<Joined, Failure> {
        let mut id_given = clock::now();
        loop {
            let joined: JoinGroupResponse = self.connection.call(&self.join_request()).await?;
            match joined.error_code {
                ErrorCode::NONE => {}
                ErrorCode::MEMBER_ID_REQUIRED => {
                    self.id = joined.member_id;
                    id_given = clock::now();
                    continue;
                }
                code => {
                    self.recover(ApiKey::JOIN_GROUP, code, measure).await?;
                    continue;
                }
            }
            let joined_at = clock::now();
            self.id.clone_from(&joined.member_id);
            if joined.generation_id <= self.generation {
                measure.wrong(|| {
                    format!(
                        "{}: generation {} follows {}",
                        self.group, joined.generation_id, self.generation
                    )
                });
            }
            self.generation = joined.generation_id;
            self.leads = joined.leader == joined.member_id;
            if self.leads == joined.members.is_empty() {
                measure.wrong(|| {
                    format!(
                        "{}: {} members were told to {}",
                        self.group,
                        joined.members.len(),
                        self.id
                    )
                });
            }
            let request = self.sync_request(&joined);
            let synced: SyncGroupResponse = self.connection.call(&request).await?;
            if !synced.error_code.is_ok() {
                self.recover(ApiKey::SYNC_GROUP, synced.error_code, measure)
                    .await?;
                continue;
            }
            let assignment: ConsumerProtocolAssignment = decode_versioned(&synced.assignment)?;
            if assignment.user_data != Some(self.mark(&self.id)) {
                measure.wrong(|| {
                    format!(
                        "{} of generation {} was given {:?}",
                        self.id, self.generation, assignment.user_data
                    )
                });
            }
            return Ok(Joined {
                id_given,
                joined: joined_at,
                synced: clock::now(),
            });
        }
    }

    /// Makes ready to join again after an error, or gives up.
    async fn recover(
        &mut self,
        api: ApiKey,
        code: ErrorCode,
        measure: &Measure,
    ) -> Result<(), Failure> {
        match code {
            // A part of rebalancing, not an error.
            ErrorCode::REBALANCE_IN_PROGRESS => return Ok(()),
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION => {
                self.id.clear();
                self.generation = -1;
            }
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS | ErrorCode::COORDINATOR_NOT_AVAILABLE => {
                sleep(RETRY_AFTER).await
            }
            code => return Err(Failure::Refused { api, code }),
        }
        measure.error(api, code);
        Ok(())
    }

    fn join_request(&self) -> JoinGroupRequest {
        let subscription = ConsumerProtocolSubscription {
            topics: vec![self.topic.to_string()],
            ..Default::default()
        };
        JoinGroupRequest {
            group_id: self.group.to_string(),
            session_timeout_ms: SESSION_TIMEOUT_MS,
            rebalance_timeout_ms: REBALANCE_TIMEOUT_MS,
            member_id: self.id.clone(),
            protocol_type: PROTOCOL_TYPE.to_owned(),
            protocols: vec![JoinGroupRequestProtocol {
                name: PROTOCOL.to_owned(),
                metadata: encode_versioned(&subscription, 1),
            }],
            ..Default::default()
        }
    }

    fn sync_request(&self, joined: &JoinGroupResponse) -> SyncGroupRequest {
        let assignments = joined.members.iter().enumerate().map(|(index, member)| {
            let assigned = TopicPartition {
                topic: self.topic.to_string(),
                partitions: vec![index as i32],
            };
            let assignment = ConsumerProtocolAssignment {
                assigned_partitions: vec![assigned],
                user_data: Some(self.mark(&member.member_id)),
            };
            SyncGroupRequestAssignment {
                member_id: member.member_id.clone(),
                assignment: encode_versioned(&assignment, 1),
            }
        });
        SyncGroupRequest {
            group_id: self.group.to_string(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: Some(PROTOCOL.to_owned()),
            assignments: assignments.collect(),
            ..Default::default()
        }
    }

    /// What the leader writes into the assignment of a member.
    fn mark(&self, id: &str) -> Bytes {
        Bytes::from(format!("{id} {}", self.generation))
    }

    pub fn heartbeat_frame(&self) -> Result<Frame, Failure> {
        self.connection.frame(&HeartbeatRequest {
            group_id: self.group.to_string(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            group_instance_id: None,
        })
    }

    pub async fn heartbeat(&mut self) -> Result<ErrorCode, Failure> {
        let frame = self.heartbeat_frame()?;
        Ok(self
            .connection
            .exchange(&frame)
            .await?
            .decode::<HeartbeatResponse>()?
            .error_code)
    }

    pub async fn leave(&mut self, measure: &Measure) -> Result<(), Failure> {
        let identity = MemberIdentity {
            member_id: self.id.clone(),
            ..Default::default()
        };
        let request = LeaveGroupRequest {
            group_id: self.group.to_string(),
            member_id: self.id.clone(),
            members: vec![identity],
        };
        let left: LeaveGroupResponse = self.connection.call(&request).await?;
        let codes = left.members.iter().map(|member| member.error_code);
        if let Some(code) = codes.chain([left.error_code]).find(|code| !code.is_ok()) {
            measure.error(ApiKey::LEAVE_GROUP, code);
        }
        self.id.clear();
        self.generation = -1;
        self.leads = false;
        Ok(())
    }
}

/// Tells where the members of one group do not agree on what a stable group is.
pub fn check_stable<'a>(members: impl Iterator<Item = &'a Member> + Clone, measure: &Measure) {
    let Some(first) = members.clone().next() else {
        return;
    };
    if let Some(other) = members
        .clone()
        .find(|member| member.generation != first.generation)
    {
        measure.wrong(|| {
            format!(
                "{}: members are in the generations {} and {}",
                first.group, first.generation, other.generation
            )
        });
    }
    let leaders = members.filter(|member| member.leads).count();
    if leaders != 1 {
        measure.wrong(|| format!("{}: {leaders} members lead", first.group));
    }
}

/// The heartbeats of a member of a group that nobody joins or leaves.
pub struct Heartbeats {
    frame: Frame,
    /// The answer when all is well.
    expected: Option<Bytes>,
}

impl Heartbeats {
    pub fn new(member: &Member) -> Result<Heartbeats, Failure> {
        Ok(Heartbeats {
            frame: member.heartbeat_frame()?,
            expected: None,
        })
    }
}

impl Load for Heartbeats {
    fn push(&mut self, connection: &mut Connection) {
        connection.push(&self.frame);
    }

    fn check(&mut self, answer: &Answer, measure: &Measure) -> Result<bool, Failure> {
        if self
            .expected
            .as_ref()
            .is_some_and(|expected| *expected == answer.body)
        {
            return Ok(true);
        }
        let code = answer.decode::<HeartbeatResponse>()?.error_code;
        if !code.is_ok() {
            measure.error(ApiKey::HEARTBEAT, code);
            measure.wrong(|| format!("a heartbeat in a stable group was answered {code}"));
            return Ok(false);
        }
        self.expected = Some(Bytes::copy_from_slice(&answer.body));
        Ok(true)
    }
}
