//! The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup and the timers between them. One function
//! for each event; the rules are those of the spec (`CG-…`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use kaas_wire::ErrorCode;
use kaas_wire::messages::describe_groups::{DescribedGroup, DescribedGroupMember};
use kaas_wire::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use kaas_wire::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse, JoinGroupResponseMember,
};
use kaas_wire::messages::leave_group::{
    LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse,
};
use kaas_wire::messages::offset_commit::OffsetCommitRequest;
use kaas_wire::messages::sync_group::{
    SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse,
};

use super::members::{Members, NEVER, NewMember, ParkedJoin, Protocol, Removed, Seat};
use super::{Caller, Cx, Retention};
use crate::document::{ClassicDocument, DocumentError, MemberDocument, ProtocolDocument};
use crate::effect::{Effect, NAMES_SHOWN, RebalanceReason, RemovalReason};
use crate::reply::{join_error, leave_error, protocol_name_for, sync_error};
use crate::subscription::subscribed_topics;
use crate::{GroupConfig, Now, Output, Reply};

/// How long a new member may be parked before it is given up (CG-74).
const NEW_MEMBER_JOIN_TIMEOUT_MS: u64 = 300_000;

/// How often at most a join phase of absent static members is looked at again.
const ABSENT_MEMBERS_CHECK_MS: u64 = 100;

/// Ids handed out and not used yet, in one group. Beyond it the one that would expire first is dropped early.
const PENDING_JOINS_MAX: usize = 10_000;

/// The protocol type whose metadata the broker may read.
const CONSUMER_PROTOCOL_TYPE: &str = "consumer";

/// ```text
///             a member joins                          all joined, or time is up
///   Empty ───────────────────▶ PreparingRebalance ──────────────────────────▶ CompletingRebalance
///     ▲                          │      ▲    ▲                                   │        │
///     └──────────────────────────┘      │    └───────────────────────────────────┘        │ the leader syncs
///       nobody is left                  │      a member joins, leaves, changes or         ▼
///                                       │      expires, or does not sync in time        Stable
///                                       └─────────────────────────────────────────────────┘
/// ```
/// Kafka's `Dead` is a group that is not in memory: it has no state here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

impl State {
    pub const ALL: [State; 4] = [
        State::Empty,
        State::PreparingRebalance,
        State::CompletingRebalance,
        State::Stable,
    ];

    pub fn name(self) -> &'static str {
        match self {
            State::Empty => "Empty",
            State::PreparingRebalance => "PreparingRebalance",
            State::CompletingRebalance => "CompletingRebalance",
            State::Stable => "Stable",
        }
    }
}

pub(crate) struct ClassicGroup<R> {
    state: State,
    /// Milliseconds since 1970 of the last change of state; none if it was loaded from a document without.
    state_timestamp: Option<i64>,
    generation: i32,
    protocol_type: Option<String>,
    protocol_name: Option<String>,
    leader: Option<Arc<str>>,
    members: Members<R>,
    /// Ids handed out with MEMBER_ID_REQUIRED, with the moment they expire.
    pending_joins: BTreeMap<Arc<str>, u64>,
    /// Topics of the members' subscriptions when the last join phase ended; none if unknown (OF-60).
    subscribed: Option<BTreeSet<String>>,
    join_phase: JoinPhase,
    /// When members that have not synced are given up, [`NEVER`] if nobody is awaited.
    sync_deadline: u64,
    /// Not after the earliest deadline of this group.
    wake: u64,
    /// While a rebalance is under way: the last state that was worth storing, as it was before the first cause of the
    /// rebalance. A member that expired is still in it, so that after a reload it expires again and its partitions move.
    last_stable: Option<Box<ClassicDocument>>,
    rebalance_started_ms: u64,
}

/// The timer of PreparingRebalance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JoinPhase {
    Closed,
    /// From Empty: goes on while members keep coming, for `remaining_ms` more after this delay (CG-70 to CG-72).
    Initial {
        deadline: u64,
        delay_ms: u64,
        remaining_ms: u64,
        new_member_added: bool,
    },
    Open {
        deadline: u64,
    },
}

impl JoinPhase {
    fn deadline(self) -> u64 {
        match self {
            JoinPhase::Closed => NEVER,
            JoinPhase::Initial { deadline, .. } | JoinPhase::Open { deadline } => deadline,
        }
    }
}

impl<R> ClassicGroup<R> {
    pub fn new(now: Now) -> ClassicGroup<R> {
        ClassicGroup {
            state: State::Empty,
            state_timestamp: Some(now.wall_ms),
            generation: 0,
            protocol_type: None,
            protocol_name: None,
            leader: None,
            members: Members::new(),
            pending_joins: BTreeMap::new(),
            subscribed: None,
            join_phase: JoinPhase::Closed,
            sync_deadline: NEVER,
            wake: NEVER,
            last_stable: None,
            rebalance_started_ms: 0,
        }
    }

    // ---- JoinGroup (CG-38 to CG-68)

    pub fn join(&mut self, cx: &mut Cx<'_, R>, caller: Caller<'_, R>, request: JoinGroupRequest) {
        if !self.has_room(&request.member_id, cx.config) {
            let refusal = join_error(caller.version, ErrorCode::GROUP_MAX_SIZE_REACHED, "");
            cx.reply(caller.reply_to, Reply::JoinGroup(refusal));
            if let Some(seat) = self.members.seat(&request.member_id) {
                self.remove_member(cx, seat, RemovalReason::GroupFull);
                self.complete_join_phase_if_all_joined(cx);
            }
            return;
        }
        if request.member_id.is_empty() {
            self.join_new(cx, caller, request);
        } else {
            self.join_known(cx, caller, request);
        }
    }

    fn join_new(&mut self, cx: &mut Cx<'_, R>, caller: Caller<'_, R>, request: JoinGroupRequest) {
        if !self.supports(&request) {
            let refusal = join_error(caller.version, ErrorCode::INCONSISTENT_GROUP_PROTOCOL, "");
            cx.reply(caller.reply_to, Reply::JoinGroup(refusal));
            return;
        }
        let prefix = request
            .group_instance_id
            .as_deref()
            .unwrap_or(caller.client_id);
        let new_id: Arc<str> = format!("{prefix}-{}", caller.fresh_id).into();
        match request
            .group_instance_id
            .as_deref()
            .map(|instance_id| self.members.seat_of_instance(instance_id))
        {
            Some(Some(seat)) => self.replace_static(cx, caller, seat, new_id, request),
            None if caller.version >= 4 => {
                let answer = join_error(caller.version, ErrorCode::MEMBER_ID_REQUIRED, &new_id);
                cx.reply_at_once(caller.reply_to, Reply::JoinGroup(answer));
                self.reserve_id(cx.now, new_id, request.session_timeout_ms);
            }
            Some(None) | None => self.add_member(cx, caller, new_id, request),
        }
    }

    fn join_known(&mut self, cx: &mut Cx<'_, R>, caller: Caller<'_, R>, request: JoinGroupRequest) {
        if !self.supports(&request) {
            return self.refuse_join(
                cx,
                caller,
                ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
                &request.member_id,
            );
        }
        if let Some((id, _)) = self.pending_joins.get_key_value(&*request.member_id) {
            if request.group_instance_id.is_some() {
                // A static member never gets an id to join with (CG-54).
                return self.refuse_join(cx, caller, ErrorCode::UNKNOWN_SERVER_ERROR, "");
            }
            let id = id.clone();
            self.pending_joins.remove(&id);
            return self.add_member(cx, caller, id, request);
        }
        let seat = match self
            .members
            .identify(&request.member_id, request.group_instance_id.as_deref())
        {
            Ok(seat) => seat,
            Err(error) => return self.refuse_join(cx, caller, error, &request.member_id),
        };
        let leads = self.leads(seat);
        let rebalance_timeout_ms = rebalance_timeout_ms(caller.version, &request);
        let protocols = offered_protocols(request.protocols);
        let changed = !self.members[seat].offers(&protocols);
        let offer = Offer {
            protocols,
            session_timeout_ms: request.session_timeout_ms,
            rebalance_timeout_ms,
        };
        let reason = client_reason(request.reason);
        match self.state {
            State::PreparingRebalance => {
                self.update_member(seat, offer);
                self.park_join(cx, seat, caller);
                self.complete_join_phase_if_all_joined(cx);
            }
            State::CompletingRebalance | State::Stable if changed => {
                self.keep_last_stable();
                self.update_member(seat, offer);
                self.park_join(cx, seat, caller);
                self.start_rebalance(cx, RebalanceReason::MemberChanged, reason);
            }
            State::Stable if leads => {
                self.keep_last_stable();
                self.update_member(seat, offer);
                self.park_join(cx, seat, caller);
                self.start_rebalance(cx, RebalanceReason::LeaderRejoined, reason);
            }
            State::CompletingRebalance | State::Stable => {
                let members = if leads {
                    self.members_for_leader()
                } else {
                    Vec::new()
                };
                let answer = self.join_answer(seat, caller.version, members);
                cx.reply(caller.reply_to, Reply::JoinGroup(answer));
            }
            State::Empty => unreachable!("an empty group has no member that could rejoin"),
        }
    }

    fn refuse_join(
        &mut self,
        cx: &mut Cx<'_, R>,
        caller: Caller<'_, R>,
        error: ErrorCode,
        member_id: &str,
    ) {
        cx.reply(
            caller.reply_to,
            Reply::JoinGroup(join_error(caller.version, error, member_id)),
        );
    }

    /// CG-110 to CG-113.
    fn has_room(&self, member_id: &str, config: &GroupConfig) -> bool {
        let max = usize::try_from(config.group_max_size).unwrap_or(0);
        let seat = self.members.seat(member_id);
        match self.state {
            State::Empty => true,
            State::PreparingRebalance => {
                seat.is_some_and(|seat| self.members[seat].joins()) || self.members.joining() < max
            }
            State::CompletingRebalance | State::Stable => {
                seat.is_some() || self.members.len() < max
            }
        }
    }

    /// CG-63.
    fn supports(&self, request: &JoinGroupRequest) -> bool {
        if self.state == State::Empty {
            return !request.protocol_type.is_empty() && !request.protocols.is_empty();
        }
        self.protocol_type.as_ref() == Some(&request.protocol_type)
            && request
                .protocols
                .iter()
                .any(|protocol| self.members.everyone_supports(&protocol.name))
    }

    fn reserve_id(&mut self, now: Now, id: Arc<str>, session_timeout_ms: i32) {
        if self.pending_joins.len() >= PENDING_JOINS_MAX {
            let first = self
                .pending_joins
                .iter()
                .min_by_key(|(_, deadline)| **deadline)
                .map(|(id, _)| id.clone());
            self.pending_joins
                .remove(&first.expect("a full table has a first entry"));
        }
        let deadline = self.wake_at(after(now, session_timeout_ms));
        self.pending_joins.insert(id, deadline);
    }

    /// CG-60.
    fn add_member(
        &mut self,
        cx: &mut Cx<'_, R>,
        caller: Caller<'_, R>,
        id: Arc<str>,
        request: JoinGroupRequest,
    ) {
        self.keep_last_stable();
        let rebalance_timeout_ms = rebalance_timeout_ms(caller.version, &request);
        if self.members.is_empty() {
            self.protocol_type = Some(request.protocol_type);
        }
        if let JoinPhase::Initial {
            new_member_added, ..
        } = &mut self.join_phase
        {
            *new_member_added = true;
        }
        let instance_id: Option<Arc<str>> = request.group_instance_id.map(Arc::from);
        let session_deadline = self.wake_at(cx.now.mono_ms + NEW_MEMBER_JOIN_TIMEOUT_MS);
        self.members.add(NewMember {
            id: id.clone(),
            instance_id: instance_id.clone(),
            client_id: caller.client_id.into(),
            client_host: caller.client_host.into(),
            rebalance_timeout_ms,
            session_timeout_ms: request.session_timeout_ms,
            protocols: offered_protocols(request.protocols),
            assignment: Bytes::new(),
            join: Some(ParkedJoin {
                reply_to: caller.reply_to,
                version: caller.version,
            }),
            session_deadline,
        });
        self.leader.get_or_insert_with(|| id.clone());
        cx.effect(Effect::MemberAdded {
            group_id: cx.group_id.clone(),
            member_id: id,
            instance_id,
            client_id: caller.client_id.to_owned(),
            client_host: caller.client_host.to_owned(),
            members: self.members.len(),
        });
        if self.state == State::PreparingRebalance {
            self.complete_join_phase_if_all_joined(cx);
        } else {
            self.start_rebalance(
                cx,
                RebalanceReason::NewMember,
                client_reason(request.reason),
            );
        }
    }

    fn update_member(&mut self, seat: Seat, offer: Offer) {
        self.members.set_protocols(seat, offer.protocols);
        let member = self.members.get_mut(seat);
        member.session_timeout_ms = offer.session_timeout_ms;
        member.rebalance_timeout_ms = offer.rebalance_timeout_ms;
    }

    /// An earlier JoinGroup of the same member is told to try again (CG-64).
    fn park_join(&mut self, cx: &mut Cx<'_, R>, seat: Seat, caller: Caller<'_, R>) {
        let join = ParkedJoin {
            reply_to: caller.reply_to,
            version: caller.version,
        };
        if let Some(earlier) = self.members.park_join(seat, join) {
            let member_id = &self.members[seat].id;
            let answer = join_error(earlier.version, ErrorCode::REBALANCE_IN_PROGRESS, member_id);
            cx.reply(earlier.reply_to, Reply::JoinGroup(answer));
        }
    }

    /// A static member is back under a new id (CG-100 to CG-105). If its SyncGroup was awaited, the new id's is: Kafka
    /// goes on waiting for the old id and rebalances for nothing when it does not come (CG-152).
    fn replace_static(
        &mut self,
        cx: &mut Cx<'_, R>,
        caller: Caller<'_, R>,
        seat: Seat,
        new_id: Arc<str>,
        request: JoinGroupRequest,
    ) {
        self.keep_last_stable();
        let old_leader = self.leader.clone();
        let old_id = self.members[seat].id.clone();
        let (join, sync) = self.members.rename(seat, new_id.clone());
        if let Some(join) = join {
            let answer = join_error(join.version, ErrorCode::FENCED_INSTANCE_ID, &old_id);
            cx.reply(join.reply_to, Reply::JoinGroup(answer));
        }
        if let Some(sync) = sync {
            cx.reply(
                sync,
                Reply::SyncGroup(sync_error(ErrorCode::FENCED_INSTANCE_ID)),
            );
        }
        if self.leader.as_ref() == Some(&old_id) {
            self.leader = Some(new_id.clone());
        }
        cx.effect(Effect::StaticMemberReplaced {
            group_id: cx.group_id.clone(),
            instance_id: self.members[seat]
                .instance_id
                .clone()
                .expect("only a static member is replaced"),
            old_member_id: old_id,
            new_member_id: new_id,
        });
        // The timeout of before holds until the next sign of life.
        self.restart_session(cx.now, seat);
        self.members.get_mut(seat).is_new = false;
        let rebalance_timeout_ms = rebalance_timeout_ms(caller.version, &request);
        let offer = Offer {
            protocols: offered_protocols(request.protocols),
            session_timeout_ms: request.session_timeout_ms,
            rebalance_timeout_ms,
        };
        self.update_member(seat, offer);
        match self.state {
            State::Stable if self.vote() == self.protocol_name => {
                self.last_stable = None;
                let leads = self.leads(seat);
                let members = if leads && caller.version >= 9 {
                    self.members_for_leader()
                } else {
                    Vec::new()
                };
                let mut answer = self.join_answer(seat, caller.version, members);
                if caller.version >= 9 {
                    answer.skip_assignment = leads;
                } else {
                    // So that a restarted leader takes itself for a follower: it could not skip the assignment (CG-103).
                    answer.leader = old_leader
                        .expect("a stable group has a leader")
                        .as_ref()
                        .to_owned();
                }
                cx.journal();
                cx.reply(caller.reply_to, Reply::JoinGroup(answer));
            }
            State::Stable | State::CompletingRebalance => {
                self.park_join(cx, seat, caller);
                self.start_rebalance(
                    cx,
                    RebalanceReason::StaticMemberReplaced,
                    client_reason(request.reason),
                );
            }
            State::PreparingRebalance => {
                self.park_join(cx, seat, caller);
                self.complete_join_phase_if_all_joined(cx);
            }
            State::Empty => unreachable!("an empty group has no static member"),
        }
    }

    // ---- the rebalance (CG-34 to CG-37, CG-70 to CG-72, CG-77 to CG-87)

    /// CG-35. The caller has called [`Self::keep_last_stable`] before it changed anything.
    fn start_rebalance(
        &mut self,
        cx: &mut Cx<'_, R>,
        reason: RebalanceReason,
        client_reason: Option<String>,
    ) {
        debug_assert!(
            self.last_stable.is_some(),
            "what a rebalance leaves behind is kept"
        );
        if self.state == State::CompletingRebalance {
            self.abandon_sync_phase(cx);
        } else {
            self.rebalance_started_ms = cx.now.mono_ms;
        }
        self.members.await_sync_from_none();
        self.sync_deadline = NEVER;
        let initial = self.state == State::Empty;
        let rebalance_timeout_ms = self.rebalance_timeout_ms();
        let timeout_ms = if initial {
            u64::try_from(cx.config.group_initial_rebalance_delay_ms).unwrap_or(0)
        } else {
            rebalance_timeout_ms
        };
        self.announce_rebalance(cx, reason, client_reason, timeout_ms);
        self.enter(cx.now, State::PreparingRebalance);
        let deadline = self.wake_at(cx.now.mono_ms + timeout_ms);
        if initial {
            let remaining_ms = rebalance_timeout_ms.saturating_sub(timeout_ms);
            self.join_phase = JoinPhase::Initial {
                deadline,
                delay_ms: timeout_ms,
                remaining_ms,
                new_member_added: false,
            };
        } else {
            self.join_phase = JoinPhase::Open { deadline };
            self.complete_join_phase_if_all_joined(cx);
        }
    }

    fn announce_rebalance(
        &self,
        cx: &mut Cx<'_, R>,
        reason: RebalanceReason,
        client_reason: Option<String>,
        timeout_ms: u64,
    ) {
        let waiting = || {
            self.members
                .iter()
                .filter(|member| !member.joins())
                .map(|member| member.id.clone())
        };
        cx.effect(Effect::RebalanceStarted {
            group_id: cx.group_id.clone(),
            generation: self.generation,
            reason,
            client_reason,
            members: self.members.len(),
            waiting_for: waiting()
                .chain(self.pending_joins.keys().cloned())
                .take(NAMES_SHOWN)
                .collect(),
            waiting_count: self.members.len() - self.members.joining() + self.pending_joins.len(),
            timeout_ms,
        });
    }

    /// Assignments that are not out yet are void, and whoever waits for one has to join again.
    fn abandon_sync_phase(&mut self, cx: &mut Cx<'_, R>) {
        for seat in self.members.seats() {
            self.members.get_mut(seat).assignment = Bytes::new();
            if let Some(sync) = self.members.take_sync(seat) {
                self.restart_session(cx.now, seat);
                cx.reply(
                    sync,
                    Reply::SyncGroup(sync_error(ErrorCode::REBALANCE_IN_PROGRESS)),
                );
            }
        }
    }

    /// While PreparingRebalance, but never early in an initial rebalance (CG-66, CG-72).
    fn complete_join_phase_if_all_joined(&mut self, cx: &mut Cx<'_, R>) {
        if matches!(self.join_phase, JoinPhase::Open { .. }) && self.all_joined() {
            self.complete_join_phase(cx);
        }
    }

    /// CG-37.
    fn all_joined(&self) -> bool {
        self.members.joining() == self.members.len() && self.pending_joins.is_empty()
    }

    fn complete_join_phase(&mut self, cx: &mut Cx<'_, R>) {
        debug_assert_eq!(self.state, State::PreparingRebalance);
        for seat in self.members.seats() {
            let member = &self.members[seat];
            if !member.joins() && member.instance_id.is_none() {
                self.remove_member(cx, seat, RemovalReason::DidNotRejoin);
            }
        }
        if !self.members.is_empty() && self.members.joining() == 0 {
            // Only absent static members: they are given time until their sessions end (CG-78).
            let timeout_ms = self.rebalance_timeout_ms().max(ABSENT_MEMBERS_CHECK_MS);
            self.join_phase = JoinPhase::Open {
                deadline: self.wake_at(cx.now.mono_ms + timeout_ms),
            };
            return;
        }
        self.join_phase = JoinPhase::Closed;
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        if self.members.is_empty() {
            self.become_empty(cx);
        } else {
            self.start_sync_phase(cx);
        }
    }

    /// CG-79.
    fn become_empty(&mut self, cx: &mut Cx<'_, R>) {
        self.protocol_name = None;
        self.leader = None;
        self.subscribed = Some(BTreeSet::new());
        self.last_stable = None;
        self.enter(cx.now, State::Empty);
        cx.journal();
        cx.effect(Effect::GroupEmptied {
            group_id: cx.group_id.clone(),
            generation: self.generation,
        });
    }

    /// CG-81, CG-82.
    fn start_sync_phase(&mut self, cx: &mut Cx<'_, R>) {
        self.choose_leader();
        self.protocol_name = self.vote();
        self.subscribed = self.subscriptions();
        self.enter(cx.now, State::CompletingRebalance);
        self.members.await_sync_from_all();
        self.sync_deadline = self.wake_at(cx.now.mono_ms + self.rebalance_timeout_ms());
        for seat in self.members.seats() {
            self.members.get_mut(seat).is_new = false;
            self.restart_session(cx.now, seat);
            if let Some(join) = self.members.take_join(seat) {
                let members = if self.leads(seat) {
                    self.members_for_leader()
                } else {
                    Vec::new()
                };
                let answer = self.join_answer(seat, join.version, members);
                cx.reply(join.reply_to, Reply::JoinGroup(answer));
            }
        }
        cx.effect(Effect::GenerationFormed {
            group_id: cx.group_id.clone(),
            generation: self.generation,
            protocol: self.protocol_name.clone().unwrap_or_default(),
            leader: self
                .leader
                .clone()
                .expect("a group with members has a leader"),
            members: self.members.len(),
        });
    }

    /// The leader stays if it joined, else it is the first member that did (CG-78).
    fn choose_leader(&mut self) {
        let seat = self
            .leader
            .as_ref()
            .and_then(|leader| self.members.seat(leader));
        if !seat.is_some_and(|seat| self.members[seat].joins()) {
            self.leader = self
                .members
                .iter()
                .find(|member| member.joins())
                .map(|member| member.id.clone());
        }
    }

    /// Every member votes for the first protocol of its own list that all support; the most votes win, and among equals
    /// what the first member likes best (CG-85).
    fn vote(&self) -> Option<String> {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.iter() {
            let mut names = member.protocols().iter().map(|protocol| &*protocol.name);
            if let Some(name) = names.find(|name| self.members.everyone_supports(name)) {
                *votes.entry(name).or_default() += 1;
            }
        }
        let most = votes.values().max()?;
        let first = self.members.iter().next()?;
        let mut names = first.protocols().iter().map(|protocol| &*protocol.name);
        names
            .find(|name| votes.get(name) == Some(most))
            .map(str::to_owned)
    }

    /// OF-60, OF-61.
    fn subscriptions(&self) -> Option<BTreeSet<String>> {
        self.protocol_type.as_ref()?;
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        if self.protocol_type.as_deref() != Some(CONSUMER_PROTOCOL_TYPE) {
            return None;
        }
        let protocol = self.protocol_name.as_deref()?;
        let mut topics = BTreeSet::new();
        for member in self.members.iter() {
            let metadata = member.metadata(protocol);
            for topic in subscribed_topics(&metadata)? {
                if !topics.contains(topic) {
                    topics.insert(topic.to_owned());
                }
            }
        }
        Some(topics)
    }

    fn join_answer(
        &self,
        seat: Seat,
        version: i16,
        members: Vec<JoinGroupResponseMember>,
    ) -> JoinGroupResponse {
        JoinGroupResponse {
            error_code: ErrorCode::NONE,
            generation_id: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: protocol_name_for(version, self.protocol_name.as_deref()),
            leader: self.leader.as_deref().unwrap_or_default().to_owned(),
            member_id: self.members[seat].id.as_ref().to_owned(),
            members,
            ..JoinGroupResponse::default()
        }
    }

    fn members_for_leader(&self) -> Vec<JoinGroupResponseMember> {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        let members = self.members.iter().map(|member| JoinGroupResponseMember {
            member_id: member.id.as_ref().to_owned(),
            group_instance_id: member.instance_id.as_deref().map(str::to_owned),
            metadata: member.metadata(protocol),
        });
        members.collect()
    }

    // ---- SyncGroup (CG-88 to CG-99)

    pub fn sync(&mut self, cx: &mut Cx<'_, R>, caller: Caller<'_, R>, request: SyncGroupRequest) {
        let seat = match self.validate_sync(&request) {
            Ok(seat) => seat,
            Err(error) => return cx.reply(caller.reply_to, Reply::SyncGroup(sync_error(error))),
        };
        self.members.has_synced(seat);
        if self.members.awaiting_sync() == 0 {
            self.sync_deadline = NEVER;
        }
        if self.state == State::Stable {
            let answer = self.sync_answer(seat);
            return cx.reply(caller.reply_to, Reply::SyncGroup(answer));
        }
        if let Some(earlier) = self.members.park_sync(seat, caller.reply_to) {
            cx.reply(
                earlier,
                Reply::SyncGroup(sync_error(ErrorCode::REBALANCE_IN_PROGRESS)),
            );
        }
        if self.leads(seat) {
            self.complete_sync_phase(cx, request.assignments);
        }
    }

    fn validate_sync(&self, request: &SyncGroupRequest) -> Result<Seat, ErrorCode> {
        let seat = self
            .members
            .identify(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation_id != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if contradict(&request.protocol_type, &self.protocol_type)
            || contradict(&request.protocol_name, &self.protocol_name)
        {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        if self.state == State::PreparingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        Ok(seat)
    }

    /// Members that the leader left out get an empty assignment, ids that are no members are ignored (CG-96).
    fn complete_sync_phase(
        &mut self,
        cx: &mut Cx<'_, R>,
        assignments: Vec<SyncGroupRequestAssignment>,
    ) {
        for seat in self.members.seats() {
            self.members.get_mut(seat).assignment = Bytes::new();
        }
        for SyncGroupRequestAssignment {
            member_id,
            assignment,
        } in assignments
        {
            if let Some(seat) = self.members.seat(&member_id) {
                self.members.get_mut(seat).assignment = assignment;
            }
        }
        self.enter(cx.now, State::Stable);
        self.last_stable = None;
        cx.journal();
        for seat in self.members.seats() {
            if let Some(sync) = self.members.take_sync(seat) {
                self.restart_session(cx.now, seat);
                let answer = self.sync_answer(seat);
                cx.reply(sync, Reply::SyncGroup(answer));
            }
        }
        cx.effect(Effect::RebalanceComplete {
            group_id: cx.group_id.clone(),
            generation: self.generation,
            members: self.members.len(),
            took_ms: cx.now.mono_ms.saturating_sub(self.rebalance_started_ms),
        });
    }

    fn sync_answer(&self, seat: Seat) -> SyncGroupResponse {
        SyncGroupResponse {
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            assignment: self.members[seat].assignment.clone(),
            ..SyncGroupResponse::default()
        }
    }

    // ---- Heartbeat (CG-114 to CG-118)

    pub fn heartbeat(
        &mut self,
        cx: &mut Cx<'_, R>,
        caller: Caller<'_, R>,
        request: HeartbeatRequest,
    ) {
        let error_code = match self.validate_heartbeat(&request) {
            Ok(seat) => {
                self.restart_session(cx.now, seat);
                if self.state == State::PreparingRebalance {
                    ErrorCode::REBALANCE_IN_PROGRESS
                } else {
                    ErrorCode::NONE
                }
            }
            Err(error) => error,
        };
        let reply = Reply::Heartbeat(HeartbeatResponse {
            error_code,
            ..HeartbeatResponse::default()
        });
        if error_code == ErrorCode::FENCED_INSTANCE_ID {
            // Fatal to the client, so it must not rest on a replacement that might be lost yet.
            cx.reply(caller.reply_to, reply);
        } else {
            cx.reply_at_once(caller.reply_to, reply);
        }
    }

    fn validate_heartbeat(&self, request: &HeartbeatRequest) -> Result<Seat, ErrorCode> {
        let seat = self
            .members
            .identify(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation_id != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        Ok(seat)
    }

    // ---- LeaveGroup (CG-119 to CG-125)

    pub fn leave(&mut self, cx: &mut Cx<'_, R>, caller: Caller<'_, R>, request: LeaveGroupRequest) {
        let single = caller.version < 3;
        let leaving = if single {
            vec![MemberIdentity {
                member_id: request.member_id,
                ..MemberIdentity::default()
            }]
        } else {
            request.members
        };
        let mut reason = None;
        let mut members = Vec::with_capacity(leaving.len());
        for identity in leaving {
            let left = self.leave_one(cx, &identity);
            if let Ok(why) = left {
                reason = reason.max(Some((why, client_reason(identity.reason))));
            }
            members.push(MemberResponse {
                member_id: identity.member_id,
                group_instance_id: identity.group_instance_id,
                error_code: left.err().unwrap_or(ErrorCode::NONE),
            });
        }
        let response = if single {
            leave_error(members[0].error_code)
        } else {
            LeaveGroupResponse {
                members,
                ..LeaveGroupResponse::default()
            }
        };
        cx.reply(caller.reply_to, Reply::LeaveGroup(response));
        if let Some((why, client_reason)) = reason {
            match self.state {
                State::Stable | State::CompletingRebalance => {
                    self.start_rebalance(cx, why, client_reason)
                }
                State::PreparingRebalance => self.complete_join_phase_if_all_joined(cx),
                State::Empty => self.last_stable = None,
            }
        }
    }

    /// CG-121, CG-122.
    fn leave_one(
        &mut self,
        cx: &mut Cx<'_, R>,
        identity: &MemberIdentity,
    ) -> Result<RebalanceReason, ErrorCode> {
        let instance_id = identity.group_instance_id.as_deref();
        let seat = if identity.member_id.is_empty() {
            let seat =
                instance_id.and_then(|instance_id| self.members.seat_of_instance(instance_id));
            seat.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?
        } else if self.pending_joins.remove(&*identity.member_id).is_some() {
            self.keep_last_stable();
            return Ok(RebalanceReason::PendingMemberLeft);
        } else {
            self.members.identify(&identity.member_id, instance_id)?
        };
        self.keep_last_stable();
        self.remove_member(cx, seat, RemovalReason::Left);
        Ok(RebalanceReason::MemberLeft)
    }

    /// What it had parked is answered UNKNOWN_MEMBER_ID. If it led, the first member left leads (CG-83).
    fn remove_member(&mut self, cx: &mut Cx<'_, R>, seat: Seat, reason: RemovalReason) {
        let Removed { member, join, sync } = self.members.remove(seat);
        if let Some(join) = join {
            let answer = join_error(join.version, ErrorCode::UNKNOWN_MEMBER_ID, "");
            cx.reply(join.reply_to, Reply::JoinGroup(answer));
        }
        if let Some(sync) = sync {
            cx.reply(
                sync,
                Reply::SyncGroup(sync_error(ErrorCode::UNKNOWN_MEMBER_ID)),
            );
        }
        if self.leader.as_ref() == Some(&member.id) {
            self.leader = self.members.iter().next().map(|member| member.id.clone());
        }
        cx.effect(Effect::MemberRemoved {
            group_id: cx.group_id.clone(),
            member_id: member.id,
            instance_id: member.instance_id,
            reason,
            members: self.members.len(),
        });
    }

    // ---- time

    pub fn next_timeout(&self) -> Option<u64> {
        (self.wake != NEVER).then_some(self.wake)
    }

    /// Fires what is due, in the order of the deadlines.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_, R>) {
        let now = cx.now.mono_ms;
        let sessions = self
            .members
            .iter()
            .map(|member| (member.session_deadline, Timer::Session(member.id.clone())));
        let pending = self
            .pending_joins
            .iter()
            .map(|(id, deadline)| (*deadline, Timer::PendingJoin(id.clone())));
        let phases = [
            (self.join_phase.deadline(), Timer::JoinPhase),
            (self.sync_deadline, Timer::SyncPhase),
        ];
        let mut due: Vec<(u64, Timer)> = sessions
            .chain(pending)
            .chain(phases)
            .filter(|(deadline, _)| *deadline <= now)
            .collect();
        due.sort_by_key(|(deadline, _)| *deadline);
        for (deadline, timer) in due {
            // An earlier one may have restarted or ended this one.
            match timer {
                Timer::Session(id) => {
                    if let Some(seat) = self.members.seat(&id)
                        && self.members[seat].session_deadline == deadline
                    {
                        self.session_expired(cx, seat);
                    }
                }
                Timer::PendingJoin(id) => {
                    if self.pending_joins.get(&id) == Some(&deadline) {
                        self.pending_joins.remove(&id);
                        self.complete_join_phase_after_expiry(cx);
                    }
                }
                Timer::JoinPhase if self.join_phase.deadline() == deadline => {
                    self.join_phase_expired(cx)
                }
                Timer::SyncPhase if self.sync_deadline == deadline => self.sync_phase_expired(cx),
                Timer::JoinPhase | Timer::SyncPhase => {}
            }
        }
        let sessions = self.members.iter().map(|member| member.session_deadline);
        let deadlines = sessions.chain(self.pending_joins.values().copied());
        let phases = self.join_phase.deadline().min(self.sync_deadline);
        self.wake = deadlines.min().unwrap_or(NEVER).min(phases);
    }

    /// CG-73.
    fn session_expired(&mut self, cx: &mut Cx<'_, R>, seat: Seat) {
        let member = self.members.get_mut(seat);
        if (member.joins() || member.syncs()) && !member.is_new {
            member.session_deadline = NEVER;
            return;
        }
        self.keep_last_stable();
        self.remove_member(cx, seat, RemovalReason::SessionExpired);
        match self.state {
            State::Stable | State::CompletingRebalance => {
                self.start_rebalance(cx, RebalanceReason::SessionExpired, None);
            }
            State::PreparingRebalance | State::Empty => self.complete_join_phase_after_expiry(cx),
        }
    }

    /// Also ends an initial rebalance, unlike a join or a leave (CG-72).
    fn complete_join_phase_after_expiry(&mut self, cx: &mut Cx<'_, R>) {
        if self.state == State::PreparingRebalance && self.all_joined() {
            self.complete_join_phase(cx);
        }
    }

    fn join_phase_expired(&mut self, cx: &mut Cx<'_, R>) {
        match self.join_phase {
            JoinPhase::Initial {
                delay_ms,
                remaining_ms,
                new_member_added: true,
                ..
            } if remaining_ms > 0 => {
                let next_delay_ms =
                    u64::try_from(cx.config.group_initial_rebalance_delay_ms).unwrap_or(0);
                let next_delay_ms = next_delay_ms.min(remaining_ms);
                self.join_phase = JoinPhase::Initial {
                    deadline: self.wake_at(cx.now.mono_ms + next_delay_ms),
                    delay_ms: next_delay_ms,
                    remaining_ms: remaining_ms.saturating_sub(delay_ms),
                    new_member_added: false,
                };
            }
            _ => self.complete_join_phase(cx),
        }
    }

    /// CG-86.
    fn sync_phase_expired(&mut self, cx: &mut Cx<'_, R>) {
        self.keep_last_stable();
        self.sync_deadline = NEVER;
        for seat in self.members.seats() {
            if self.members[seat].awaits_sync() {
                self.remove_member(cx, seat, RemovalReason::DidNotSync);
            }
        }
        self.start_rebalance(cx, RebalanceReason::SyncExpired, None);
    }

    fn restart_session(&mut self, now: Now, seat: Seat) {
        let deadline = after(now, self.members[seat].session_timeout_ms);
        self.members.get_mut(seat).session_deadline = self.wake_at(deadline);
    }

    /// A new deadline: the group wants to be woken by then.
    fn wake_at(&mut self, deadline: u64) -> u64 {
        self.wake = self.wake.min(deadline);
        deadline
    }

    /// CG-06.
    fn rebalance_timeout_ms(&self) -> u64 {
        let longest = self
            .members
            .iter()
            .map(|member| member.rebalance_timeout_ms)
            .max()
            .unwrap_or(0);
        u64::try_from(longest).unwrap_or(0)
    }

    fn enter(&mut self, now: Now, state: State) {
        self.state = state;
        self.state_timestamp = Some(now.wall_ms);
    }

    // ---- offsets (OF-27 to OF-33, OF-58 to OF-65)

    pub fn validate_commit(
        &mut self,
        now: Now,
        request: &OffsetCommitRequest,
    ) -> Result<(), ErrorCode> {
        let generation = request.generation_id_or_member_epoch;
        if generation < 0 && self.state == State::Empty {
            return Ok(());
        }
        if generation < 0 && request.member_id.is_empty() && request.group_instance_id.is_none() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        let seat = self
            .members
            .identify(&request.member_id, request.group_instance_id.as_deref())?;
        if generation != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if self.state == State::CompletingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        self.restart_session(now, seat);
        Ok(())
    }

    pub fn validate_offset_delete(&self) -> Result<(), ErrorCode> {
        let consumers = self.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE);
        if self.state == State::Empty || consumers {
            Ok(())
        } else {
            Err(ErrorCode::NON_EMPTY_GROUP)
        }
    }

    pub fn is_subscribed(&self, topic: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE),
        }
    }

    pub fn retention(&self) -> Retention {
        match (self.protocol_type.as_deref(), self.state) {
            (None, _) => Retention::SinceCommit,
            (Some(_), State::Empty) => self
                .state_timestamp
                .map_or(Retention::SinceCommit, Retention::Since),
            (Some(CONSUMER_PROTOCOL_TYPE), State::Stable) if self.subscribed.is_some() => {
                Retention::SinceCommit
            }
            _ => Retention::Paused,
        }
    }

    // ---- in and out of memory (CG-126 to CG-130)

    /// Kept before a change that ends in a rebalance, unless one is under way already.
    fn keep_last_stable(&mut self) {
        if self.last_stable.is_none() {
            self.last_stable = Some(Box::new(self.as_it_is()));
        }
    }

    pub fn document(&self, config: &GroupConfig) -> ClassicDocument {
        let mut document = match &self.last_stable {
            Some(kept) => ClassicDocument::clone(kept),
            None => self.as_it_is(),
        };
        if !config.kaas_group_membership_durable {
            document.members.clear();
            document.leader = None;
            document.protocol_name = None;
        }
        if document.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE) {
            document
                .members
                .iter_mut()
                .for_each(MemberDocument::explain);
        }
        document
    }

    fn as_it_is(&self) -> ClassicDocument {
        let members = self.members.iter().map(|member| MemberDocument {
            member_id: member.id.as_ref().to_owned(),
            instance_id: member.instance_id.as_deref().map(str::to_owned),
            client_id: member.client_id.as_ref().to_owned(),
            client_host: member.client_host.as_ref().to_owned(),
            session_timeout_ms: member.session_timeout_ms,
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            protocols: member
                .protocols()
                .iter()
                .map(|protocol| ProtocolDocument {
                    name: protocol.name.as_ref().to_owned(),
                    metadata: protocol.metadata.clone(),
                    subscribed_topics: None,
                })
                .collect(),
            assignment: member.assignment.clone(),
            assigned_partitions: None,
        });
        ClassicDocument {
            state: self.state.name().to_owned(),
            state_timestamp: self.state_timestamp,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.as_deref().map(str::to_owned),
            members: members.collect(),
        }
    }

    /// Empty or Stable; sessions start in full (CG-128).
    pub fn load(now: Now, document: ClassicDocument) -> Result<ClassicGroup<R>, DocumentError> {
        let mut group = ClassicGroup::new(now);
        if document.generation < i32::from(!document.members.is_empty()) {
            return Err(DocumentError::Inconsistent(format!(
                "it has generation {}",
                document.generation
            )));
        }
        group.generation = document.generation;
        group.protocol_type = document.protocol_type;
        for member in document.members {
            group.load_member(now, member)?;
        }
        if group.members.is_empty() {
            // Members that were not stored ended with the former coordinator: the group becomes empty now (OF-64).
            if document.state == State::Empty.name() {
                group.state_timestamp = document.state_timestamp;
            }
        } else {
            group.state = State::Stable;
            group.state_timestamp = document.state_timestamp;
            group.protocol_name = document.protocol_name;
            let selected = group.protocol_name.as_deref();
            if group.protocol_type.is_none()
                || !selected.is_some_and(|name| group.members.everyone_supports(name))
            {
                return Err(DocumentError::Inconsistent(
                    "its members do not share its protocol".to_owned(),
                ));
            }
            let leader = document
                .leader
                .and_then(|leader| group.members.seat(&leader));
            let leader = leader
                .map(|seat| &group.members[seat])
                .or_else(|| group.members.iter().next());
            group.leader = leader.map(|leader| leader.id.clone());
        }
        group.subscribed = group.subscriptions();
        Ok(group)
    }

    fn load_member(&mut self, now: Now, member: MemberDocument) -> Result<(), DocumentError> {
        let instance_id = member.instance_id.as_deref();
        if self.members.seat(&member.member_id).is_some()
            || instance_id
                .is_some_and(|instance_id| self.members.seat_of_instance(instance_id).is_some())
        {
            return Err(DocumentError::Inconsistent(format!(
                "member {:?} is there twice",
                member.member_id
            )));
        }
        let protocols = member.protocols.into_iter().map(|protocol| Protocol {
            name: protocol.name.into(),
            metadata: protocol.metadata,
        });
        // -1 stood for "as the session timeout" in records of very old clients (CG-07).
        let rebalance_timeout_ms = match member.rebalance_timeout_ms {
            -1 => member.session_timeout_ms,
            timeout => timeout,
        };
        let session_deadline = self.wake_at(after(now, member.session_timeout_ms));
        self.members.add(NewMember {
            id: member.member_id.into(),
            instance_id: member.instance_id.map(Arc::from),
            client_id: member.client_id.into(),
            client_host: member.client_host.into(),
            rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            protocols: distinct(protocols),
            assignment: member.assignment,
            join: None,
            session_deadline,
        });
        Ok(())
    }

    /// A group above the limit has to shrink: the last to rejoin do not get in (CG-113).
    pub fn loaded(&mut self, cx: &mut Cx<'_, R>) {
        let max = usize::try_from(cx.config.group_max_size).unwrap_or(0);
        if self.members.len() > max {
            self.keep_last_stable();
            self.start_rebalance(cx, RebalanceReason::AboveMaxSize, None);
        }
    }

    /// CG-129.
    pub fn unload(&mut self, error: ErrorCode, out: &mut Output<R>) {
        for seat in self.members.seats() {
            if let Some(join) = self.members.take_join(seat) {
                let answer = join_error(join.version, error, &self.members[seat].id);
                out.replies
                    .push((join.reply_to, Reply::JoinGroup(answer), None));
            }
            if let Some(sync) = self.members.take_sync(seat) {
                out.replies
                    .push((sync, Reply::SyncGroup(sync_error(error)), None));
            }
        }
    }

    // ---- questions

    pub fn state(&self) -> State {
        self.state
    }

    pub fn generation(&self) -> i32 {
        self.generation
    }

    pub fn members(&self) -> usize {
        self.members.len()
    }

    pub fn protocol_type(&self) -> Option<&str> {
        self.protocol_type.as_deref()
    }

    fn leads(&self, seat: Seat) -> bool {
        self.leader.as_ref() == Some(&self.members[seat].id)
    }

    /// CG-131, CG-132.
    pub fn describe(&self) -> DescribedGroup {
        let protocol = if self.state == State::Stable {
            self.protocol_name.as_deref()
        } else {
            None
        };
        let members = self.members.iter().map(|member| DescribedGroupMember {
            member_id: member.id.as_ref().to_owned(),
            group_instance_id: member.instance_id.as_deref().map(str::to_owned),
            client_id: member.client_id.as_ref().to_owned(),
            client_host: member.client_host.as_ref().to_owned(),
            member_metadata: protocol.map_or_else(Bytes::new, |protocol| member.metadata(protocol)),
            member_assignment: member.assignment.clone(),
        });
        DescribedGroup {
            group_state: self.state.name().to_owned(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol_data: protocol.unwrap_or_default().to_owned(),
            members: members.collect(),
            ..DescribedGroup::default()
        }
    }

    /// What holds after every event.
    pub fn debug_check(&self) {
        self.members.debug_check();
        let members = self.members.len();
        let leader = self.leader.as_ref().map(|leader| self.members.seat(leader));
        assert!(!matches!(leader, Some(None)), "the leader is a member");
        assert_eq!(
            leader.is_some(),
            members > 0,
            "a group with members has a leader"
        );
        let rebalancing = matches!(
            self.state,
            State::PreparingRebalance | State::CompletingRebalance
        );
        assert_eq!(
            self.last_stable.is_some(),
            rebalancing,
            "what was before is kept while a rebalance is under way"
        );
        let preparing = self.state == State::PreparingRebalance;
        assert_eq!(
            self.join_phase != JoinPhase::Closed,
            preparing,
            "the join phase is open while preparing"
        );
        assert!(
            preparing || self.members.joining() == 0,
            "a join is parked only while preparing"
        );
        let completing = self.state == State::CompletingRebalance;
        assert!(
            completing || self.members.syncing() == 0,
            "a sync is parked only while completing"
        );
        match self.state {
            State::Empty => assert_eq!(members, 0, "an empty group has no members"),
            State::PreparingRebalance => {}
            State::CompletingRebalance | State::Stable => {
                assert!(members > 0, "a generation has members");
                assert!(self.generation > 0, "a generation has a number");
                let selected = self
                    .protocol_name
                    .as_deref()
                    .expect("a generation has a protocol");
                assert!(
                    self.members.everyone_supports(selected),
                    "every member supports the protocol"
                );
            }
        }
        let awaiting = self.members.awaiting_sync() > 0;
        assert_eq!(
            awaiting,
            self.sync_deadline != NEVER,
            "a sync is awaited up to a deadline"
        );
        assert!(
            !awaiting || completing || self.state == State::Stable,
            "a sync is awaited in a generation"
        );
        let sessions = self.members.iter().map(|member| member.session_deadline);
        let deadlines = sessions.chain(self.pending_joins.values().copied());
        let phases = [self.join_phase.deadline(), self.sync_deadline];
        assert!(
            deadlines
                .chain(phases)
                .all(|deadline| self.wake <= deadline),
            "no deadline is slept through"
        );
    }
}

enum Timer {
    Session(Arc<str>),
    PendingJoin(Arc<str>),
    JoinPhase,
    SyncPhase,
}

/// What a member that is in already says anew.
struct Offer {
    protocols: Box<[Protocol]>,
    session_timeout_ms: i32,
    rebalance_timeout_ms: i32,
}

/// JoinGroup v0 has none of its own (CG-07).
fn rebalance_timeout_ms(version: i16, request: &JoinGroupRequest) -> i32 {
    if version == 0 {
        request.session_timeout_ms
    } else {
        request.rebalance_timeout_ms
    }
}

fn offered_protocols(offered: Vec<JoinGroupRequestProtocol>) -> Box<[Protocol]> {
    let protocols = offered.into_iter();
    distinct(protocols.map(|protocol| Protocol {
        name: protocol.name.into(),
        metadata: protocol.metadata,
    }))
}

/// A name that comes twice counts once, with its first metadata.
fn distinct(offered: impl Iterator<Item = Protocol>) -> Box<[Protocol]> {
    let mut seen = BTreeSet::new();
    let mut protocols: Vec<Protocol> = offered.collect();
    protocols.retain(|protocol| seen.insert(protocol.name.clone()));
    protocols.into()
}

fn client_reason(reason: Option<String>) -> Option<String> {
    reason.filter(|reason| !reason.is_empty())
}

/// Both there and not the same.
fn contradict(given: &Option<String>, held: &Option<String>) -> bool {
    given.is_some() && held.is_some() && given != held
}

fn after(now: Now, timeout_ms: i32) -> u64 {
    now.mono_ms + u64::try_from(timeout_ms).unwrap_or(0)
}
