//! All groups of one broker: which are in memory, their timers, their revisions, and the way of every event through
//! the group it is for. What a group does is in `group/`, what becomes of offsets in `offset_store.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fnv::FnvHashMap;

use kaas_wire::messages::describe_groups::DescribedGroup;
use kaas_wire::messages::heartbeat::HeartbeatResponse;
use kaas_wire::messages::leave_group::{LeaveGroupResponse, MemberResponse};
use kaas_wire::messages::list_groups::ListedGroup;
use kaas_wire::messages::offset_commit::{OffsetCommitRequest, OffsetCommitResponse};
use kaas_wire::messages::offset_delete::{OffsetDeleteRequest, OffsetDeleteResponse};
use kaas_wire::messages::offset_fetch::{OffsetFetchRequestGroup, OffsetFetchResponseGroup};
use kaas_wire::{ErrorCode, Uuid};

use crate::document::{Committed, DeltaWriter, DocumentError, FORMAT, GroupDocument};
use crate::effect::{Effect, GroupRemovalReason, OffsetRemovalReason};
use crate::group::{Caller, Cx, Group};
use crate::offset_store::{self, OffsetStore};
use crate::reply::{commit_error, join_error, leave_error, sync_error};
use crate::{Call, Change, ChangeKind, GroupConfig, Now, Output, Reply, Request, Revision};

pub struct Manager<R> {
    config: GroupConfig,
    term: u64,
    /// Changes ever made. It numbers them, and it is the `n` of a key's first revision after it came into memory.
    made: u64,
    durable: u64,
    index: FnvHashMap<Arc<str>, usize>,
    keys: Vec<Option<Key<R>>>,
    free: Vec<usize>,
    /// For each key with a timer, a moment not after its next deadline.
    timers: BTreeSet<(u64, usize)>,
}

/// What the core knows of a group id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing; [`Manager::load`] comes before any event.
    NotLoaded,
    /// There is no such group.
    Absent,
    Present,
    /// It was removed, and its file may still be there ([`Manager::file_gone`]).
    Removed,
}

struct Key<R> {
    group_id: Arc<str>,
    /// The term in force when this key came into memory.
    term: u64,
    /// That of the last change, or of the document it was loaded from.
    revision: Revision,
    /// Whether `revision` is that of a change made since the key came into memory, so that a delta may follow it.
    journaled: bool,
    last_change: u64,
    /// Its entry in `timers`, if any.
    armed: Option<u64>,
    held: Held<R>,
}

enum Held<R> {
    Absent,
    Removed,
    Present(Box<Present<R>>),
}

struct Present<R> {
    group: Group<R>,
    offsets: OffsetStore,
}

/// What of an event has to be made durable.
enum Journal {
    Nothing,
    Document,
    Offsets(DeltaWriter),
    Removal,
}

impl<R> Manager<R> {
    pub fn new(config: GroupConfig) -> Manager<R> {
        Manager {
            config,
            term: 0,
            made: 0,
            durable: 0,
            index: FnvHashMap::default(),
            keys: Vec::new(),
            free: Vec::new(),
            timers: BTreeSet::new(),
        }
    }

    /// Holds from the next event on; timers that run keep their deadlines.
    pub fn set_config(&mut self, config: GroupConfig) {
        self.config = config;
    }

    /// The assignment version applied: the term of every key loaded from now on.
    pub fn set_term(&mut self, term: u64) {
        self.term = term;
    }

    // ---- what is in memory

    pub fn status(&self, group_id: &str) -> Status {
        match self.key(group_id).map(|key| &key.held) {
            None => Status::NotLoaded,
            Some(Held::Absent) => Status::Absent,
            Some(Held::Removed) => Status::Removed,
            Some(Held::Present(_)) => Status::Present,
        }
    }

    pub fn is_loaded(&self, group_id: &str) -> bool {
        self.index.contains_key(group_id)
    }

    /// Takes a group into memory that is not: its document, or `None` when it is known that there is no such group.
    /// An error leaves it out of memory; it is for the operator and never means an empty group.
    pub fn load(
        &mut self,
        now: Now,
        group_id: &str,
        document: Option<GroupDocument>,
        out: &mut Output<R>,
    ) -> Result<(), DocumentError> {
        assert!(!self.is_loaded(group_id), "a group is loaded once");
        let Some(document) = document else {
            self.insert(Key::new(
                group_id,
                self.term,
                Revision::default(),
                Held::Absent,
            ));
            return Ok(());
        };
        if document.format > FORMAT {
            return Err(DocumentError::Format(document.format));
        }
        if document.group_id != group_id {
            return Err(DocumentError::WrongGroup {
                expected: group_id.to_owned(),
                found: document.group_id,
            });
        }
        if document.revision.term > self.term {
            return Err(DocumentError::TermAhead {
                found: document.revision.term,
                current: self.term,
            });
        }
        let revision = document.revision;
        let group = Group::load(now, document.state)?;
        let offsets = OffsetStore::load(document.offsets, document.pending_offsets);
        if revision.term == self.term {
            self.made = self.made.max(revision.n);
        }
        let held = Held::Present(Box::new(Present { group, offsets }));
        let at = self.insert(Key::new(group_id, self.term, revision, held));
        self.with_group(at, now, out, |present, cx| {
            cx.out.effects.push(Effect::GroupLoaded {
                group_id: cx.group_id.clone(),
                generation: present.group.generation(),
                members: present.group.members(),
                offsets: present.offsets.len(),
            });
            present.group.loaded(cx);
        });
        Ok(())
    }

    /// Forgets a group without a trace. Calls parked in it are answered NOT_COORDINATOR (CG-129).
    pub fn unload(&mut self, group_id: &str, out: &mut Output<R>) {
        self.evict(group_id, ErrorCode::NOT_COORDINATOR, out);
    }

    /// A change of this group could not be made durable: the group is forgotten, calls parked in it are answered
    /// `error` as CG-23 maps it. The next load is from what is durable.
    pub fn append_failed(&mut self, group_id: &str, error: ErrorCode, out: &mut Output<R>) {
        self.evict(group_id, crate::coordinator_error(error), out);
    }

    fn evict(&mut self, group_id: &str, error: ErrorCode, out: &mut Output<R>) {
        let Some(at) = self.index.remove(group_id) else {
            return;
        };
        let mut key = self.keys[at].take().expect("an indexed key is there");
        self.free.push(at);
        if let Some(deadline) = key.armed {
            self.timers.remove(&(deadline, at));
        }
        if let Held::Present(present) = &mut key.held {
            present.group.unload(error, out);
        }
    }

    /// Answers what is parked in a group as `unload` does, and leaves it in memory: for a broker that stops and has its
    /// documents to write. Nothing but reads may follow.
    pub fn answer_parked(&mut self, group_id: &str, out: &mut Output<R>) {
        let Some(at) = self.index.get(group_id).copied() else {
            return;
        };
        let key = self.keys[at].as_mut().expect("an indexed key is there");
        if let Held::Present(present) = &mut key.held {
            present.group.unload(ErrorCode::NOT_COORDINATOR, out);
        }
    }

    /// The file of a removed group is durably gone.
    pub fn file_gone(&mut self, group_id: &str) {
        if let Some(at) = self.index.get(group_id) {
            let key = self.keys[*at].as_mut().expect("an indexed key is there");
            if let Held::Removed = key.held {
                key.held = Held::Absent;
            }
        }
    }

    /// Every group id in memory, also absent and removed ones, whoever owns them.
    pub fn local_groups(&self) -> impl Iterator<Item = &Arc<str>> {
        self.keys.iter().flatten().map(|key| &key.group_id)
    }

    /// The state that the changes made so far amount to; its revision is that of the last one.
    pub fn document(&self, group_id: &str) -> Option<GroupDocument> {
        let key = self.key(group_id)?;
        match &key.held {
            Held::Present(present) => Some(document(key, present, &self.config)),
            Held::Absent | Held::Removed => None,
        }
    }

    /// The revision of the last change, or of what was loaded. A removed group has one, an absent one may not.
    pub fn revision(&self, group_id: &str) -> Option<Revision> {
        self.key(group_id)
            .map(|key| key.revision)
            .filter(|revision| *revision != Revision::default())
    }

    /// Writes the state of a group that is in memory into the journal, as it is: a Document, or Removed if there is no
    /// such group. For keys that were absorbed from another's journal or reloaded after a failed append.
    pub fn checkpoint(&mut self, group_id: &str, out: &mut Output<R>) {
        let at = self.index[group_id];
        let key = self.keys[at].as_mut().expect("an indexed key is there");
        let journal = match key.held {
            Held::Present(_) => Journal::Document,
            Held::Absent | Held::Removed => {
                key.held = Held::Removed;
                Journal::Removal
            }
        };
        self.journal(at, journal, out);
    }

    /// All changes up to this number are durable.
    pub fn durable(&mut self, upto_change: u64) {
        self.durable = self.durable.max(upto_change);
    }

    /// The last change of this group that is not durable yet: what a read of the group has to wait for.
    pub fn pending_change(&self, group_id: &str) -> Option<u64> {
        self.key(group_id)
            .map(|key| key.last_change)
            .filter(|change| *change > self.durable)
    }

    // ---- events

    /// The answer to requests that are refused whoever coordinates the group (CG-20, CG-88): to be given before any
    /// question of ownership or loading.
    pub fn check(&self, version: i16, request: &Request) -> Option<Reply> {
        let nameless = request.group_id().is_empty();
        match request {
            Request::JoinGroup(request) => {
                let timeouts = self.config.group_min_session_timeout_ms
                    ..=self.config.group_max_session_timeout_ms;
                let error = if nameless {
                    ErrorCode::INVALID_GROUP_ID
                } else if !timeouts.contains(&request.session_timeout_ms) {
                    ErrorCode::INVALID_SESSION_TIMEOUT
                } else {
                    return None;
                };
                Some(Reply::JoinGroup(join_error(
                    version,
                    error,
                    &request.member_id,
                )))
            }
            Request::SyncGroup(request) => {
                let error = if version >= 5
                    && (request.protocol_type.is_none() || request.protocol_name.is_none())
                {
                    ErrorCode::INCONSISTENT_GROUP_PROTOCOL
                } else if nameless {
                    ErrorCode::INVALID_GROUP_ID
                } else {
                    return None;
                };
                Some(Reply::SyncGroup(sync_error(error)))
            }
            Request::Heartbeat(_) if nameless => Some(Reply::Heartbeat(HeartbeatResponse {
                error_code: ErrorCode::INVALID_GROUP_ID,
                ..HeartbeatResponse::default()
            })),
            Request::LeaveGroup(_) if nameless => {
                Some(Reply::LeaveGroup(leave_error(ErrorCode::INVALID_GROUP_ID)))
            }
            Request::OffsetDelete(_) if nameless => {
                Some(Reply::OffsetDelete(OffsetDeleteResponse {
                    error_code: ErrorCode::INVALID_GROUP_ID,
                    ..OffsetDeleteResponse::default()
                }))
            }
            _ => None,
        }
    }

    /// One request to a group that is loaded. Its reply is in `out` now or after some later event.
    pub fn handle(&mut self, now: Now, call: Call<'_, R>, out: &mut Output<R>) {
        if let Some(refusal) = self.check(call.version, &call.request) {
            out.replies.push((call.reply_to, refusal, None));
            return;
        }
        let at = *self
            .index
            .get(call.request.group_id())
            .expect("an event is for a loaded group");
        let caller = Caller {
            reply_to: call.reply_to,
            version: call.version,
            client_id: call.client_id,
            client_host: call.client_host,
            fresh_id: call.fresh_id,
        };
        if !matches!(self.key_at(at).held, Held::Present(_)) {
            return self.handle_absent(at, now, caller, call.request, out);
        }
        match call.request {
            Request::JoinGroup(request) => {
                self.with_group(at, now, out, |present, cx| match &mut present.group {
                    Group::Classic(group) => group.join(cx, caller, request),
                })
            }
            Request::SyncGroup(request) => {
                self.with_group(at, now, out, |present, cx| match &mut present.group {
                    Group::Classic(group) => group.sync(cx, caller, request),
                })
            }
            Request::Heartbeat(request) => {
                self.with_group(at, now, out, |present, cx| match &mut present.group {
                    Group::Classic(group) => group.heartbeat(cx, caller, request),
                })
            }
            Request::LeaveGroup(request) => {
                self.with_group(at, now, out, |present, cx| match &mut present.group {
                    Group::Classic(group) => group.leave(cx, caller, request),
                })
            }
            Request::OffsetCommit(request) => self.commit(at, now, caller, request, out),
            Request::OffsetDelete(request) => self.delete_offsets(at, now, caller, request, out),
        }
    }

    /// Requests to a group that does not exist: some create it, the others are refused.
    fn handle_absent(
        &mut self,
        at: usize,
        now: Now,
        caller: Caller<'_, R>,
        request: Request,
        out: &mut Output<R>,
    ) {
        let version = caller.version;
        let refusal = match request {
            Request::JoinGroup(request) if request.member_id.is_empty() => {
                // The document makes the group survive even if this join is refused (CG-42).
                self.create(at, now, out);
                self.with_group(at, now, out, |present, cx| {
                    cx.journal();
                    match &mut present.group {
                        Group::Classic(group) => group.join(cx, caller, request),
                    }
                });
                return;
            }
            Request::JoinGroup(request) => Reply::JoinGroup(join_error(
                version,
                ErrorCode::UNKNOWN_MEMBER_ID,
                &request.member_id,
            )),
            Request::LeaveGroup(request) if version >= 3 => Reply::LeaveGroup(LeaveGroupResponse {
                members: request
                    .members
                    .into_iter()
                    .map(|member| MemberResponse {
                        member_id: member.member_id,
                        group_instance_id: member.group_instance_id,
                        error_code: ErrorCode::UNKNOWN_MEMBER_ID,
                    })
                    .collect(),
                ..LeaveGroupResponse::default()
            }),
            Request::OffsetCommit(commit) if commit.generation_id_or_member_epoch < 0 => {
                if offset_store::accepts_any(&self.config, &commit) {
                    self.create(at, now, out);
                    return self.commit(at, now, caller, commit, out);
                }
                // Where every partition is refused, no group appears (OF-20).
                let error = ErrorCode::OFFSET_METADATA_TOO_LARGE;
                Reply::OffsetCommit(commit_error(&commit, error))
            }
            Request::OffsetCommit(_) if version < 9 => {
                Reply::refusal(version, &request, ErrorCode::ILLEGAL_GENERATION)
            }
            Request::OffsetCommit(_) | Request::OffsetDelete(_) => {
                Reply::refusal(version, &request, ErrorCode::GROUP_ID_NOT_FOUND)
            }
            Request::SyncGroup(_) | Request::Heartbeat(_) | Request::LeaveGroup(_) => {
                Reply::refusal(version, &request, ErrorCode::UNKNOWN_MEMBER_ID)
            }
        };
        let wait = self.pending_at(at);
        out.replies.push((caller.reply_to, refusal, wait));
    }

    fn create(&mut self, at: usize, now: Now, out: &mut Output<R>) {
        let key = self.keys[at].as_mut().expect("an indexed key is there");
        key.held = Held::Present(Box::new(Present {
            group: Group::new(now),
            offsets: OffsetStore::default(),
        }));
        key.journaled = false;
        out.effects.push(Effect::GroupCreated {
            group_id: key.group_id.clone(),
        });
    }

    fn commit(
        &mut self,
        at: usize,
        now: Now,
        caller: Caller<'_, R>,
        request: OffsetCommitRequest,
        out: &mut Output<R>,
    ) {
        let key = self.keys[at].as_mut().expect("an indexed key is there");
        let Held::Present(present) = &mut key.held else {
            unreachable!("the caller looked")
        };
        if let Err(error) = present.group.validate_commit(now, &request) {
            let reply = Reply::OffsetCommit(commit_error(&request, error));
            let wait = self.pending_at(at);
            out.replies.push((caller.reply_to, reply, wait));
            return;
        }
        let mut delta = DeltaWriter::new();
        let topics = present
            .offsets
            .commit(now, &self.config, request, &mut delta);
        let journal = if delta.is_empty() {
            Journal::Nothing
        } else {
            Journal::Offsets(delta)
        };
        self.journal(at, journal, out);
        self.rearm(at);
        let reply = Reply::OffsetCommit(OffsetCommitResponse {
            topics,
            ..OffsetCommitResponse::default()
        });
        let wait = self.pending_at(at);
        out.replies.push((caller.reply_to, reply, wait));
    }

    fn delete_offsets(
        &mut self,
        at: usize,
        _now: Now,
        caller: Caller<'_, R>,
        request: OffsetDeleteRequest,
        out: &mut Output<R>,
    ) {
        let key = self.keys[at].as_mut().expect("an indexed key is there");
        let Held::Present(present) = &mut key.held else {
            unreachable!("the caller looked")
        };
        let response = match present.group.validate_offset_delete() {
            Err(error) => OffsetDeleteResponse {
                error_code: error,
                ..OffsetDeleteResponse::default()
            },
            Ok(()) => {
                let mut delta = DeltaWriter::new();
                let (topics, count) = present.offsets.delete(&present.group, request, &mut delta);
                if count > 0 {
                    out.effects.push(Effect::OffsetsRemoved {
                        group_id: key.group_id.clone(),
                        count,
                        reason: OffsetRemovalReason::Deleted,
                    });
                    self.journal(at, Journal::Offsets(delta), out);
                }
                OffsetDeleteResponse {
                    topics,
                    ..OffsetDeleteResponse::default()
                }
            }
        };
        let wait = self.pending_at(at);
        out.replies
            .push((caller.reply_to, Reply::OffsetDelete(response), wait));
    }

    /// Deletes an empty group and its offsets (CG-140). The answer waits for [`Manager::pending_change`].
    pub fn delete_group(&mut self, group_id: &str, out: &mut Output<R>) -> ErrorCode {
        let Some(at) = self.index.get(group_id).copied() else {
            return ErrorCode::GROUP_ID_NOT_FOUND;
        };
        let Held::Present(present) = &self.key_at(at).held else {
            return ErrorCode::GROUP_ID_NOT_FOUND;
        };
        if let Err(error) = present.group.validate_delete() {
            return error;
        }
        self.remove(at, GroupRemovalReason::Deleted, out);
        ErrorCode::NONE
    }

    fn remove(&mut self, at: usize, reason: GroupRemovalReason, out: &mut Output<R>) {
        let key = self.keys[at].as_mut().expect("an indexed key is there");
        key.held = Held::Removed;
        out.effects.push(Effect::GroupRemoved {
            group_id: key.group_id.clone(),
            reason,
        });
        self.journal(at, Journal::Removal, out);
        self.rearm(at);
    }

    /// Removes offsets that are past their retention, and groups that have nothing left (OF-62 to OF-69). Ids known to
    /// be absent are forgotten: the next request looks them up anew.
    pub fn sweep_expired(&mut self, now: Now, out: &mut Output<R>) {
        for at in 0..self.keys.len() {
            let Some(key) = self.keys[at].as_mut() else {
                continue;
            };
            let Held::Present(present) = &mut key.held else {
                if matches!(key.held, Held::Absent) && key.last_change <= self.durable {
                    let group_id = key.group_id.clone();
                    self.evict(&group_id, ErrorCode::NOT_COORDINATOR, out);
                }
                continue;
            };
            let mut delta = DeltaWriter::new();
            let count = present
                .offsets
                .expire(now, &self.config, &present.group, &mut delta);
            if count > 0 {
                out.effects.push(Effect::OffsetsRemoved {
                    group_id: key.group_id.clone(),
                    count,
                    reason: OffsetRemovalReason::Expired,
                });
            }
            if present.group.is_empty() && present.offsets.is_empty() {
                self.remove(at, GroupRemovalReason::Expired, out);
            } else if count > 0 {
                self.journal(at, Journal::Offsets(delta), out);
            }
        }
    }

    /// Removes the offsets of a deleted topic from every group in memory (OF-72). Those committed under another id
    /// stay: they are of a topic of that name made since (OF-73).
    pub fn topic_deleted(&mut self, topic: &str, topic_id: Uuid, out: &mut Output<R>) {
        for at in 0..self.keys.len() {
            let Some(key) = self.keys[at].as_mut() else {
                continue;
            };
            let Held::Present(present) = &mut key.held else {
                continue;
            };
            let mut delta = DeltaWriter::new();
            let count = present.offsets.topic_deleted(topic, topic_id, &mut delta);
            if count > 0 {
                out.effects.push(Effect::OffsetsRemoved {
                    group_id: key.group_id.clone(),
                    count,
                    reason: OffsetRemovalReason::TopicDeleted,
                });
                self.journal(at, Journal::Offsets(delta), out);
            }
        }
    }

    /// When [`Manager::handle_timeout`] has something to do, on the clock of `mono_ms`. It may turn out to be nothing.
    pub fn next_timeout(&self) -> Option<u64> {
        self.timers.first().map(|(deadline, _)| *deadline)
    }

    /// Fires what is due. A timer that is started anew for the same moment fires at the next call.
    pub fn handle_timeout(&mut self, now: Now, out: &mut Output<R>) {
        let due: Vec<usize> = self
            .timers
            .iter()
            .take_while(|(deadline, _)| *deadline <= now.mono_ms)
            .map(|(_, at)| *at)
            .collect();
        for at in due {
            self.with_group(at, now, out, |present, cx| present.group.handle_timeout(cx));
        }
    }

    // ---- reads; what they show may wait for `pending_change`

    pub fn describe(
        &self,
        group_id: &str,
        version: i16,
        include_authorized_operations: bool,
    ) -> DescribedGroup {
        let mut described = match self.present(group_id) {
            Some(present) => present.group.describe(),
            None => DescribedGroup {
                group_state: "Dead".to_owned(),
                ..DescribedGroup::default()
            },
        };
        if self.present(group_id).is_none() && version >= 6 {
            described.error_code = ErrorCode::GROUP_ID_NOT_FOUND;
            described.error_message = Some(format!("Group {group_id} not found."));
        }
        described.group_id = group_id.to_owned();
        if version >= 3 && include_authorized_operations && described.error_code.is_ok() {
            described.authorized_operations = ALL_GROUP_OPERATIONS;
        }
        described
    }

    /// The groups in memory that match both filters; an empty filter matches all (CG-137).
    pub fn list(&self, states_filter: &[String], types_filter: &[String]) -> Vec<ListedGroup> {
        let listed = self.keys.iter().flatten().filter_map(|key| {
            let Held::Present(present) = &key.held else {
                return None;
            };
            let group = &present.group;
            let state = group.state_name();
            let state_matches = states_filter.is_empty()
                || states_filter
                    .iter()
                    .any(|filter| filter.trim().eq_ignore_ascii_case(state));
            let type_matches = types_filter.is_empty()
                || types_filter
                    .iter()
                    .any(|filter| filter.eq_ignore_ascii_case(group.type_name()));
            (state_matches && type_matches).then(|| ListedGroup {
                group_id: key.group_id.as_ref().to_owned(),
                protocol_type: group.protocol_type().to_owned(),
                group_state: state.to_owned(),
                group_type: group.type_name().to_owned(),
            })
        });
        listed.collect()
    }

    /// The form of version 8 and later, also for older ones: names and ids are as in the request, and for "all topics"
    /// as they were committed.
    pub fn fetch_offsets(
        &self,
        request: &OffsetFetchRequestGroup,
        require_stable: bool,
        version: i16,
    ) -> OffsetFetchResponseGroup {
        let nothing = OffsetStore::default();
        let offsets = self
            .present(&request.group_id)
            .map_or(&nothing, |present| &present.offsets);
        offsets.fetch(request, require_stable && version >= 7, version >= 10)
    }

    /// Every committed offset in memory: group, topic, partition.
    pub fn committed_offsets(&self) -> impl Iterator<Item = (&Arc<str>, &str, i32, &Committed)> {
        self.keys.iter().flatten().flat_map(|key| {
            let offsets = match &key.held {
                Held::Present(present) => Some(present.offsets.iter()),
                Held::Absent | Held::Removed => None,
            };
            offsets
                .into_iter()
                .flatten()
                .map(|(topic, partition, committed)| (&key.group_id, topic, partition, committed))
        })
    }

    /// Groups by the name of their state; states of the classic protocol without a group are there with 0.
    pub fn groups_by_state(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::from(crate::group::State::ALL.map(|state| (state.name(), 0)));
        for key in self.keys.iter().flatten() {
            if let Held::Present(present) = &key.held {
                *counts.entry(present.group.state_name()).or_default() += 1;
            }
        }
        counts
    }

    /// How many members each group in memory has.
    pub fn members_by_group(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        self.keys
            .iter()
            .flatten()
            .filter_map(|key| match &key.held {
                Held::Present(present) => Some((&key.group_id, present.group.members())),
                Held::Absent | Held::Removed => None,
            })
    }

    /// All members of all groups.
    pub fn members(&self) -> usize {
        self.keys
            .iter()
            .flatten()
            .map(|key| match &key.held {
                Held::Present(present) => present.group.members(),
                Held::Absent | Held::Removed => 0,
            })
            .sum()
    }

    // ---- within

    fn key(&self, group_id: &str) -> Option<&Key<R>> {
        self.index.get(group_id).map(|at| self.key_at(*at))
    }

    fn key_at(&self, at: usize) -> &Key<R> {
        self.keys[at].as_ref().expect("an indexed key is there")
    }

    fn present(&self, group_id: &str) -> Option<&Present<R>> {
        match &self.key(group_id)?.held {
            Held::Present(present) => Some(present),
            Held::Absent | Held::Removed => None,
        }
    }

    fn insert(&mut self, key: Key<R>) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.keys.push(None);
            self.keys.len() - 1
        });
        self.index.insert(key.group_id.clone(), at);
        self.keys[at] = Some(key);
        at
    }

    fn pending_at(&self, at: usize) -> Option<u64> {
        Some(self.key_at(at).last_change).filter(|change| *change > self.durable)
    }

    /// Runs one event of a present group, then journals its document if the event asks for it, tells its replies what
    /// to wait for and arms its timer.
    fn with_group(
        &mut self,
        at: usize,
        now: Now,
        out: &mut Output<R>,
        event: impl FnOnce(&mut Present<R>, &mut Cx<'_, R>),
    ) {
        let first_reply = out.replies.len();
        let key = self.keys[at].as_mut().expect("an indexed key is there");
        let Held::Present(present) = &mut key.held else {
            unreachable!("only a present group has events")
        };
        let mut cx = Cx::new(now, &self.config, &key.group_id, out);
        event(present, &mut cx);
        if cfg!(debug_assertions) {
            present.group.debug_check();
        }
        let journal = if cx.has_to_journal() {
            Journal::Document
        } else {
            Journal::Nothing
        };
        self.journal(at, journal, out);
        self.rearm(at);
        let wait = self.pending_at(at);
        for (_, _, waits) in &mut out.replies[first_reply..] {
            *waits = waits.and(wait);
        }
    }

    fn rearm(&mut self, at: usize) {
        let key = self.keys[at].as_mut().expect("an indexed key is there");
        let deadline = match &key.held {
            Held::Present(present) => present.group.next_timeout(),
            Held::Absent | Held::Removed => None,
        };
        if deadline != key.armed {
            if let Some(earlier) = key.armed {
                self.timers.remove(&(earlier, at));
            }
            if let Some(deadline) = deadline {
                self.timers.insert((deadline, at));
            }
            key.armed = deadline;
        }
    }

    /// A delta must follow a change of the same stay in memory; the first one is always the whole state.
    fn journal(&mut self, at: usize, journal: Journal, out: &mut Output<R>) {
        if let Journal::Nothing = journal {
            return;
        }
        self.made += 1;
        let key = self.keys[at].as_mut().expect("an indexed key is there");
        let n = if key.journaled {
            key.revision.n + 1
        } else {
            self.made
        };
        let first = !key.journaled;
        key.revision = Revision { term: key.term, n };
        key.journaled = true;
        key.last_change = self.made;
        let (kind, payload) = match journal {
            Journal::Offsets(delta) if !first => (ChangeKind::Offsets, delta.into_bytes()),
            Journal::Removal => (ChangeKind::Removed, Vec::new()),
            Journal::Offsets(_) | Journal::Document | Journal::Nothing => {
                let Held::Present(present) = &key.held else {
                    unreachable!("only a present group has a document")
                };
                (
                    ChangeKind::Document,
                    document(key, present, &self.config).to_compact_json(),
                )
            }
        };
        let change = Change {
            number: self.made,
            group_id: key.group_id.clone(),
            kind,
            revision: key.revision,
            payload,
        };
        out.changes.push(change);
    }
}

/// READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS as bits (CG-135).
const ALL_GROUP_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

impl<R> Key<R> {
    fn new(group_id: &str, term: u64, revision: Revision, held: Held<R>) -> Key<R> {
        Key {
            group_id: group_id.into(),
            term,
            revision,
            journaled: false,
            last_change: 0,
            armed: None,
            held,
        }
    }
}

fn document<R>(key: &Key<R>, present: &Present<R>, config: &GroupConfig) -> GroupDocument {
    let (offsets, pending_offsets) = present.offsets.document();
    GroupDocument {
        format: FORMAT,
        group_id: key.group_id.as_ref().to_owned(),
        revision: key.revision,
        state: present.group.document(config),
        offsets,
        pending_offsets,
    }
}
