//! The actor that runs the coordination core: it takes calls in batches, handles each at one time, makes what changed
//! durable, and only then lets the answers go.
//!
//! What lives elsewhere: who owns a group (`coordinator.rs`), when a file is due (`behind.rs`), what a group answers
//! (`kaas-coordinator`), how records become durable (`kaas-storage`'s journal). Here: the order of all that.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use fnv::{FnvHashMap, FnvHashSet};
use kaas_coordinator::{
    Call, ChangeKind, GroupConfig, GroupDocument, Manager, Now, Output, Request, Revision,
};
use kaas_storage::StorageError;
use kaas_storage::session::Session;
use kaas_wire::messages::delete_groups::{
    DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse,
};
use kaas_wire::messages::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup,
};
use kaas_wire::messages::list_groups::{ListGroupsRequest, ListGroupsResponse};
use kaas_wire::{ErrorCode, Uuid};
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, error, info, warn};

use super::behind::Behind;
use super::files::{self, Operation};
use super::waiter::{Body, ReplyTo, Waiter};
pub use super::waiter::Refused;
use crate::assignment::GroupAssignmentSource;
use crate::clock::Clock;
use crate::connection::ReplySlot;
use crate::handlers::offset_fetch::{self, Plan};
use crate::ids::Ids;
use crate::{Ctx, group_takeover};

/// Calls handled at one time, and made durable together at most.
const BATCH: usize = 256;

/// Group files read ahead of the actor while it starts.
const LOAD_CHUNK: usize = 128;

/// How long a broker that stops goes on writing files that are behind; the journal has everything anyway.
const STOP_WRITES_MS: u64 = 2_500;

/// What the actor is set up with; all of it can change while it runs.
#[derive(Clone, Debug)]
pub struct Settings {
    pub group: GroupConfig,
    pub file_interval_ms: u64,
    /// Files a second.
    pub file_rate: u64,
    pub sweep_interval_ms: u64,
}

/// Ownership as this process sees it, swapped whole.
pub type Source = ArcSwap<Box<dyn GroupAssignmentSource>>;

/// The handle of the actor. Cheap to use from any thread; a request is answered through its `ReplySlot`.
pub struct Groups {
    work: mpsc::UnboundedSender<Work>,
    source: Arc<Source>,
    ids: Ids,
}

/// What the actor is told. The queue is bounded by the requests the server admits (`queued.max.requests`).
pub enum Work {
    Call(Box<Inbound>),
    Describe {
        version: i16,
        request: DescribeGroupsRequest,
        reply: ReplySlot,
    },
    List {
        request: ListGroupsRequest,
        reply: ReplySlot,
    },
    Delete {
        request: DeleteGroupsRequest,
        reply: ReplySlot,
    },
    Fetch {
        plan: Plan,
        reply: ReplySlot,
    },
    /// A topic is gone: so are the offsets committed for it (OF-72).
    TopicDeleted {
        name: String,
        id: Uuid,
    },
    Configure(Settings),
    /// The source was swapped.
    Assigned,
    /// The last words of groups whose former coordinator is gone; done when they are durable in this broker's journal.
    Absorb {
        groups: Vec<(String, Option<GroupDocument>)>,
        done: oneshot::Sender<()>,
    },
    Snapshot(oneshot::Sender<Snapshot>),
    /// Answers what is parked, writes what is behind, and ends the actor.
    Stop(oneshot::Sender<()>),
    Internal(Internal),
}

/// One call of a client, on its way to the core.
pub struct Inbound {
    to: ReplyTo,
    version: i16,
    client_id: Option<Arc<str>>,
    client_host: String,
    fresh_id: String,
    request: Request,
}

/// What the actor's own helpers report.
pub enum Internal {
    Loaded {
        group: String,
        result: Result<Option<GroupDocument>, StorageError>,
    },
    Listed(Vec<GroupDocument>),
    AllListed,
    Durable(u64),
    NotDurable(Failure),
    Filed {
        group: Arc<str>,
        revision: Revision,
        removed: bool,
        result: Result<(), StorageError>,
    },
}

impl Groups {
    pub fn call(&self, ctx: &Ctx, request: Request, slot: ReplySlot) {
        self.call_partly(ctx, request, Refused::Nothing, slot);
    }

    /// A call of which the handler has refused a part already.
    pub fn call_partly(&self, ctx: &Ctx, request: Request, refused: Refused, slot: ReplySlot) {
        let (client_host, fresh_id) = match &request {
            Request::JoinGroup(_) => (
                java_address(ctx.connection.peer.ip()),
                self.ids.uuid_text(),
            ),
            _ => (String::new(), String::new()),
        };
        self.submit(Work::Call(Box::new(Inbound {
            to: ReplyTo { slot, refused },
            version: ctx.version,
            client_id: ctx.client_id.clone(),
            client_host,
            fresh_id,
            request,
        })));
    }

    pub fn submit(&self, work: Work) {
        if let Err(mpsc::error::SendError(work)) = self.work.send(work) {
            refuse(work, ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
    }

    /// The broker that coordinates a group or transactional id. It is the one answer to that question.
    pub fn coordinator_of(&self, key: &str) -> Option<i32> {
        self.source.load().coordinator(key)
    }

    /// Takes over what the journals of former coordinators say; returns when this broker's journal says it too.
    pub async fn absorb(&self, groups: Vec<(String, Option<GroupDocument>)>) {
        let (done, absorbed) = oneshot::channel();
        self.submit(Work::Absorb { groups, done });
        // The actor ends only with the broker, and then nobody waits for this any more.
        let _ = absorbed.await;
    }

    pub async fn snapshot(&self) -> Option<Snapshot> {
        let (to, snapshot) = oneshot::channel();
        self.submit(Work::Snapshot(to));
        snapshot.await.ok()
    }

    /// Answers parked calls with NOT_COORDINATOR, writes files that are behind for a while, and ends the actor.
    pub async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        self.submit(Work::Stop(done));
        // An actor that has ended already has nothing left to do.
        let _ = stopped.await;
    }
}

/// An address as Java prints it: `/127.0.0.1`, `/0:0:0:0:0:0:0:1` (CG-05).
fn java_address(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => format!("/{ip}"),
        IpAddr::V6(ip) => {
            let parts: Vec<String> = ip.segments().iter().map(|part| format!("{part:x}")).collect();
            format!("/{}", parts.join(":"))
        }
    }
}

struct Actor {
    manager: Manager<ReplyTo>,
    out: Output<ReplyTo>,
    source: Arc<Source>,
    /// The version of the source whose takeover has run; nothing is served under another.
    applied: Option<u64>,
    clock: Clock,
    metrics: Arc<Metrics>,
    session: Arc<Session>,
    journal: Journal<Waiter>,
    /// Answers that wait for the batch that gathers.
    waiters: Vec<Waiter>,
    durable: u64,
    made: u64,
    /// Work that waits for a group to come into memory.
    loading: FnvHashMap<String, Vec<Work>>,
    /// Groups whose last append failed: what is durable of them has to be found out from the journal too.
    unsure: FnvHashSet<String>,
    listing: Listing,
    behind: Behind,
    /// File operations that wait for the change they show to be durable.
    held: VecDeque<(u64, FileJob)>,
    /// Topics deleted before every group was in memory.
    deleted_topics: Vec<(String, Uuid)>,
    sweep_interval_ms: u64,
    next_sweep_ms: u64,
    back: mpsc::UnboundedSender<Work>,
}

/// Whether every group that is only a file has come into memory since the start.
enum Listing {
    /// Groups that came by a request meanwhile must not be loaded again from what was read before.
    UnderWay {
        seen: FnvHashSet<String>,
        waiting: Vec<Work>,
    },
    Done,
}

struct FileJob {
    group: Arc<str>,
    revision: Revision,
    operation: Operation,
}

impl Actor {
    async fn run(mut self, mut work: mpsc::UnboundedReceiver<Work>) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let wake = self.clock.instant(self.next_wake_ms());
            tokio::select! {
                biased;
                taken = work.recv_many(&mut batch, BATCH) => {
                    if taken == 0 {
                        return;
                    }
                }
                () = tokio::time::sleep_until(wake.into()) => {}
            }
            let now = self.now();
            self.follow_source(now);
            for work in batch.drain(..) {
                if let Work::Stop(done) = work {
                    return self.stop(done, &mut work_rest(&mut self)).await;
                }
                self.take(now, work);
            }
        }
    }
}
