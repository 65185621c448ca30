//! Facts about what happened, for the log and the metrics. Nothing depends on them.

use std::fmt;
use std::sync::Arc;

/// A list of names in an effect is cut after this many; the count beside it is exact.
pub const NAMES_SHOWN: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    GroupCreated {
        group_id: Arc<str>,
    },
    MemberAdded {
        group_id: Arc<str>,
        member_id: Arc<str>,
        instance_id: Option<Arc<str>>,
        client_id: String,
        client_host: String,
        members: usize,
    },
    MemberRemoved {
        group_id: Arc<str>,
        member_id: Arc<str>,
        instance_id: Option<Arc<str>>,
        reason: RemovalReason,
        members: usize,
    },
    /// A static member came back under a new id; its old id is fenced from now on.
    StaticMemberReplaced {
        group_id: Arc<str>,
        instance_id: Arc<str>,
        old_member_id: Arc<str>,
        new_member_id: Arc<str>,
    },
    RebalanceStarted {
        group_id: Arc<str>,
        /// The generation that ends.
        generation: i32,
        reason: RebalanceReason,
        /// What the client itself gave as its reason (JoinGroup v8, LeaveGroup v5).
        client_reason: Option<String>,
        members: usize,
        /// Members that have not joined yet, the first [`NAMES_SHOWN`] by name.
        waiting_for: Vec<Arc<str>>,
        waiting_count: usize,
        /// When the join phase ends at the latest, from now.
        timeout_ms: u64,
    },
    /// The join phase is over and the leader was asked for an assignment.
    GenerationFormed {
        group_id: Arc<str>,
        generation: i32,
        protocol: String,
        leader: Arc<str>,
        members: usize,
    },
    /// The assignment is in; the group is Stable.
    RebalanceComplete {
        group_id: Arc<str>,
        generation: i32,
        members: usize,
        /// From the start of the rebalance, as often as it started anew.
        took_ms: u64,
    },
    GroupEmptied {
        group_id: Arc<str>,
        generation: i32,
    },
    GroupLoaded {
        group_id: Arc<str>,
        generation: i32,
        members: usize,
        offsets: usize,
    },
    GroupRemoved {
        group_id: Arc<str>,
        reason: GroupRemovalReason,
    },
    OffsetsRemoved {
        group_id: Arc<str>,
        count: usize,
        reason: OffsetRemovalReason,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RebalanceReason {
    NewMember,
    LeaderRejoined,
    MemberChanged,
    StaticMemberReplaced,
    MemberLeft,
    PendingMemberLeft,
    SessionExpired,
    SyncExpired,
    AboveMaxSize,
}

impl RebalanceReason {
    pub const ALL: [RebalanceReason; 9] = [
        RebalanceReason::NewMember,
        RebalanceReason::LeaderRejoined,
        RebalanceReason::MemberChanged,
        RebalanceReason::StaticMemberReplaced,
        RebalanceReason::MemberLeft,
        RebalanceReason::PendingMemberLeft,
        RebalanceReason::SessionExpired,
        RebalanceReason::SyncExpired,
        RebalanceReason::AboveMaxSize,
    ];

    /// The label of the metric.
    pub fn label(self) -> &'static str {
        match self {
            RebalanceReason::NewMember => "new_member",
            RebalanceReason::LeaderRejoined => "leader_rejoined",
            RebalanceReason::MemberChanged => "member_changed",
            RebalanceReason::StaticMemberReplaced => "static_member_replaced",
            RebalanceReason::MemberLeft => "member_left",
            RebalanceReason::PendingMemberLeft => "pending_member_left",
            RebalanceReason::SessionExpired => "session_expired",
            RebalanceReason::SyncExpired => "sync_expired",
            RebalanceReason::AboveMaxSize => "above_max_size",
        }
    }
}

impl fmt::Display for RebalanceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RebalanceReason::NewMember => "a new member joined",
            RebalanceReason::LeaderRejoined => "the leader rejoined",
            RebalanceReason::MemberChanged => "a member changed its protocols",
            RebalanceReason::StaticMemberReplaced => {
                "a static member came back with other protocols or amid a rebalance"
            }
            RebalanceReason::MemberLeft => "a member left",
            RebalanceReason::PendingMemberLeft => "a member left before it had joined",
            RebalanceReason::SessionExpired => "a member's session expired",
            RebalanceReason::SyncExpired => "members did not sync in time",
            RebalanceReason::AboveMaxSize => {
                "the group was loaded with more members than group.max.size"
            }
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalReason {
    Left,
    SessionExpired,
    /// It did not join again within the rebalance timeout.
    DidNotRejoin,
    /// It joined but sent no SyncGroup within the rebalance timeout.
    DidNotSync,
    GroupFull,
}

impl fmt::Display for RemovalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RemovalReason::Left => "left",
            RemovalReason::SessionExpired => "session expired",
            RemovalReason::DidNotRejoin => "did not rejoin in time",
            RemovalReason::DidNotSync => "did not sync in time",
            RemovalReason::GroupFull => "the group is full",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRemovalReason {
    Deleted,
    /// Empty, and its last offset expired or was removed.
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetRemovalReason {
    Expired,
    Deleted,
    TopicDeleted,
}
