//! The actor that runs the coordination core: it takes calls in batches, handles each at one time, makes what changed
//! durable, and only then lets the answers go.
//!
//! What lives elsewhere: who owns a group (`coordinator.rs`), when a file is due (`behind.rs`), what a group answers
//! (`kaas-coordinator`), how records become durable (`kaas-storage`'s journal). Here: the order of all that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use arc_swap::ArcSwap;
use fnv::{FnvHashMap, FnvHashSet};
use kaas_coordinator::{
    Call, ChangeKind, GroupConfig, GroupDocument, Manager, Now, Output, Reply, Request, Revision,
    Status,
};
use kaas_storage::StorageError;
use kaas_storage::journal::replay::Replay;
use kaas_storage::journal::{
    self, Batch, BatchFailed, Carry, Journal, JournalFile, Kind, TrimLimit,
};
use kaas_storage::layout::GROUPS;
use kaas_storage::session::Session;
use kaas_storage::volume::Volume;
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
use super::facts;
use super::files::{self, Operation};
use super::recovery::{self, Recovered, for_journal};
use super::unsettled::Unsettled;
pub use super::waiter::Refused;
use super::waiter::{Body, ReplyTo, Waiter};
use crate::assignment::GroupAssignmentSource;
use crate::clock::Clock;
use crate::connection::{ReplySlot, together};
use crate::handlers::offset_fetch::{self, Plan};
use crate::ids::Ids;
use crate::metrics::{GroupSnapshot, Metrics, OffsetSnapshot};
use crate::topics::Topics;
use crate::{Ctx, group_takeover};

/// Calls handled at one time, and made durable together at most.
const BATCH: usize = 256;

/// Group files read ahead of the actor while it starts.
const LOAD_CHUNK: usize = 128;

/// The longest group id, in bytes: what a string of the protocol held before compact ones.
const MAX_GROUP_ID: usize = i16::MAX as usize;

/// After a group could not be read, its requests are refused for so long before it is tried again.
const REFUSED_MS: u64 = 1_000;

/// Groups whose append failed come back into memory after so long, whether anybody asks for them or not.
const RELOAD_MS: u64 = 500;

/// Waking up later than this after a deadline means that the process stood still.
const STALL_MS: u64 = 1_000;

/// After it stood still, what its members sent meanwhile is heard for so long before any of them is given up.
const HEARING_MS: u64 = 500;

/// Looks at the journal's size at most so often.
const TRIM_INTERVAL_MS: u64 = 100;

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
    pub journal_max_bytes: u64,
    /// How long an answer waits for the disk.
    pub commit_timeout_ms: u64,
}

/// Ownership as this process sees it, swapped whole.
pub type Source = ArcSwap<Box<dyn GroupAssignmentSource>>;

/// The handle of the actor. Cheap to use from any thread; a request is answered through its `ReplySlot`.
#[derive(Clone)]
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
        recovered: Recovered,
        done: oneshot::Sender<bool>,
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
    client_id: String,
    client_host: String,
    fresh_id: String,
    request: Request,
}

/// What the actor's own helpers report.
pub enum Internal {
    Loaded {
        group: String,
        result: Result<Option<GroupDocument>, StorageError>,
        /// Its last append had failed.
        unsure: bool,
    },
    /// Groups found as files, by the listing of that number.
    Listed {
        number: u64,
        documents: Vec<GroupDocument>,
    },
    AllListed {
        number: u64,
        unreadable: Vec<String>,
    },
    NotListed {
        number: u64,
    },
    /// Everything up to this change is durable.
    Durable(u64),
    /// A batch of the journal failed.
    NotDurable {
        batch: u64,
        failed: BatchFailed,
        /// The last change that was submitted with it.
        upto: u64,
    },
    Trimmed(Result<usize, StorageError>),
    Filed {
        group: Arc<str>,
        revision: Revision,
        removed: bool,
        result: Result<(), StorageError>,
    },
}

impl Groups {
    /// Starts the actor and the journal of this session. Nothing is served before the source grants it.
    pub fn start(
        session: Arc<Session>,
        source: Arc<Source>,
        settings: Settings,
        clock: Clock,
        ids: Ids,
        metrics: Arc<Metrics>,
        topics: Arc<Topics>,
    ) -> Result<Groups, StorageError> {
        let (work, inbox) = mpsc::unbounded_channel();
        let (batches_in, batches) = mpsc::unbounded_channel();
        let finished = Box::new(move |batch: Batch<Mark>| {
            // The release task ends only with the runtime; who waits then has lost its connection.
            let _ = batches_in.send(batch);
        });
        let journal = Arc::new(Journal::start(Arc::clone(&session), finished)?);
        let unsettled = Arc::new(Unsettled::default());
        tokio::spawn(release(
            batches,
            work.clone(),
            Arc::clone(&unsettled),
            clock.clone(),
            Arc::clone(&metrics),
        ));
        let actor = Actor {
            manager: Manager::new(settings.group),
            out: Output::default(),
            source: Arc::clone(&source),
            applied: None,
            ready: false,
            next_sweep_ms: clock.mono_ms() + settings.sweep_interval_ms,
            clock,
            metrics,
            session,
            journal,
            records: Vec::new(),
            waiters: Vec::new(),
            unsettled,
            commit_timeout_ms: settings.commit_timeout_ms,
            durable: 0,
            made: 0,
            loading: FnvHashMap::default(),
            unsure: FnvHashSet::default(),
            lost: FnvHashSet::default(),
            doubts: None,
            absorbed: Vec::new(),
            refused: FnvHashMap::default(),
            unreadable: FnvHashSet::default(),
            listing: Listing::UnderWay {
                seen: FnvHashSet::default(),
                waiting: Vec::new(),
            },
            listing_number: 0,
            routing: 0,
            behind: Behind::new(settings.file_interval_ms, settings.file_rate),
            held: VecDeque::new(),
            topics,
            deleted_topics: Vec::new(),
            former_journals: Vec::new(),
            stalled_ms: 0,
            quiet_until_ms: 0,
            sweep_interval_ms: settings.sweep_interval_ms,
            reload_ms: None,
            relist_ms: None,
            journal_max_bytes: settings.journal_max_bytes,
            next_trim_ms: 0,
            trimming: false,
            document_bytes: 0,
            back: work.clone(),
        };
        tokio::spawn(actor.run(inbox));
        Ok(Groups { work, source, ids })
    }

    pub fn call(&self, ctx: &Ctx, request: Request, slot: ReplySlot) {
        self.call_partly(ctx, request, Refused::Nothing, slot);
    }

    /// A call of which the handler has refused a part already.
    pub fn call_partly(&self, ctx: &Ctx, request: Request, refused: Refused, slot: ReplySlot) {
        // Only a member that joins is known by more than its id.
        let (client_id, client_host, fresh_id) = match &request {
            Request::JoinGroup(_) => (
                ctx.client_id.clone().unwrap_or_default(),
                ctx.connection.client_host(),
                self.ids.uuid_text(),
            ),
            _ => Default::default(),
        };
        self.submit(Work::Call(Box::new(Inbound {
            to: ReplyTo { slot, refused },
            version: ctx.version,
            client_id,
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
    /// False if some of it cannot be taken over: the journals then stay where they are.
    pub fn absorb(&self, recovered: Recovered) -> impl Future<Output = bool> + use<> {
        let (done, absorbed) = oneshot::channel();
        self.submit(Work::Absorb { recovered, done });
        // The actor ends only with the broker, and then nothing was taken over.
        async move { absorbed.await.unwrap_or(false) }
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

struct Actor {
    manager: Manager<ReplyTo>,
    out: Output<ReplyTo>,
    source: Arc<Source>,
    /// The version of the source whose takeover has run; nothing is served under another.
    applied: Option<u64>,
    /// Whether the journals that the first version names have been taken over.
    ready: bool,
    clock: Clock,
    metrics: Arc<Metrics>,
    session: Arc<Session>,
    journal: Arc<Journal<Mark>>,
    /// Encoded changes of this batch; kept for its room.
    records: Vec<u8>,
    /// Answers that wait for the batch that gathers.
    waiters: Vec<Waiter>,
    /// Answers that wait for batches under way.
    unsettled: Arc<Unsettled>,
    commit_timeout_ms: u64,
    durable: u64,
    made: u64,
    /// Work that waits for a group to come into memory.
    loading: FnvHashMap<String, Vec<Work>>,
    /// Groups whose last append failed: what is durable of them has to be found out from the journal too.
    unsure: FnvHashSet<String>,
    /// Groups of which the last word is in a journal that cannot be used: refused until the operator has mended it.
    lost: FnvHashSet<String>,
    /// The journals of former coordinators that the first version names. Until they are gone, what they say counts.
    former_journals: Vec<JournalFile>,
    /// Journals of former coordinators of which a part cannot be read: any group may be in that part.
    doubts: Option<Arc<Replay>>,
    /// Those who wait for the journal to hold what was taken over.
    absorbed: Vec<(bool, oneshot::Sender<bool>)>,
    /// Groups that could not be read a moment ago, and when the next request may try again.
    refused: FnvHashMap<String, u64>,
    /// Group files that could not be read when all were.
    unreadable: FnvHashSet<String>,
    listing: Listing,
    listing_number: u64,
    /// What the routing was when the files were listed.
    routing: u64,
    behind: Behind,
    /// File operations that wait for the change they show to be durable.
    held: VecDeque<(u64, FileJob)>,
    topics: Arc<Topics>,
    /// Topics deleted while groups were out of memory: those that come in then may still have offsets of them.
    deleted_topics: Vec<(String, Uuid)>,
    /// How long the process stood still, in all.
    stalled_ms: u64,
    /// No session ends before: what members sent meanwhile is heard first.
    quiet_until_ms: u64,
    sweep_interval_ms: u64,
    next_sweep_ms: u64,
    /// When the groups whose append failed are read again.
    reload_ms: Option<u64>,
    /// When the files are listed again after that had failed.
    relist_ms: Option<u64>,
    journal_max_bytes: u64,
    next_trim_ms: u64,
    trimming: bool,
    /// The size of a document, on average.
    document_bytes: u64,
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
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Work>) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let wake_ms = self.next_wake_ms();
            tokio::select! {
                biased;
                taken = inbox.recv_many(&mut batch, BATCH) => {
                    if taken == 0 {
                        return;
                    }
                }
                () = tokio::time::sleep_until(self.instant(wake_ms)) => {}
            }
            self.forgive_stall(wake_ms);
            let now = self.now();
            self.follow_source();
            let mut stop = None;
            for work in batch.drain(..) {
                match work {
                    Work::Stop(done) => stop = Some(done),
                    work => self.take(now, work),
                }
            }
            if now.mono_ms >= self.quiet_until_ms {
                self.manager.handle_timeout(now, &mut self.out);
            }
            if self.reload_ms.is_some_and(|at| at <= now.mono_ms) {
                self.read_unsure();
            }
            if self.relist_ms.is_some_and(|at| at <= now.mono_ms) {
                self.list_files();
            }
            if !self.deleted_topics.is_empty() && self.is_settled() {
                self.deleted_topics.clear();
            }
            self.refused.retain(|_, until| *until > now.mono_ms);
            self.expire_waiters(now);
            self.sweep(now);
            self.release(now);
            self.write_files();
            self.trim_journal(now);
            if let Some(done) = stop {
                self.stop(&mut inbox).await;
                // Who asked may have given up waiting.
                let _ = done.send(());
                return;
            }
        }
    }

    fn now(&self) -> Now {
        Now {
            mono_ms: self.now_us() / 1_000,
            wall_ms: self.clock.wall_ms(),
        }
    }

    /// The monotonic time without the time in which this process stood still.
    fn now_us(&self) -> u64 {
        self.clock.mono_us().saturating_sub(self.stalled_ms * 1_000)
    }

    fn instant(&self, ms: u64) -> tokio::time::Instant {
        self.clock.instant(ms + self.stalled_ms).into()
    }

    /// A process that was frozen, or starved of the processor, could not hear its members: their timers stop with it,
    /// or all of them would be thrown out when it wakes, with their heartbeats waiting in its sockets.
    fn forgive_stall(&mut self, wake_ms: u64) {
        let late_ms = self.now().mono_ms.saturating_sub(wake_ms);
        if late_ms > STALL_MS {
            self.stalled_ms += late_ms;
            self.quiet_until_ms = wake_ms + HEARING_MS;
            warn!(
                late_ms,
                "this process stood still; no member's session is charged with it"
            );
        }
    }

    fn next_wake_ms(&self) -> u64 {
        let timeout = self.manager.next_timeout();
        [
            timeout.map(|at| at.max(self.quiet_until_ms)),
            self.unsettled
                .oldest_ms()
                .map(|submitted| submitted + self.commit_timeout_ms),
            self.reload_ms,
            self.relist_ms,
            self.behind.next_due(),
            Some(self.next_sweep_ms),
        ]
        .into_iter()
        .flatten()
        .min()
        .expect("the sweep is always due some time")
    }

    // ---- what comes in

    fn take(&mut self, now: Now, work: Work) {
        match work {
            Work::Call(call) => self.call(now, call),
            Work::Describe { .. } | Work::Delete { .. } | Work::Fetch { .. } => {
                self.several(now, work);
            }
            Work::List { request, reply } => self.list(request, reply),
            Work::TopicDeleted { name, id } => {
                self.manager.topic_deleted(&name, id, &mut self.out);
                if !self.is_settled() {
                    self.deleted_topics.push((name, id));
                }
            }
            Work::Configure(settings) => {
                self.manager.set_config(settings.group);
                self.behind
                    .configure(settings.file_interval_ms, settings.file_rate);
                self.journal_max_bytes = settings.journal_max_bytes;
                self.commit_timeout_ms = settings.commit_timeout_ms;
                self.sweep_interval_ms = settings.sweep_interval_ms;
                self.next_sweep_ms = self
                    .next_sweep_ms
                    .min(now.mono_ms + settings.sweep_interval_ms);
            }
            // The source was looked at before this batch.
            Work::Assigned => {}
            Work::Absorb { recovered, done } => self.absorb(now, recovered, done),
            Work::Snapshot(to) => {
                let snapshot = self.snapshot();
                // Who asked may have given up waiting.
                let _ = to.send(snapshot);
            }
            Work::Internal(report) => self.report(now, report),
            Work::Stop(_) => unreachable!("the loop takes it"),
        }
    }

    fn call(&mut self, now: Now, call: Box<Inbound>) {
        if let Some(refusal) = self.manager.check(call.version, &call.request) {
            Waiter::core(call.to, refusal).send();
            return;
        }
        let group = call.request.group_id();
        if let Err(error) = self.may_serve(group) {
            refuse_call(*call, error);
            return;
        }
        if !self.manager.is_loaded(group) {
            let group = group.to_owned();
            if !self.bring_in(now, &group) {
                if let Request::Heartbeat(_) = call.request {
                    // CG-22: to any member of any group, so that nobody is thrown out by a load.
                    refuse_call(*call, ErrorCode::NONE);
                    return;
                }
                self.wait_for(group, Work::Call(call));
                return;
            }
        }
        // Nobody would read the answer, and a join would make a ghost of a client that has gone.
        if call.to.slot.is_closed() && matches!(call.request, Request::JoinGroup(_)) {
            refuse_call(*call, ErrorCode::COORDINATOR_NOT_AVAILABLE);
            return;
        }
        let absent = (self.manager.status(group) == Status::Absent).then(|| group.to_owned());
        let call = *call;
        self.manager.handle(
            now,
            Call {
                reply_to: call.to,
                version: call.version,
                client_id: &call.client_id,
                client_host: &call.client_host,
                fresh_id: &call.fresh_id,
                request: call.request,
            },
            &mut self.out,
        );
        if let Some(group) = absent {
            self.forget_absent(&group);
        }
    }

    /// Ids that stand for nothing are not remembered, or a client could fill the memory by asking for them.
    fn forget_absent(&mut self, group: &str) {
        let known = matches!(self.listing, Listing::Done);
        if known
            && self.manager.status(group) == Status::Absent
            && self.manager.pending_change(group).is_none()
        {
            self.manager.unload(group, &mut self.out);
        }
    }

    /// Whether this broker may answer for the group under the assignment in force.
    fn may_serve(&self, group: &str) -> Result<(), ErrorCode> {
        if self.applied.is_none() {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        if !self.source.load().owns_group(group) {
            return Err(ErrorCode::NOT_COORDINATOR);
        }
        // CG-19: a load that failed.
        if self.refused.contains_key(group) || self.lost.contains(group) {
            return Err(ErrorCode::NOT_COORDINATOR);
        }
        if group.len() > MAX_GROUP_ID {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        Ok(())
    }

    /// A request about several groups: each is answered on its own, once all that are served here are in memory.
    fn several(&mut self, now: Now, work: Work) {
        let groups: Vec<String> = match &work {
            Work::Describe { request, .. } => request.groups.clone(),
            Work::Delete { request, .. } => request.groups_names.clone(),
            Work::Fetch { plan, .. } => {
                let ids = plan.groups.iter().map(|group| group.group_id.clone());
                ids.collect()
            }
            _ => unreachable!("only requests about several groups come here"),
        };
        let mut missing = None;
        for group in &groups {
            let here = self.may_serve(group).is_ok();
            if here && !self.manager.is_loaded(group) && !self.bring_in(now, group) {
                missing = Some(group);
            }
        }
        if let Some(group) = missing {
            self.wait_for(group.clone(), work);
            return;
        }
        let mut after = None;
        for group in &groups {
            after = after.max(self.manager.pending_change(group));
        }
        let waiter = match work {
            Work::Describe {
                version,
                request,
                reply,
            } => Waiter {
                slot: reply,
                body: Body::Describe(self.describe(version, &request)),
            },
            Work::Delete { request, reply } => {
                let response = self.delete(request);
                for group in &groups {
                    after = after.max(self.manager.pending_change(group));
                }
                Waiter {
                    slot: reply,
                    body: Body::Delete(response),
                }
            }
            Work::Fetch { plan, reply } => {
                let answers =
                    plan.groups
                        .iter()
                        .map(|group| match self.may_serve(&group.group_id) {
                            Ok(()) => {
                                self.manager
                                    .fetch_offsets(group, plan.require_stable, plan.version)
                            }
                            Err(error) => offset_fetch::group_error(&group.group_id, error),
                        });
                let answers = answers.collect();
                Waiter {
                    slot: reply,
                    body: Body::Fetch(plan.shape(answers)),
                }
            }
            _ => unreachable!("only requests about several groups come here"),
        };
        for group in &groups {
            self.forget_absent(group);
        }
        self.answer(waiter, after);
    }

    fn describe(&self, version: i16, request: &DescribeGroupsRequest) -> DescribeGroupsResponse {
        let groups = request.groups.iter().map(|group| {
            match self.may_serve(group) {
                Ok(()) => {
                    self.manager
                        .describe(group, version, request.include_authorized_operations)
                }
                // CG-134: state "".
                Err(error_code) => DescribedGroup {
                    error_code,
                    group_id: group.clone(),
                    ..DescribedGroup::default()
                },
            }
        });
        DescribeGroupsResponse {
            groups: groups.collect(),
            ..DescribeGroupsResponse::default()
        }
    }

    fn delete(&mut self, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
        let mut seen = FnvHashSet::default();
        let mut results = Vec::with_capacity(request.groups_names.len());
        for group in request.groups_names {
            if !seen.insert(group.clone()) {
                continue;
            }
            let error_code = match self.may_serve(&group) {
                Ok(()) => self.manager.delete_group(&group, &mut self.out),
                Err(error) => error,
            };
            results.push(DeletableGroupResult {
                group_id: group,
                error_code,
                ..DeletableGroupResult::default()
            });
        }
        DeleteGroupsResponse {
            results,
            ..DeleteGroupsResponse::default()
        }
    }

    /// Groups of other coordinators are left out; while there are files that are not in memory yet, the answer waits.
    fn list(&mut self, request: ListGroupsRequest, reply: ReplySlot) {
        if self.applied.is_none() {
            refuse(
                Work::List { request, reply },
                ErrorCode::COORDINATOR_NOT_AVAILABLE,
            );
            return;
        }
        if let Listing::UnderWay { waiting, .. } = &mut self.listing {
            waiting.push(Work::List { request, reply });
            return;
        }
        let source = self.source.load();
        let mut groups = self
            .manager
            .list(&request.states_filter, &request.types_filter);
        groups.retain(|group| source.owns_group(&group.group_id));
        let response = ListGroupsResponse {
            groups,
            ..ListGroupsResponse::default()
        };
        let made = self
            .out
            .changes
            .last()
            .map_or(self.made, |change| change.number);
        let after = (made > self.durable).then_some(made);
        self.answer(
            Waiter {
                slot: reply,
                body: Body::List(response),
            },
            after,
        );
    }

    fn answer(&mut self, waiter: Waiter, after: Option<u64>) {
        match after {
            Some(change) if change > self.durable => self.waiters.push(waiter),
            _ => waiter.send(),
        }
    }

    // ---- groups come into memory and leave it

    /// Takes a group into memory if nothing has to be read for it; otherwise reading is under way when this returns
    /// false.
    fn bring_in(&mut self, now: Now, group: &str) -> bool {
        if self.loading.contains_key(group) {
            return false;
        }
        let nothing_to_read = matches!(self.listing, Listing::Done)
            && !self.unsure.contains(group)
            && !self.behind.is_under_way(group)
            && (self.unreadable.is_empty() || !self.unreadable.contains(&files::path_of(group)));
        if nothing_to_read {
            self.load(now, group, None);
            return true;
        }
        if let Listing::UnderWay { seen, .. } = &mut self.listing {
            seen.insert(group.to_owned());
        }
        self.loading.insert(group.to_owned(), Vec::new());
        if self.unsure.contains(group) {
            self.read_unsure();
        } else {
            self.read(group.to_owned());
        }
        false
    }

    /// Reads every group whose last append failed, from the files and this broker's own journal.
    fn read_unsure(&mut self) {
        self.reload_ms = None;
        let mut groups = Vec::new();
        for group in self.unsure.drain() {
            self.loading.entry(group.clone()).or_default();
            groups.push(group);
        }
        if groups.is_empty() {
            return;
        }
        let session = Arc::clone(&self.session);
        let own = Arc::clone(&self.journal);
        let back = self.back.clone();
        let in_force = self.applied.unwrap_or_default();
        let former = match self.source.load().journals_named() {
            // A takeover that failed half way is taken up again.
            true => self.former_journals.clone(),
            false => Vec::new(),
        };
        tokio::task::spawn_blocking(move || {
            let volume = session.volume().as_ref();
            let mut journals = journal::read_left_behind(volume, &former);
            journals.push(own.read_back());
            let replay = Replay::read(journals);
            for group in groups {
                let result = recovery::resolve(&replay, volume, &group, in_force);
                // An actor that has ended loads nothing.
                let _ = back.send(Work::Internal(Internal::Loaded {
                    group,
                    result,
                    unsure: true,
                }));
            }
        });
    }

    fn wait_for(&mut self, group: String, work: Work) {
        self.loading
            .get_mut(&group)
            .expect("a group that is waited for is being read")
            .push(work);
    }

    /// Reads a group from its file, and from this broker's journal where the file alone does not tell.
    fn read(&mut self, group: String) {
        if self.behind.is_under_way(&group) {
            // The file is being written; the end of that starts the reading.
            return;
        }
        let doubts = self.doubts.clone();
        let session = Arc::clone(&self.session);
        let back = self.back.clone();
        let in_force = self.applied.unwrap_or_default();
        tokio::task::spawn_blocking(move || {
            let volume = session.volume().as_ref();
            let result = match doubts {
                Some(replay) => recovery::resolve(&replay, volume, &group, in_force),
                None => files::read(volume, &group),
            };
            // An actor that has ended loads nothing.
            let _ = back.send(Work::Internal(Internal::Loaded {
                group,
                result,
                unsure: false,
            }));
        });
    }

    /// Takes what was read into memory. False when it contradicts itself or the assignment in force.
    fn load(&mut self, now: Now, group: &str, document: Option<GroupDocument>) -> bool {
        if let Err(error) = self.manager.load(now, group, document, &mut self.out) {
            error!(group, path = files::path_of(group), %error, "the group's document cannot be used; restore it from a backup, or move it aside to start the group empty");
            return false;
        }
        for (name, id) in &self.deleted_topics {
            self.manager.topic_deleted(name, *id, &mut self.out);
        }
        true
    }

    fn loaded(
        &mut self,
        now: Now,
        group: String,
        result: Result<Option<GroupDocument>, StorageError>,
        unsure: bool,
    ) {
        let waiting = self.loading.remove(&group).unwrap_or_default();
        let usable = match result {
            Ok(document) => self.load(now, &group, document),
            Err(error) => {
                error!(group, %error, "the group cannot be read");
                false
            }
        };
        if usable {
            if unsure {
                // What the failed append left is found or not found: it becomes durable before anything is answered from it.
                self.manager.checkpoint(&group, &mut self.out);
            }
            if !self.unreadable.is_empty() {
                self.unreadable.remove(&files::path_of(&group));
            }
        } else {
            if unsure {
                self.unsure.insert(group.clone());
                self.reload_ms = Some(now.mono_ms + RELOAD_MS);
            }
            self.refused.insert(group, now.mono_ms + REFUSED_MS);
        }
        for work in waiting {
            self.take(now, work);
        }
    }

    /// The last words of groups whose former coordinator is gone, found in its journal and their files.
    fn absorb(&mut self, now: Now, mut recovered: Recovered, done: oneshot::Sender<bool>) {
        let routing_changed = self.take_up_source();
        self.ready = true;
        let mut usable = recovered.is_whole();
        for (group, word) in std::mem::take(&mut recovered.groups) {
            if self.manager.is_loaded(&group) || !self.source.load().owns_group(&group) {
                continue;
            }
            let loaded = match word {
                Ok(document) => self.load(now, &group, document),
                Err(error) => {
                    error!(group, %error, "the group cannot be taken over");
                    false
                }
            };
            if loaded {
                self.manager.checkpoint(&group, &mut self.out);
            } else {
                usable = false;
                self.lost.insert(group);
            }
        }
        self.former_journals = std::mem::take(&mut recovered.named);
        self.doubts = recovered.into_doubts().map(Arc::new);
        self.absorbed.push((usable, done));
        if routing_changed {
            self.list_files();
        }
    }

    /// Looks at the source of ownership. Nothing is taken up before the journals of former coordinators were read.
    fn follow_source(&mut self) {
        if self.ready && self.take_up_source() {
            self.list_files();
        }
    }

    /// Under a new version groups that are routed elsewhere leave (their parked calls are answered NOT_COORDINATOR).
    /// Says whether others may have been gained.
    fn take_up_source(&mut self) -> bool {
        let source = self.source.load_full();
        let granted = source.grant();
        if granted == self.applied {
            return false;
        }
        let Some(version) = granted else { return false };
        self.manager.set_term(version);
        let first = self.applied.is_none();
        self.applied = Some(version);
        let routing = source.routing();
        if !first && routing == self.routing {
            return false;
        }
        self.routing = routing;
        let local: Vec<String> = self
            .manager
            .local_groups()
            .map(|group| group.to_string())
            .collect();
        let local = local.iter().map(String::as_str);
        for group in group_takeover::leaving(local, source.as_ref().as_ref()) {
            info!(
                group,
                version, "the group is coordinated elsewhere from now on"
            );
            self.behind.forget(&group);
            self.manager.unload(&group, &mut self.out);
        }
        true
    }

    /// Reads every group file that is not in memory yet, in the background.
    fn list_files(&mut self) {
        self.relist_ms = None;
        let waiting = match std::mem::replace(&mut self.listing, Listing::Done) {
            Listing::UnderWay { waiting, .. } => waiting,
            Listing::Done => Vec::new(),
        };
        self.listing = Listing::UnderWay {
            seen: self
                .manager
                .local_groups()
                .map(|group| group.to_string())
                .collect(),
            waiting,
        };
        self.listing_number += 1;
        let number = self.listing_number;
        let doubts = self.doubts.clone();
        let in_force = self.applied.unwrap_or_default();
        let volume = Arc::clone(self.session.volume());
        let back = self.back.clone();
        tokio::task::spawn_blocking(move || {
            read_all(volume.as_ref(), number, doubts.as_deref(), in_force, &back)
        });
    }

    fn listed(&mut self, now: Now, number: u64, documents: Vec<GroupDocument>) {
        if number != self.listing_number {
            return;
        }
        for document in documents {
            let group = document.group_id.clone();
            let Listing::UnderWay { seen, .. } = &self.listing else {
                return;
            };
            let mine = !seen.contains(&group)
                && !self.lost.contains(&group)
                && !self.manager.is_loaded(&group)
                && self.source.load().owns_group(&group);
            if mine && !self.load(now, &group, Some(document)) {
                self.unreadable.insert(files::path_of(&group));
            }
        }
    }

    /// Whether every group there is is in memory, or cannot be.
    fn is_settled(&self) -> bool {
        matches!(self.listing, Listing::Done) && self.loading.is_empty() && self.unsure.is_empty()
    }

    /// Offsets of topics that were deleted when this broker, or the one before it, could not write that down any more.
    fn drop_offsets_of_deleted_topics(&mut self) {
        let topics = self.topics.table();
        if topics.has_refused() {
            // A topic whose file cannot be read is not a deleted one.
            return;
        }
        let gone: BTreeSet<(String, Uuid)> = self
            .manager
            .committed_offsets()
            .filter(|(_, _, _, committed)| committed.topic_id != Uuid::ZERO)
            .filter(|(_, _, _, committed)| topics.get_by_id(&committed.topic_id).is_none())
            .map(|(_, topic, _, committed)| (topic.to_owned(), committed.topic_id))
            .collect();
        for (topic, id) in gone {
            self.manager.topic_deleted(&topic, id, &mut self.out);
        }
    }

    fn all_listed(&mut self, now: Now, number: u64, unreadable: Vec<String>) {
        if number != self.listing_number {
            return;
        }
        self.unreadable.extend(unreadable);
        self.drop_offsets_of_deleted_topics();
        let Listing::UnderWay { waiting, .. } = std::mem::replace(&mut self.listing, Listing::Done)
        else {
            return;
        };
        info!(
            groups = self.manager.local_groups().count(),
            unreadable = self.unreadable.len(),
            "every group is in memory"
        );
        for work in waiting {
            self.take(now, work);
        }
    }

    // ---- reports of helpers

    fn report(&mut self, now: Now, report: Internal) {
        match report {
            Internal::Loaded {
                group,
                result,
                unsure,
            } => self.loaded(now, group, result, unsure),
            Internal::Listed { number, documents } => self.listed(now, number, documents),
            Internal::AllListed { number, unreadable } => self.all_listed(now, number, unreadable),
            Internal::NotListed { number } => {
                if number == self.listing_number {
                    self.relist_ms = Some(now.mono_ms + RELOAD_MS);
                }
            }
            Internal::Durable(change) => {
                self.durable = self.durable.max(change);
                self.manager.durable(self.durable);
            }
            Internal::NotDurable {
                batch,
                failed,
                upto,
            } => self.not_durable(now, batch, failed, upto),
            Internal::Trimmed(result) => {
                self.trimming = false;
                match result {
                    Ok(segments) => debug!(segments, "journal trimmed"),
                    Err(error) if error.is_fenced() => {}
                    Err(error) => {
                        warn!(%error, "the journal could not be trimmed; it is tried again")
                    }
                }
            }
            Internal::Filed {
                group,
                revision,
                result,
                removed,
            } => self.filed(now, &group, revision, removed, result),
        }
    }

    fn filed(
        &mut self,
        now: Now,
        group: &Arc<str>,
        revision: Revision,
        removed: bool,
        result: Result<(), StorageError>,
    ) {
        let written = result.is_ok();
        self.behind.finished(now.mono_ms, group, written);
        match result {
            Ok(()) => {
                self.journal.file_is(group, for_journal(revision));
                if removed && self.manager.revision(group) == Some(revision) {
                    self.manager.file_gone(group);
                    self.forget_absent(group);
                }
            }
            Err(error) if error.is_fenced() => debug!(%error, "a group file was not written"),
            Err(error) => {
                warn!(%group, %error, "the group's file could not be written; it is tried again, the journal has the state")
            }
        }
        if self.loading.contains_key(group.as_ref()) {
            self.read(group.to_string());
        }
    }

    // ---- what goes out

    fn sweep(&mut self, now: Now) {
        if now.mono_ms < self.next_sweep_ms {
            return;
        }
        self.next_sweep_ms = now.mono_ms + self.sweep_interval_ms;
        if matches!(self.listing, Listing::Done) {
            self.manager.sweep_expired(now, &mut self.out);
        }
    }

    /// Hands what was brought about to the journal and lets the answers go that need not wait for it.
    fn release(&mut self, now: Now) {
        let mut out = std::mem::take(&mut self.out);
        for effect in out.effects.drain(..) {
            facts::log(&effect);
            self.metrics.group_fact(&effect);
        }
        together(|| {
            for (to, reply, after) in out.replies.drain(..) {
                self.answer(Waiter::core(to, reply), after);
            }
        });
        self.records.clear();
        for change in out.changes.drain(..) {
            let kind = match change.kind {
                ChangeKind::Document => Kind::Document,
                ChangeKind::Offsets => Kind::Offsets,
                ChangeKind::Removed => Kind::Removed,
            };
            journal::encode(
                &mut self.records,
                kind,
                &change.group_id,
                for_journal(change.revision),
                &change.payload,
            );
            self.made = change.number;
            self.behind.changed(now.mono_ms, &change.group_id);
        }
        self.out = out;
        self.submit();
    }

    /// Adds what gathered to the journal's next batch; the answers that wait for it are let go when it is durable.
    fn submit(&mut self) {
        if self.records.is_empty() && self.waiters.is_empty() && self.absorbed.is_empty() {
            return;
        }
        let now_us = self.now_us();
        self.unsettled
            .push(self.made, now_us / 1_000, self.waiters.drain(..));
        let absorbed = self.absorbed.drain(..);
        let mut marks: Vec<Mark> = absorbed
            .map(|(usable, done)| Mark::Absorbed(usable, done))
            .collect();
        marks.push(Mark::Upto(self.made, self.clock.mono_us()));
        self.journal.submit(&self.records, &mut marks);
        self.records.clear();
    }

    /// Answers that have waited for the disk too long; what they asked for may become durable all the same.
    fn expire_waiters(&self, now: Now) {
        let Some(submitted_ms) = now.mono_ms.checked_sub(self.commit_timeout_ms) else {
            return;
        };
        let expired = self.unsettled.expire(submitted_ms);
        if !expired.is_empty() {
            warn!(
                answers = expired.len(),
                timeout_ms = self.commit_timeout_ms,
                "changes of groups were not durable in time; the volume is slow or hangs"
            );
        }
        for waiter in expired {
            waiter.fail(ErrorCode::REQUEST_TIMED_OUT);
        }
    }

    /// A batch could not be made durable. Its groups leave memory, and so does every group with a change that is not
    /// durable yet: what it holds may build on what was lost. The next request finds out what is durable.
    fn not_durable(&mut self, now: Now, batch: u64, failed: BatchFailed, upto: u64) {
        let full = failed.error.is_full();
        if !self.session.is_fenced() {
            error!(error = %failed.error, groups = failed.keys.len(), full, "changes of groups could not be made durable; their requests are refused until it works again");
        }
        let pending = self
            .manager
            .local_groups()
            .filter(|group| self.manager.pending_change(group).is_some())
            .map(|group| group.to_string());
        let groups: Vec<String> = failed
            .keys
            .into_iter()
            .chain(pending.collect::<Vec<_>>())
            .collect();
        // What waits to be written may show what was lost.
        for (_, job) in self.held.drain(..) {
            self.behind.abandoned(&job.group);
            self.behind.changed(now.mono_ms, &job.group);
        }
        for group in groups {
            self.behind.forget(&group);
            self.manager
                .append_failed(&group, ErrorCode::KAFKA_STORAGE_ERROR, &mut self.out);
            self.unsure.insert(group);
        }
        for waiter in self.unsettled.settle(upto) {
            waiter.fail(ErrorCode::KAFKA_STORAGE_ERROR);
        }
        self.durable = self.made;
        self.manager.durable(self.made);
        self.reload_ms = Some(now.mono_ms + RELOAD_MS);
        self.journal.resume(batch);
    }

    /// Starts what file operations are due, and those that waited for their change to be durable.
    fn write_files(&mut self) {
        while let Some((after, _)) = self.held.front() {
            if *after > self.durable {
                break;
            }
            let (_, job) = self.held.pop_front().expect("the front was just seen");
            self.start(job);
        }
        let now_us = self.now_us();
        while let Some(group) = self.behind.next(now_us) {
            self.prepare(group);
        }
    }

    /// Takes the picture of a group that its file is going to show.
    fn prepare(&mut self, group: Arc<str>) {
        let Some(revision) = self.manager.revision(&group) else {
            // It left memory since; whoever has it now writes its file.
            self.behind.abandoned(&group);
            return;
        };
        let operation = match self.manager.document(&group) {
            Some(document) => {
                let json = document.to_json();
                self.document_bytes = (self.document_bytes * 63 + json.len() as u64) / 64;
                Operation::Publish(json)
            }
            None => Operation::Remove,
        };
        let after = self.manager.pending_change(&group);
        let job = FileJob {
            group,
            revision,
            operation,
        };
        match after {
            Some(after) => self.held.push_back((after, job)),
            None => self.start(job),
        }
    }

    fn start(&self, job: FileJob) {
        let session = Arc::clone(&self.session);
        let back = self.back.clone();
        tokio::task::spawn_blocking(move || {
            let result = files::perform(&session, &job.group, &job.operation);
            // An actor that has ended keeps no account of files.
            let _ = back.send(Work::Internal(Internal::Filed {
                group: job.group,
                revision: job.revision,
                removed: matches!(job.operation, Operation::Remove),
                result,
            }));
        });
    }

    /// Carries on what the oldest segment holds and nobody else does, and lets it go.
    fn trim_journal(&mut self, now: Now) {
        let limit = TrimLimit {
            max_bytes: self.journal_max_bytes,
            documents_behind_bytes: self.behind.len() as u64 * self.document_bytes,
            journals_named: self.source.load().journals_named(),
        };
        if self.trimming || now.mono_ms < self.next_trim_ms || !self.journal.is_over(limit) {
            return;
        }
        self.next_trim_ms = now.mono_ms + TRIM_INTERVAL_MS;
        for (group, carry) in self.journal.wanted(limit) {
            match carry {
                Carry::Document => {
                    // What is being read back is carried on by its checkpoint.
                    let Some(document) = self.manager.document(&group) else {
                        continue;
                    };
                    let revision = for_journal(document.revision);
                    let payload = document.to_compact_json();
                    journal::encode(
                        &mut self.records,
                        Kind::Document,
                        &group,
                        revision,
                        &payload,
                    );
                }
                Carry::Removed { revision } => {
                    journal::encode(&mut self.records, Kind::Removed, &group, revision, &[]);
                }
            }
        }
        if !self.records.is_empty() {
            // The next round finds them acknowledged.
            self.submit();
            return;
        }
        self.trimming = true;
        let journal = Arc::clone(&self.journal);
        let back = self.back.clone();
        tokio::task::spawn_blocking(move || {
            // An actor that has ended trims no more.
            let _ = back.send(Work::Internal(Internal::Trimmed(journal.trim(limit))));
        });
    }

    fn snapshot(&self) -> Snapshot {
        let mut groups: BTreeMap<&Arc<str>, GroupSnapshot> = BTreeMap::new();
        for (group_id, members) in self.manager.members_by_group() {
            let group = GroupSnapshot {
                group_id: Arc::clone(group_id),
                members,
                offsets: Vec::new(),
            };
            groups.insert(group_id, group);
        }
        let mut topics: FnvHashSet<Arc<str>> = FnvHashSet::default();
        for (group_id, topic, partition, committed) in self.manager.committed_offsets() {
            let topic = match topics.get(topic) {
                Some(topic) => Arc::clone(topic),
                None => {
                    let topic: Arc<str> = Arc::from(topic);
                    topics.insert(Arc::clone(&topic));
                    topic
                }
            };
            if let Some(group) = groups.get_mut(group_id) {
                group.offsets.push(OffsetSnapshot {
                    topic,
                    partition,
                    offset: committed.offset,
                });
            }
        }
        Snapshot {
            by_state: self.manager.groups_by_state(),
            groups: groups.into_values().collect(),
        }
    }

    // ---- the end

    /// Parked calls are answered, what is durable is written to the files, and what comes meanwhile is refused.
    async fn stop(&mut self, inbox: &mut mpsc::UnboundedReceiver<Work>) {
        let now = self.now();
        let until = now.mono_ms + STOP_WRITES_MS;
        let groups: Vec<String> = self
            .manager
            .local_groups()
            .map(|group| group.to_string())
            .collect();
        for group in groups {
            self.manager.answer_parked(&group, &mut self.out);
        }
        self.release(now);
        let mut batch = Vec::new();
        while self.now().mono_ms < until && !self.session.is_fenced() {
            while let Some(group) = self.behind.next_at_once() {
                self.prepare(group);
            }
            let settled = self.durable >= self.made && self.unsettled.is_empty();
            if settled && self.behind.is_idle() {
                break;
            }
            let deadline = self.instant(until);
            tokio::select! {
                biased;
                _ = inbox.recv_many(&mut batch, BATCH) => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
            let now = self.now();
            for work in batch.drain(..) {
                match work {
                    Work::Internal(report) => self.report(now, report),
                    work => refuse(work, ErrorCode::NOT_COORDINATOR),
                }
            }
            self.release(now);
            self.write_files();
        }
        inbox.close();
        while let Ok(work) = inbox.try_recv() {
            refuse(work, ErrorCode::NOT_COORDINATOR);
        }
        info!(
            files_behind = self.behind.len(),
            "group coordination stopped"
        );
    }
}

/// What goes through the journal and comes back with the batch it was submitted with.
pub enum Mark {
    Absorbed(bool, oneshot::Sender<bool>),
    /// Everything up to this change was submitted before it, at that microsecond.
    Upto(u64, u64),
}

/// The groups at one moment, for the metrics.
#[derive(Default)]
pub struct Snapshot {
    pub by_state: BTreeMap<&'static str, usize>,
    pub groups: Vec<GroupSnapshot>,
}

/// Lets the answers of durable batches go, and tells the actor.
async fn release(
    mut batches: mpsc::UnboundedReceiver<Batch<Mark>>,
    actor: mpsc::UnboundedSender<Work>,
    unsettled: Arc<Unsettled>,
    clock: Clock,
    metrics: Arc<Metrics>,
) {
    while let Some(batch) = batches.recv().await {
        let mut upto = 0;
        let mut begun_us = None;
        let mut absorbed = Vec::new();
        for mark in batch.waiters {
            match mark {
                Mark::Upto(change, submitted_us) => {
                    upto = change;
                    begun_us.get_or_insert(submitted_us);
                }
                Mark::Absorbed(usable, done) => absorbed.push((usable, done)),
            }
        }
        if let Some(begun_us) = begun_us.filter(|_| batch.bytes > 0) {
            let took_us = clock.mono_us().saturating_sub(begun_us);
            metrics.journal_batch(batch.bytes, took_us, batch.outcome.is_ok());
        }
        let report = match batch.outcome {
            Ok(()) => {
                together(|| {
                    for waiter in unsettled.settle(upto) {
                        metrics.offsets_committed(waiter.committed());
                        waiter.send();
                    }
                });
                for (usable, done) in absorbed {
                    // Who waits for it may be gone.
                    let _ = done.send(usable);
                }
                Internal::Durable(upto)
            }
            // Dropping `absorbed` says that nothing was taken over.
            Err(failed) => Internal::NotDurable {
                batch: batch.number,
                failed,
                upto,
            },
        };
        if actor.send(Work::Internal(report)).is_err() {
            for waiter in unsettled.settle(upto) {
                waiter.fail(ErrorCode::KAFKA_STORAGE_ERROR);
            }
        }
    }
}

/// Reads all group files and sends what they hold, a part at a time. Blocks.
fn read_all(
    volume: &dyn Volume,
    number: u64,
    doubts: Option<&Replay>,
    in_force: u64,
    back: &mpsc::UnboundedSender<Work>,
) {
    let names = match files::list(volume) {
        Ok(names) => names,
        Err(error) => {
            error!(%error, "the groups' files cannot be listed; until they can, groups are read as they are asked for");
            // An actor that has ended lists nothing.
            let _ = back.send(Work::Internal(Internal::NotListed { number }));
            return;
        }
    };
    let mut unreadable = Vec::new();
    for part in names.chunks(LOAD_CHUNK) {
        let mut documents = Vec::with_capacity(part.len());
        for name in part {
            let document = match files::read_listed(volume, name) {
                // Where a journal cannot be read whole, the file alone is not the last word.
                Ok(Some(document)) => match doubts {
                    Some(replay) => recovery::resolve(replay, volume, &document.group_id, in_force),
                    None => Ok(Some(document)),
                },
                read => read,
            };
            match document {
                Ok(document) => documents.extend(document),
                Err(error) => {
                    error!(%error, "a group cannot be read; its requests are refused");
                    unreadable.push(format!("{GROUPS}/{name}"));
                }
            }
        }
        // An actor that has ended loads nothing.
        let _ = back.send(Work::Internal(Internal::Listed { number, documents }));
    }
    let _ = back.send(Work::Internal(Internal::AllListed { number, unreadable }));
}

/// Answers work that will not be done.
fn refuse(work: Work, error: ErrorCode) {
    match work {
        Work::Call(call) => refuse_call(*call, error),
        Work::Describe { request, reply, .. } => reply.send(&DescribeGroupsResponse {
            groups: request
                .groups
                .into_iter()
                .map(|group_id| DescribedGroup {
                    error_code: error,
                    group_id,
                    ..DescribedGroup::default()
                })
                .collect(),
            ..DescribeGroupsResponse::default()
        }),
        Work::List { reply, .. } => reply.send(&ListGroupsResponse {
            error_code: error,
            ..ListGroupsResponse::default()
        }),
        Work::Delete { request, reply } => reply.send(&DeleteGroupsResponse {
            results: request
                .groups_names
                .into_iter()
                .map(|group_id| DeletableGroupResult {
                    group_id,
                    error_code: error,
                    ..DeletableGroupResult::default()
                })
                .collect(),
            ..DeleteGroupsResponse::default()
        }),
        Work::Fetch { plan, reply } => {
            let answers = plan
                .groups
                .iter()
                .map(|group| offset_fetch::group_error(&group.group_id, error));
            let answers = answers.collect();
            reply.send(&plan.shape(answers));
        }
        // Nobody waits for these, or learns it from the dropped sender.
        Work::TopicDeleted { .. }
        | Work::Configure(_)
        | Work::Assigned
        | Work::Absorb { .. }
        | Work::Snapshot(_)
        | Work::Stop(_)
        | Work::Internal(_) => {}
    }
}

fn refuse_call(call: Inbound, error: ErrorCode) {
    let reply = Reply::refusal(call.version, &call.request, error);
    Waiter::core(call.to, reply).send();
}
