//! A group of any type, and the questions every type answers. A new type is a variant here and a file under `group/`.

mod classic;
mod members;

use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::describe_groups::DescribedGroup;
use kaas_wire::messages::offset_commit::OffsetCommitRequest;

use crate::document::{DocumentError, StateDocument};
use crate::effect::Effect;
use crate::{GroupConfig, Now, Output, Reply};

use classic::ClassicGroup;
pub(crate) use classic::State;

pub(crate) enum Group<R> {
    Classic(ClassicGroup<R>),
}

/// Who asks.
pub(crate) struct Caller<'a, R> {
    pub reply_to: R,
    pub version: i16,
    pub client_id: &'a str,
    pub client_host: &'a str,
    pub fresh_id: &'a str,
}

/// What surrounds one event of one group.
pub(crate) struct Cx<'a, R> {
    pub now: Now,
    pub config: &'a GroupConfig,
    pub group_id: &'a Arc<str>,
    pub out: &'a mut Output<R>,
    journal: bool,
}

/// Stands in a reply until the event is over and it is known which change is the group's last.
const LAST_CHANGE: Option<u64> = Some(u64::MAX);

impl<'a, R> Cx<'a, R> {
    pub fn new(
        now: Now,
        config: &'a GroupConfig,
        group_id: &'a Arc<str>,
        out: &'a mut Output<R>,
    ) -> Cx<'a, R> {
        Cx {
            now,
            config,
            group_id,
            out,
            journal: false,
        }
    }

    /// A reply that may leave when all changes of the group, this event's included, are durable.
    pub fn reply(&mut self, reply_to: R, reply: Reply) {
        self.out.replies.push((reply_to, reply, LAST_CHANGE));
    }

    /// A reply that rests on nothing that could be lost.
    pub fn reply_at_once(&mut self, reply_to: R, reply: Reply) {
        self.out.replies.push((reply_to, reply, None));
    }

    pub fn effect(&mut self, effect: Effect) {
        self.out.effects.push(effect);
    }

    /// The group as it is after this event is to be made durable.
    pub fn journal(&mut self) {
        self.journal = true;
    }

    pub fn has_to_journal(&self) -> bool {
        self.journal
    }
}

/// From when on the retention of a group's offsets counts (OF-64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retention {
    /// Nothing expires now.
    Paused,
    /// From the commit of each offset.
    SinceCommit,
    /// For all offsets from this moment.
    Since(i64),
}

impl<R> Group<R> {
    /// What a group starts as when its first request does not say otherwise.
    pub fn new(now: Now) -> Group<R> {
        Group::Classic(ClassicGroup::new(now))
    }

    pub fn load(now: Now, state: StateDocument) -> Result<Group<R>, DocumentError> {
        match state {
            StateDocument::Classic(document) => {
                ClassicGroup::load(now, document).map(Group::Classic)
            }
        }
    }

    /// The first event after [`Group::load`].
    pub fn loaded(&mut self, cx: &mut Cx<'_, R>) {
        match self {
            Group::Classic(group) => group.loaded(cx),
        }
    }

    /// Answers all that is parked with `error`; the group is dropped next.
    pub fn unload(&mut self, error: ErrorCode, out: &mut Output<R>) {
        match self {
            Group::Classic(group) => group.unload(error, out),
        }
    }

    pub fn document(&self, config: &GroupConfig) -> StateDocument {
        match self {
            Group::Classic(group) => StateDocument::Classic(group.document(config)),
        }
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            Group::Classic(_) => "classic",
        }
    }

    pub fn state_name(&self) -> &'static str {
        match self {
            Group::Classic(group) => group.state().name(),
        }
    }

    /// `""` for a group that never had a member (CG-138).
    pub fn protocol_type(&self) -> &str {
        match self {
            Group::Classic(group) => group.protocol_type().unwrap_or_default(),
        }
    }

    pub fn generation(&self) -> i32 {
        match self {
            Group::Classic(group) => group.generation(),
        }
    }

    pub fn members(&self) -> usize {
        match self {
            Group::Classic(group) => group.members(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Group::Classic(group) => group.state() == State::Empty,
        }
    }

    /// All but the group id and what depends on the version.
    pub fn describe(&self) -> DescribedGroup {
        match self {
            Group::Classic(group) => group.describe(),
        }
    }

    /// Whether this commit may be stored; one that may counts as a sign of life.
    pub fn validate_commit(
        &mut self,
        now: Now,
        request: &OffsetCommitRequest,
    ) -> Result<(), ErrorCode> {
        match self {
            Group::Classic(group) => group.validate_commit(now, request),
        }
    }

    pub fn validate_offset_delete(&self) -> Result<(), ErrorCode> {
        match self {
            Group::Classic(group) => group.validate_offset_delete(),
        }
    }

    pub fn validate_delete(&self) -> Result<(), ErrorCode> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(ErrorCode::NON_EMPTY_GROUP)
        }
    }

    pub fn is_subscribed(&self, topic: &str) -> bool {
        match self {
            Group::Classic(group) => group.is_subscribed(topic),
        }
    }

    pub fn retention(&self) -> Retention {
        match self {
            Group::Classic(group) => group.retention(),
        }
    }

    /// Not after the group's next deadline.
    pub fn next_timeout(&self) -> Option<u64> {
        match self {
            Group::Classic(group) => group.next_timeout(),
        }
    }

    pub fn handle_timeout(&mut self, cx: &mut Cx<'_, R>) {
        match self {
            Group::Classic(group) => group.handle_timeout(cx),
        }
    }

    pub fn debug_check(&self) {
        match self {
            Group::Classic(group) => group.debug_check(),
        }
    }
}
