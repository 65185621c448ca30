//! What the broker counts, and the page that Prometheus reads.
//!
//! Counting is cheap enough for the hot path: requests go to counters of the thread's own, the rest to single atomics.
//! What other parts hold (groups, partitions, connections) is asked of them when the page is read, through `Sources`.

mod counters;
mod exporter;
mod exposition;
mod process;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use kaas_coordinator::effect::{
    Effect, GroupRemovalReason, OffsetRemovalReason, RebalanceReason, RemovalReason,
};
use kaas_wire::ErrorCode;
use kaas_wire::api_key::ApiKey;

use counters::{Counter, Histogram, PerThread, Totals};
use exposition::Page;

use crate::server::Meter;

/// Api keys with counters of their own; what is above shares the last.
const APIS: usize = 96;

/// Error codes with counters of their own, from -1 on; what is above shares the last.
const ERRORS: usize = 160;

#[derive(Default)]
struct Api {
    took: Histogram,
    request_bytes: Counter,
    response_bytes: Counter,
}

/// Counters of the whole broker.
pub struct Metrics {
    apis: PerThread<Box<[Api]>>,
    /// By api key, made when the first error of that API is answered.
    errors: Box<[OnceLock<Box<[Counter]>>]>,
    connections_opened: Counter,
    connections_closed: Counter,
    connections_refused_per_ip: Counter,
    protocol_errors: Counter,
    rebalances: [Counter; RebalanceReason::ALL.len()],
    rebalance_took: Histogram,
    members_added: Counter,
    members_removed: [Counter; REMOVALS.len()],
    groups_created: Counter,
    groups_removed: [Counter; GROUP_REMOVALS.len()],
    offsets_committed: Counter,
    offsets_removed: [Counter; OFFSET_REMOVALS.len()],
    journal_bytes: Counter,
    journal_failures: Counter,
    journal_took: Histogram,
    flush_failures: Counter,
    flush_took: Histogram,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            apis: PerThread::new(|| (0..=APIS).map(|_| Api::default()).collect()),
            errors: (0..=APIS).map(|_| OnceLock::new()).collect(),
            connections_opened: Counter::default(),
            connections_closed: Counter::default(),
            connections_refused_per_ip: Counter::default(),
            protocol_errors: Counter::default(),
            rebalances: Default::default(),
            rebalance_took: Histogram::default(),
            members_added: Counter::default(),
            members_removed: Default::default(),
            groups_created: Counter::default(),
            groups_removed: Default::default(),
            offsets_committed: Counter::default(),
            offsets_removed: Default::default(),
            journal_bytes: Counter::default(),
            journal_failures: Counter::default(),
            journal_took: Histogram::default(),
            flush_failures: Counter::default(),
            flush_took: Histogram::default(),
        }
    }
}

impl Meter for Metrics {
    fn connection_opened(&self) {
        self.connections_opened.add(1);
    }

    fn connection_closed(&self) {
        self.connections_closed.add(1);
    }

    fn connection_refused(&self) {
        self.connections_refused_per_ip.add(1);
    }

    fn protocol_error(&self) {
        self.protocol_errors.add(1);
    }

    fn answered(
        &self,
        api_key: i16,
        _version: i16,
        took_us: u64,
        request_bytes: usize,
        response_bytes: usize,
    ) {
        let api = &self.apis.mine()[api_slot(api_key)];
        api.took.observe(took_us);
        api.request_bytes.add(request_bytes as u64);
        api.response_bytes.add(response_bytes as u64);
    }

    fn error(&self, api_key: i16, code: ErrorCode, count: u64) {
        let slot = &self.errors[api_slot(api_key)];
        let of_api = slot.get_or_init(|| (0..=ERRORS).map(|_| Counter::default()).collect());
        let at = usize::try_from(i32::from(code.0) + 1).map_or(ERRORS, |at| at.min(ERRORS));
        of_api[at].add(count);
    }
}

impl Metrics {
    /// Offsets that were committed durably.
    pub fn offsets_committed(&self, partitions: usize) {
        self.offsets_committed.add(partitions as u64);
    }

    /// A batch of the journal that was written, synced and fenced, or failed.
    pub fn journal_batch(&self, bytes: usize, took_us: u64, durable: bool) {
        self.journal_took.observe(took_us);
        self.journal_bytes.add(bytes as u64);
        self.journal_failures.add(u64::from(!durable));
    }

    /// An append of records that became durable so long after it was written, or did not.
    pub fn log_flush(&self, took_us: u64, durable: bool) {
        self.flush_took.observe(took_us);
        self.flush_failures.add(u64::from(!durable));
    }

    /// What happened in a group.
    pub fn group_fact(&self, effect: &Effect) {
        match effect {
            Effect::GroupCreated { .. } => self.groups_created.add(1),
            Effect::MemberAdded { .. } => self.members_added.add(1),
            Effect::MemberRemoved { reason, .. } => {
                self.members_removed[removal_slot(*reason)].add(1)
            }
            Effect::RebalanceStarted { reason, .. } => {
                let at = RebalanceReason::ALL
                    .iter()
                    .position(|listed| listed == reason);
                self.rebalances[at.expect("ALL lists every reason")].add(1);
            }
            Effect::RebalanceComplete { took_ms, .. } => {
                self.rebalance_took.observe(took_ms * 1000)
            }
            Effect::GroupRemoved { reason, .. } => {
                self.groups_removed[group_removal_slot(*reason)].add(1)
            }
            Effect::OffsetsRemoved { count, reason, .. } => {
                self.offsets_removed[offset_removal_slot(*reason)].add(*count as u64);
            }
            _ => {}
        }
    }

    /// The page, with what the other parts hold now.
    pub fn page(&self, snapshot: &Snapshot) -> String {
        let mut page = Page::default();
        page.head(
            "kaas_build_info",
            "gauge",
            "The version that runs; the value is 1.",
        )
        .sample(
            "kaas_build_info",
            &[("version", &env!("CARGO_PKG_VERSION"))],
            1,
        );
        page.gauge("kaas_node_id", "The id of this broker.", snapshot.node_id);
        self.write_requests(&mut page);
        self.write_connections(&mut page, snapshot);
        self.write_groups(&mut page, snapshot);
        self.write_disk(&mut page);
        exporter::write(&mut page, snapshot);
        process::write(&mut page);
        page.into_text()
    }

    fn write_requests(&self, page: &mut Page) {
        let apis: Vec<(String, Totals, u64, u64)> = (0..=APIS)
            .filter_map(|slot| {
                let mut took = Totals::default();
                let (mut request_bytes, mut response_bytes) = (0, 0);
                for apis in self.apis.all() {
                    took.add(&apis[slot].took);
                    request_bytes += apis[slot].request_bytes.get();
                    response_bytes += apis[slot].response_bytes.get();
                }
                (took.count() > 0).then(|| (api_name(slot), took, request_bytes, response_bytes))
            })
            .collect();
        page.head(
            "kaas_requests_total",
            "counter",
            "Requests that were answered.",
        );
        for (api, took, ..) in &apis {
            page.sample("kaas_requests_total", &[("api", api)], took.count());
        }
        page.head("kaas_request_bytes_total", "counter", "Bytes of requests.");
        for (api, _, request_bytes, _) in &apis {
            page.sample("kaas_request_bytes_total", &[("api", api)], request_bytes);
        }
        page.head("kaas_response_bytes_total", "counter", "Bytes of answers.");
        for (api, _, _, response_bytes) in &apis {
            page.sample("kaas_response_bytes_total", &[("api", api)], response_bytes);
        }
        page.head(
            "kaas_request_duration_seconds",
            "histogram",
            "From reading a request to its answer, waiting on purpose included.",
        );
        for (api, took, ..) in &apis {
            page.histogram("kaas_request_duration_seconds", &[("api", api)], took);
        }
        page.head(
            "kaas_response_errors_total",
            "counter",
            "Error codes in answers.",
        );
        for (slot, of_api) in self.errors.iter().enumerate() {
            for (at, count) in of_api.get().into_iter().flatten().enumerate() {
                if count.get() > 0 {
                    let code = ErrorCode(at as i16 - 1);
                    page.sample(
                        "kaas_response_errors_total",
                        &[("api", &api_name(slot)), ("error", &code)],
                        count.get(),
                    );
                }
            }
        }
        let commits = apis
            .iter()
            .find(|(api, ..)| api == "OffsetCommit")
            .map(|(_, took, ..)| took.clone());
        let commits = commits.unwrap_or_default();
        page.counter(
            "kaas_offset_commits_total",
            "OffsetCommit requests that were answered.",
            commits.count(),
        );
        page.head(
            "kaas_offset_commit_duration_seconds",
            "histogram",
            "From reading a commit to its answer.",
        );
        page.histogram("kaas_offset_commit_duration_seconds", &[], &commits);
        page.counter(
            "kaas_offsets_committed_total",
            "Offsets that were committed, one for each partition.",
            self.offsets_committed.get(),
        );
    }

    fn write_connections(&self, page: &mut Page, snapshot: &Snapshot) {
        let (closed, opened) = (self.connections_closed.get(), self.connections_opened.get());
        page.gauge(
            "kaas_connections",
            "Connections of clients that are open.",
            opened.saturating_sub(closed),
        );
        page.counter(
            "kaas_connections_accepted_total",
            "Connections that were accepted.",
            opened,
        );
        page.head(
            "kaas_connections_refused_total",
            "counter",
            "Connections closed on being accepted.",
        );
        page.sample(
            "kaas_connections_refused_total",
            &[("reason", &"max.connections.per.ip")],
            self.connections_refused_per_ip.get(),
        );
        page.counter(
            "kaas_connections_protocol_errors_total",
            "Connections closed for what they sent.",
            self.protocol_errors.get(),
        );
        page.head(
            "kaas_connections_limit",
            "gauge",
            "How many connections there may be.",
        );
        for (limit, value) in &snapshot.connection_limits {
            page.sample("kaas_connections_limit", &[("limit", limit)], value);
        }
    }

    fn write_groups(&self, page: &mut Page, snapshot: &Snapshot) {
        page.head(
            "kaas_groups",
            "gauge",
            "Groups that this broker coordinates and has in memory, by state.",
        );
        for (state, count) in &snapshot.groups_by_state {
            page.sample("kaas_groups", &[("state", state)], count);
        }
        let members: usize = snapshot.groups.iter().map(|group| group.members).sum();
        page.gauge("kaas_group_members", "Members of those groups.", members);
        page.head(
            "kaas_group_rebalances_total",
            "counter",
            "Rebalances that were started, by reason.",
        );
        for (reason, count) in RebalanceReason::ALL.iter().zip(&self.rebalances) {
            page.sample(
                "kaas_group_rebalances_total",
                &[("reason", &reason.label())],
                count.get(),
            );
        }
        page.head(
            "kaas_group_rebalance_duration_seconds",
            "histogram",
            "From the start of a rebalance to Stable.",
        );
        page.histogram(
            "kaas_group_rebalance_duration_seconds",
            &[],
            &self.rebalance_took.totals(),
        );
        page.counter(
            "kaas_group_members_added_total",
            "Members that joined.",
            self.members_added.get(),
        );
        page.head(
            "kaas_group_members_removed_total",
            "counter",
            "Members that left or were removed, by reason.",
        );
        for (label, count) in REMOVALS.iter().zip(&self.members_removed) {
            page.sample(
                "kaas_group_members_removed_total",
                &[("reason", label)],
                count.get(),
            );
        }
        page.counter(
            "kaas_groups_created_total",
            "Groups that came to be.",
            self.groups_created.get(),
        );
        page.head(
            "kaas_groups_removed_total",
            "counter",
            "Groups that ceased to be, by reason.",
        );
        for (label, count) in GROUP_REMOVALS.iter().zip(&self.groups_removed) {
            page.sample(
                "kaas_groups_removed_total",
                &[("reason", label)],
                count.get(),
            );
        }
        page.head(
            "kaas_offsets_removed_total",
            "counter",
            "Committed offsets that were removed, by reason.",
        );
        for (label, count) in OFFSET_REMOVALS.iter().zip(&self.offsets_removed) {
            page.sample(
                "kaas_offsets_removed_total",
                &[("reason", label)],
                count.get(),
            );
        }
    }

    fn write_disk(&self, page: &mut Page) {
        let journal = self.journal_took.totals();
        page.counter(
            "kaas_journal_batches_total",
            "Batches of the journal.",
            journal.count(),
        );
        page.counter(
            "kaas_journal_bytes_total",
            "Bytes of records in the journal.",
            self.journal_bytes.get(),
        );
        page.counter(
            "kaas_journal_failures_total",
            "Batches that failed.",
            self.journal_failures.get(),
        );
        page.head(
            "kaas_journal_batch_duration_seconds",
            "histogram",
            "Writing, syncing and fencing a batch.",
        );
        page.histogram("kaas_journal_batch_duration_seconds", &[], &journal);
        page.counter(
            "kaas_log_flush_failures_total",
            "Flushes that failed.",
            self.flush_failures.get(),
        );
        page.head(
            "kaas_log_flush_duration_seconds",
            "histogram",
            "Syncing and fencing partition logs.",
        );
        page.histogram(
            "kaas_log_flush_duration_seconds",
            &[],
            &self.flush_took.totals(),
        );
    }
}

/// What other parts of the broker hold at one time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub node_id: i32,
    /// Id and HOST:PORT of the brokers that are alive.
    pub brokers: Vec<(i32, String)>,
    /// Name and number of partitions.
    pub topics: Vec<(Arc<str>, i32)>,
    /// Those this broker leads.
    pub partitions: Vec<PartitionSnapshot>,
    pub groups_by_state: BTreeMap<&'static str, usize>,
    /// Those this broker has in memory.
    pub groups: Vec<GroupSnapshot>,
    /// The limit's key, and the limit.
    pub connection_limits: Vec<(&'static str, i64)>,
}

#[derive(Clone, Debug)]
pub struct PartitionSnapshot {
    pub topic: Arc<str>,
    pub partition: i32,
    pub log_start_offset: i64,
    pub high_watermark: i64,
    /// Bytes.
    pub size: u64,
}

#[derive(Clone, Debug)]
pub struct GroupSnapshot {
    pub group_id: Arc<str>,
    pub members: usize,
    pub offsets: Vec<OffsetSnapshot>,
}

#[derive(Clone, Debug)]
pub struct OffsetSnapshot {
    pub topic: Arc<str>,
    pub partition: i32,
    pub offset: i64,
}

/// Who knows what the other parts hold.
pub trait Sources: Send + Sync + 'static {
    fn snapshot(&self) -> Pin<Box<dyn Future<Output = Snapshot> + Send + '_>>;
}

/// Labels of what `removal_slot`, `group_removal_slot` and `offset_removal_slot` give, in that order.
const REMOVALS: [&str; 5] = [
    "left",
    "session_expired",
    "did_not_rejoin",
    "did_not_sync",
    "group_full",
];
const GROUP_REMOVALS: [&str; 2] = ["deleted", "expired"];
const OFFSET_REMOVALS: [&str; 3] = ["expired", "deleted", "topic_deleted"];

fn removal_slot(reason: RemovalReason) -> usize {
    match reason {
        RemovalReason::Left => 0,
        RemovalReason::SessionExpired => 1,
        RemovalReason::DidNotRejoin => 2,
        RemovalReason::DidNotSync => 3,
        RemovalReason::GroupFull => 4,
    }
}

fn group_removal_slot(reason: GroupRemovalReason) -> usize {
    match reason {
        GroupRemovalReason::Deleted => 0,
        GroupRemovalReason::Expired => 1,
    }
}

fn offset_removal_slot(reason: OffsetRemovalReason) -> usize {
    match reason {
        OffsetRemovalReason::Expired => 0,
        OffsetRemovalReason::Deleted => 1,
        OffsetRemovalReason::TopicDeleted => 2,
    }
}

fn api_slot(api_key: i16) -> usize {
    usize::try_from(api_key).map_or(APIS, |slot| slot.min(APIS))
}

fn api_name(slot: usize) -> String {
    ApiKey(slot as i16).name().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(page: &str, line: &str) {
        assert!(
            page.lines().any(|found| found == line),
            "{line} is not in\n{page}"
        );
    }

    fn group(id: &str, members: usize, offsets: &[(&str, i32, i64)]) -> GroupSnapshot {
        let offset = |(topic, partition, offset): &(&str, i32, i64)| OffsetSnapshot {
            topic: (*topic).into(),
            partition: *partition,
            offset: *offset,
        };
        GroupSnapshot {
            group_id: id.into(),
            members,
            offsets: offsets.iter().map(offset).collect(),
        }
    }

    fn partition(
        topic: &str,
        partition: i32,
        log_start_offset: i64,
        high_watermark: i64,
    ) -> PartitionSnapshot {
        PartitionSnapshot {
            topic: topic.into(),
            partition,
            log_start_offset,
            high_watermark,
            size: 7,
        }
    }

    #[test]
    fn requests_are_counted_by_api_from_all_threads() {
        let metrics = Arc::new(Metrics::default());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let metrics = metrics.clone();
                std::thread::spawn(move || metrics.answered(8, 9, 2_000, 100, 10))
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        metrics.answered(12, 4, 10, 50, 5);
        metrics.answered(-7, 0, 10, 1, 0);
        metrics.answered(9999, 0, 10, 1, 0);
        let page = metrics.page(&Snapshot::default());
        has(&page, "kaas_requests_total{api=\"OffsetCommit\"} 4");
        has(&page, "kaas_requests_total{api=\"Heartbeat\"} 1");
        has(&page, "kaas_requests_total{api=\"unknown\"} 2");
        has(&page, "kaas_request_bytes_total{api=\"OffsetCommit\"} 400");
        has(&page, "kaas_response_bytes_total{api=\"OffsetCommit\"} 40");
        has(
            &page,
            "kaas_request_duration_seconds_bucket{api=\"OffsetCommit\",le=\"0.001\"} 0",
        );
        has(
            &page,
            "kaas_request_duration_seconds_bucket{api=\"OffsetCommit\",le=\"0.0025\"} 4",
        );
        has(
            &page,
            "kaas_request_duration_seconds_sum{api=\"OffsetCommit\"} 0.008",
        );
        has(&page, "kaas_offset_commits_total 4");
        has(&page, "kaas_offset_commit_duration_seconds_count 4");
    }

    #[test]
    fn error_codes_are_counted_by_api_and_name() {
        let metrics = Metrics::default();
        metrics.error(11, ErrorCode::UNKNOWN_MEMBER_ID, 2);
        metrics.error(0, ErrorCode::UNKNOWN_SERVER_ERROR, 1);
        let page = metrics.page(&Snapshot::default());
        has(
            &page,
            "kaas_response_errors_total{api=\"JoinGroup\",error=\"UNKNOWN_MEMBER_ID\"} 2",
        );
        has(
            &page,
            "kaas_response_errors_total{api=\"Produce\",error=\"UNKNOWN_SERVER_ERROR\"} 1",
        );
        assert_eq!(page.matches("kaas_response_errors_total{").count(), 2);
    }

    #[test]
    fn rebalances_and_removals_are_counted_by_reason() {
        let metrics = Metrics::default();
        metrics.group_fact(&Effect::RebalanceStarted {
            group_id: "g".into(),
            generation: 1,
            reason: RebalanceReason::SessionExpired,
            client_reason: None,
            members: 2,
            waiting_for: Vec::new(),
            waiting_count: 0,
            timeout_ms: 5,
        });
        metrics.group_fact(&Effect::MemberRemoved {
            group_id: "g".into(),
            member_id: "m".into(),
            instance_id: None,
            reason: RemovalReason::DidNotSync,
            members: 1,
        });
        let reason = OffsetRemovalReason::TopicDeleted;
        metrics.group_fact(&Effect::OffsetsRemoved {
            group_id: "g".into(),
            count: 3,
            reason,
        });
        let page = metrics.page(&Snapshot::default());
        has(
            &page,
            "kaas_group_rebalances_total{reason=\"session_expired\"} 1",
        );
        has(
            &page,
            "kaas_group_rebalances_total{reason=\"new_member\"} 0",
        );
        has(
            &page,
            "kaas_group_members_removed_total{reason=\"did_not_sync\"} 1",
        );
        has(
            &page,
            "kaas_offsets_removed_total{reason=\"topic_deleted\"} 3",
        );
    }

    #[test]
    fn connections_open_are_those_accepted_less_those_closed() {
        let metrics = Metrics::default();
        for _ in 0..3 {
            metrics.connection_opened();
        }
        metrics.connection_closed();
        metrics.connection_refused();
        let limits = vec![("max.connections", 9)];
        let page = metrics.page(&Snapshot {
            connection_limits: limits,
            ..Snapshot::default()
        });
        has(&page, "kaas_connections 2");
        has(&page, "kaas_connections_accepted_total 3");
        has(
            &page,
            "kaas_connections_refused_total{reason=\"max.connections.per.ip\"} 1",
        );
        has(&page, "kaas_connections_limit{limit=\"max.connections\"} 9");
    }

    #[test]
    fn lag_has_the_names_that_dashboards_for_kafka_exporter_ask_for() {
        let snapshot = Snapshot {
            node_id: 4,
            brokers: vec![(4, "a:9092".to_owned())],
            topics: vec![("t".into(), 3)],
            partitions: vec![partition("t", 0, 2, 10), partition("t", 1, 0, 20)],
            groups_by_state: BTreeMap::from([("Stable", 1)]),
            groups: vec![
                group("g\"1", 2, &[("t", 1, 5), ("u", 0, 1), ("t", 0, 12)]),
                group("empty", 0, &[]),
            ],
            connection_limits: Vec::new(),
        };
        let page = Metrics::default().page(&snapshot);
        for line in [
            "kafka_brokers 1",
            "kafka_broker_info{id=\"4\",address=\"a:9092\"} 1",
            "kafka_topic_partitions{topic=\"t\"} 3",
            "kafka_topic_partition_current_offset{topic=\"t\",partition=\"1\"} 20",
            "kafka_topic_partition_oldest_offset{topic=\"t\",partition=\"0\"} 2",
            "kafka_topic_partition_leader{topic=\"t\",partition=\"0\"} 4",
            "kafka_consumergroup_members{consumergroup=\"g\\\"1\"} 2",
            "kafka_consumergroup_members{consumergroup=\"empty\"} 0",
            "kafka_consumergroup_current_offset{consumergroup=\"g\\\"1\",topic=\"t\",partition=\"1\"} 5",
            "kafka_consumergroup_current_offset_sum{consumergroup=\"g\\\"1\",topic=\"t\"} 17",
            "kafka_consumergroup_lag{consumergroup=\"g\\\"1\",topic=\"t\",partition=\"1\"} 15",
            "kafka_consumergroup_lag{consumergroup=\"g\\\"1\",topic=\"t\",partition=\"0\"} 0",
            "kafka_consumergroup_lag_sum{consumergroup=\"g\\\"1\",topic=\"t\"} 15",
            "kaas_log_size_bytes{topic=\"t\",partition=\"0\"} 7",
            "kaas_groups{state=\"Stable\"} 1",
            "kaas_group_members 2",
            "kaas_metrics_offsets_left_out 0",
        ] {
            has(&page, line);
        }
        assert!(
            !page.contains("topic=\"u\",partition=\"0\"} -"),
            "the lag of what another broker leads is unknown"
        );
        assert!(!page.contains("kafka_consumergroup_lag{consumergroup=\"g\\\"1\",topic=\"u\""));
    }

    #[test]
    fn a_page_holds_a_bounded_number_of_offsets() {
        let many: Vec<(&str, i32, i64)> = (0..exporter::MAX_OFFSETS as i32)
            .map(|at| ("t", at, 0))
            .collect();
        let groups = vec![group("few", 0, &[("t", 0, 1)]), group("many", 0, &many)];
        let page = Metrics::default().page(&Snapshot {
            groups,
            ..Snapshot::default()
        });
        has(
            &page,
            &format!("kaas_metrics_offsets_left_out {}", many.len()),
        );
        assert_eq!(
            page.matches("kafka_consumergroup_current_offset{").count(),
            1
        );
    }

    #[test]
    fn every_sample_follows_the_head_of_its_family_and_no_family_comes_twice() {
        let metrics = Metrics::default();
        metrics.answered(8, 9, 1, 1, 1);
        metrics.error(8, ErrorCode::ILLEGAL_GENERATION, 1);
        let snapshot = Snapshot {
            brokers: vec![(0, "a:1".to_owned())],
            topics: vec![("t".into(), 1)],
            partitions: vec![partition("t", 0, 0, 1)],
            groups: vec![group("g", 1, &[("t", 0, 1)])],
            ..Snapshot::default()
        };
        let page = metrics.page(&snapshot);
        let mut seen = std::collections::BTreeSet::new();
        let mut family = String::new();
        for line in page.lines() {
            if let Some(head) = line.strip_prefix("# TYPE ") {
                family = head.split(' ').next().unwrap().to_owned();
                assert!(seen.insert(family.clone()), "{family} comes twice");
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().unwrap();
                let suffixes = ["", "_bucket", "_sum", "_count"];
                assert!(
                    suffixes
                        .iter()
                        .any(|suffix| name == format!("{family}{suffix}")),
                    "{name} under {family}"
                );
                let value = line.rsplit(' ').next().unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }
}
