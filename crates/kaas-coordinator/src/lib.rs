//! The pure core of group coordination: it decides and never does.
//!
//! A [`Manager`] holds every group of one broker as data. A call comes in with the time as a parameter; replies, durable
//! changes and facts for the log come out in an [`Output`]. There is no clock, file, task or randomness here, and no
//! knowledge of who owns which group: the shell around it reads clocks, appends [`Change`]s to a journal, and releases a
//! reply only when the change it waits for is durable.

mod base64;
pub mod document;
pub mod effect;
mod group;
mod manager;
mod offset_store;
mod reply;
mod subscription;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use kaas_wire::messages::heartbeat::HeartbeatRequest;
use kaas_wire::messages::join_group::JoinGroupRequest;
use kaas_wire::messages::leave_group::LeaveGroupRequest;
use kaas_wire::messages::offset_commit::OffsetCommitRequest;
use kaas_wire::messages::offset_delete::OffsetDeleteRequest;
use kaas_wire::messages::sync_group::SyncGroupRequest;

pub use document::{DocumentError, GroupDocument};
pub use effect::Effect;
pub use manager::{Manager, Status};
pub use reply::{Reply, coordinator_error};

/// The time of one batch of events. Timers run on `mono_ms` (any origin, never goes back); what is stored and shown is
/// `wall_ms` (milliseconds since 1970).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    pub mono_ms: u64,
    pub wall_ms: i64,
}

/// Each field is the Kafka key with underscores; those of `kaas.` are our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    pub group_min_session_timeout_ms: i32,
    pub group_max_session_timeout_ms: i32,
    pub group_initial_rebalance_delay_ms: i32,
    pub group_max_size: i32,
    pub offset_metadata_max_bytes: i32,
    pub offsets_retention_minutes: i32,
    /// False: documents carry no members, so that a restart makes every member join anew.
    pub kaas_group_membership_durable: bool,
}

impl Default for GroupConfig {
    fn default() -> Self {
        GroupConfig {
            group_min_session_timeout_ms: 6_000,
            group_max_session_timeout_ms: 1_800_000,
            group_initial_rebalance_delay_ms: 3_000,
            group_max_size: i32::MAX,
            offset_metadata_max_bytes: 4_096,
            offsets_retention_minutes: 7 * 24 * 60,
            kaas_group_membership_durable: true,
        }
    }
}

/// One request of a client, with what the core may not find out itself.
pub struct Call<'a, R> {
    /// Comes back with the reply, exactly once.
    pub reply_to: R,
    /// The API version of the request: some answers differ by it.
    pub version: i16,
    /// `""` when the request header had none.
    pub client_id: &'a str,
    /// Java's textual form, as in `/127.0.0.1` (CG-05).
    pub client_host: &'a str,
    /// The text of a fresh random UUID, from which a new member's id is made (CG-04). Read only for JoinGroup; `""`
    /// will do otherwise.
    pub fresh_id: &'a str,
    pub request: Request,
}

/// The requests that may change a group. OffsetCommit and OffsetDelete carry only partitions that exist (the handler
/// has answered for the others) and both name and id of each topic, whatever the version.
pub enum Request {
    JoinGroup(JoinGroupRequest),
    SyncGroup(SyncGroupRequest),
    Heartbeat(HeartbeatRequest),
    LeaveGroup(LeaveGroupRequest),
    OffsetCommit(OffsetCommitRequest),
    OffsetDelete(OffsetDeleteRequest),
}

impl Request {
    pub fn group_id(&self) -> &str {
        match self {
            Request::JoinGroup(request) => &request.group_id,
            Request::SyncGroup(request) => &request.group_id,
            Request::Heartbeat(request) => &request.group_id,
            Request::LeaveGroup(request) => &request.group_id,
            Request::OffsetCommit(request) => &request.group_id,
            Request::OffsetDelete(request) => &request.group_id,
        }
    }
}

/// What one or more events brought about. The caller clears and reuses it.
pub struct Output<R> {
    /// Reply handle, body, and the number of the change that must be durable before the reply may leave (`None`: at
    /// once). When that change cannot be made durable, [`Reply::fail`] turns the body into the error.
    pub replies: Vec<(R, Reply, Option<u64>)>,
    /// In ascending `number`; to be made durable in this order.
    pub changes: Vec<Change>,
    pub effects: Vec<Effect>,
}

impl<R> Default for Output<R> {
    fn default() -> Self {
        Output {
            replies: Vec::new(),
            changes: Vec::new(),
            effects: Vec::new(),
        }
    }
}

impl<R> Output<R> {
    pub fn clear(&mut self) {
        self.replies.clear();
        self.changes.clear();
        self.effects.clear();
    }
}

/// One record for the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Counts all changes this manager ever made, from 1.
    pub number: u64,
    pub group_id: Arc<str>,
    pub kind: ChangeKind,
    pub revision: Revision,
    /// `Document`: [`GroupDocument::from_json`] reads it; `Offsets`: [`GroupDocument::apply`] replays it; `Removed`: empty.
    pub payload: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The whole state, from which everything older of this group is irrelevant.
    Document,
    /// Partitions set and removed, following the previous change of this group without a gap.
    Offsets,
    /// The group is gone.
    Removed,
}

/// Orders all states a group ever had: by the term of the assignment its owner had applied, then by a number that is
/// never used twice in a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Revision {
    pub term: u64,
    pub n: u64,
}
