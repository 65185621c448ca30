//! The configuration of a broker: one table of keys with Kafka's names, from which come the struct, the defaults, the
//! parsing, the rows of `DescribeConfigs` and `docs/configs.md`. Keys of our own start with `kaas.`.
//!
//! The tables of topics and groups are in `config/topic.rs` and `config/group.rs`, Kafka's broker keys that mean nothing
//! here in `config/ignored.rs`. What an operator sets is gathered in `config/settings.rs`, what clients alter at run time is
//! layered over it in `config/live.rs`.

pub mod alter;
pub mod describe;
pub mod group;
pub mod ignored;
pub mod live;
pub mod properties;
pub mod settings;
pub mod table;
pub mod topic;
pub mod value;

use std::collections::BTreeMap;
use std::net::IpAddr;

use table::config_table;
use value::{ConfigType, ConfigValue, TimestampType, Valid};

const MIB: i64 = 1024 * 1024;
const MINUTE_MS: i64 = 60 * 1000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

config_table! {
    /// A broker's configuration. A field is its key with underscores.
    pub struct Config;

    // Who this broker is and where it listens
    "node.id" node_id: i32 = 0, AtLeast(0), ReadOnly,
        "The id of this broker, unique among the brokers of a volume.";
    "listeners" listeners: String = "PLAINTEXT://127.0.0.1:9092".to_owned(), Rule("one PLAINTEXT://HOST:PORT", check_listener), ReadOnly,
        "Where clients connect. Port 0 takes a free port and logs it.";
    "advertised.listeners" advertised_listeners: Option<String> = None, Rule("one PLAINTEXT://HOST:PORT", check_listener), ReadOnly,
        "The address that clients are told to connect to; the listener's own if unset.";
    "kaas.admin.listener" kaas_admin_listener: String = "127.0.0.1:9644".to_owned(), Rule("HOST:PORT", check_address), ReadOnly,
        "Where /healthz, /readyz, /metrics and /assignment are served over HTTP.";
    "log.dirs" log_dirs: String = "./data".to_owned(), Rule("one directory", check_directory), ReadOnly,
        "The directory of the volume: everything the broker keeps is below it. Brokers that share it are one cluster.";
    "kaas.worker.threads" kaas_worker_threads: i32 = 0, AtLeast(0), ReadOnly,
        "Threads that serve requests; 0 takes as many as there are cores.";
    "broker.session.timeout.ms" broker_session_timeout_ms: i32 = 9000, AtLeast(1), ReadOnly,
        "How long a broker may be silent before it counts as dead, and a controller before it may be overtaken.";

    // Connections and requests
    "max.connections" max_connections: i32 = i32::MAX, AtLeast(0), Dynamic,
        "Connections open at one time; a further one is closed at once.";
    "max.connections.per.ip" max_connections_per_ip: i32 = i32::MAX, AtLeast(0), Dynamic,
        "Connections open at one time from one address. 0 needs an override in max.connections.per.ip.overrides.";
    "max.connections.per.ip.overrides" max_connections_per_ip_overrides: IpLimits = IpLimits::default(), Any, Dynamic,
        "Limits of single addresses that replace max.connections.per.ip, such as 10.0.0.1:200,::1:100.";
    "connections.max.idle.ms" connections_max_idle_ms: i64 = 600_000, Any, ReadOnly,
        "A connection on which nothing was asked for this long is closed; a negative value closes none.";
    "socket.request.max.bytes" socket_request_max_bytes: i32 = 104_857_600, AtLeast(1), ReadOnly,
        "The largest request; a connection that announces a larger one is closed.";
    "queued.max.requests" queued_max_requests: i32 = 500, AtLeast(1), ReadOnly,
        "Requests read but not yet answered, over all connections; beyond it no more is read. Requests parked by design (a join, a long poll) do not count.";
    "queued.max.request.bytes" queued_max_request_bytes: i64 = -1, Any, ReadOnly,
        "Bytes of requests read but not yet answered, over all connections; beyond it no more is read. -1 leaves it to kaas.request.memory.total.max.bytes.";
    "kaas.request.memory.max.bytes" kaas_request_memory_max_bytes: i64 = 64 * MIB, AtLeast(MIB), ReadOnly,
        "Memory that decoding one request may take, its records aside; a connection that sends a larger one is closed.";
    "kaas.request.memory.connection.max.bytes" kaas_request_memory_connection_max_bytes: i64 = 128 * MIB, AtLeast(MIB), ReadOnly,
        "Memory of the unanswered requests of one connection, frames and what was decoded from them; beyond it the connection is not read.";
    "kaas.request.memory.total.max.bytes" kaas_request_memory_total_max_bytes: i64 = 1024 * MIB, AtLeast(MIB), ReadOnly,
        "Memory of the unanswered requests of all connections, frames and what was decoded from them; beyond it no more is read.";
    "kaas.response.memory.connection.max.bytes" kaas_response_memory_connection_max_bytes: i64 = 16 * MIB, AtLeast(MIB), ReadOnly,
        "Answers a connection may leave unread before its requests are no longer read.";
    "fetch.max.bytes" fetch_max_bytes: i32 = 57_671_680, AtLeast(1024), ReadOnly,
        "The most bytes of records in one answer to a fetch, whatever the client asks for.";
    "max.incremental.fetch.session.cache.slots" max_incremental_fetch_session_cache_slots: i32 = 1000, AtLeast(0), ReadOnly,
        "Incremental fetch sessions kept at one time; 0 keeps none, and every fetch is a full one.";

    // Topics
    "auto.create.topics.enable" auto_create_topics_enable: bool = true, Any, Dynamic,
        "Whether asking for a topic that does not exist creates it.";
    "delete.topic.enable" delete_topic_enable: bool = true, Any, Dynamic,
        "Whether topics may be deleted.";
    "num.partitions" num_partitions: i32 = 1, AtLeast(1), Dynamic,
        "Partitions of a topic that is created without a number.";
    "default.replication.factor" default_replication_factor: i32 = 1, AtLeast(1), Dynamic,
        "The replication factor reported for topics created without one. The volume keeps one copy whatever it is.";

    // Consumer groups
    "group.min.session.timeout.ms" group_min_session_timeout_ms: i32 = 6000, Any, Dynamic,
        "The shortest session timeout that a member of a classic group may ask for.";
    "group.max.session.timeout.ms" group_max_session_timeout_ms: i32 = 1_800_000, Any, Dynamic,
        "The longest session timeout that a member of a classic group may ask for.";
    "group.initial.rebalance.delay.ms" group_initial_rebalance_delay_ms: i32 = 3000, Any, Dynamic,
        "How long the first rebalance of an empty classic group waits for more members.";
    "group.max.size" group_max_size: i32 = i32::MAX, AtLeast(1), Dynamic,
        "The most members of a classic group.";
    "kaas.group.membership.durable" kaas_group_membership_durable: bool = true, Any, ReadOnly,
        "Whether members and assignments are kept on the volume, so that a move or a restart costs no rebalance. If not, members rejoin.";

    // Committed offsets
    "offset.metadata.max.bytes" offset_metadata_max_bytes: i32 = 4096, Any, Dynamic,
        "The longest metadata of a committed offset, in UTF-16 code units.";
    "offsets.retention.minutes" offsets_retention_minutes: i32 = 10_080, AtLeast(1), Dynamic,
        "How long offsets are kept after their group became empty or stopped subscribing to the topic.";
    "offsets.retention.check.interval.ms" offsets_retention_check_interval_ms: i64 = 600_000, AtLeast(1), Dynamic,
        "How often expired offsets are looked for.";
    "offsets.commit.timeout.ms" offsets_commit_timeout_ms: i32 = 5000, AtLeast(1), Dynamic,
        "How long a commit may take to become durable before it is answered with an error.";
    "kaas.offsets.file.interval.ms" kaas_offsets_file_interval_ms: i64 = 1000, AtLeast(1), ReadOnly,
        "The file of a group is written at most once in this time. A commit does not wait for it: it is durable in the journal.";
    "kaas.offsets.file.rate" kaas_offsets_file_rate: i32 = 200, AtLeast(1), ReadOnly,
        "Group files written in a second at most, over all groups.";
    "kaas.journal.max.bytes" kaas_journal_max_bytes: i64 = 64 * MIB, AtLeast(32 * MIB), ReadOnly,
        "The size of the journal above which its oldest segment is given up, once what it holds is elsewhere.";

    // Producers and transactions
    "producer.id.expiration.ms" producer_id_expiration_ms: i32 = 86_400_000, AtLeast(1), Dynamic,
        "How long a partition remembers an idempotent producer that writes nothing.";
    "transaction.max.timeout.ms" transaction_max_timeout_ms: i32 = 900_000, AtLeast(1), ReadOnly,
        "The longest transaction timeout that a producer may ask for.";

    // Defaults of topics
    "message.max.bytes" message_max_bytes: i32 = 1_048_588, AtLeast(0), Dynamic,
        "The largest record batch, for topics without max.message.bytes.";
    "log.cleanup.policy" log_cleanup_policy: Vec<String> = vec!["delete".to_owned()], EachOf(&["compact", "delete"]), Dynamic,
        "What happens to old records, for topics without cleanup.policy.";
    "log.retention.ms" log_retention_ms: Option<i64> = None, Rule("-1, or at least 1", check_retention), Dynamic,
        "How long records are kept, for topics without retention.ms; -1 keeps them. If unset, log.retention.minutes holds.";
    "log.retention.minutes" log_retention_minutes: Option<i32> = None, Rule("negative, or at least 1", check_retention), ReadOnly,
        "How long records are kept, if log.retention.ms is unset. If unset, log.retention.hours holds.";
    "log.retention.hours" log_retention_hours: i32 = 168, Rule("negative, or at least 1", check_retention), ReadOnly,
        "How long records are kept, if neither log.retention.ms nor log.retention.minutes is set.";
    "log.retention.bytes" log_retention_bytes: i64 = -1, Any, Dynamic,
        "How large a partition may grow before its oldest segments go, for topics without retention.bytes; -1 sets no bound.";
    "log.retention.check.interval.ms" log_retention_check_interval_ms: i64 = 300_000, AtLeast(1), ReadOnly,
        "How often segments that may go are looked for.";
    "log.roll.ms" log_roll_ms: Option<i64> = None, AtLeast(1), Dynamic,
        "The age at which a new segment is begun, for topics without segment.ms. If unset, log.roll.hours holds.";
    "log.roll.hours" log_roll_hours: i32 = 168, AtLeast(1), ReadOnly,
        "The age at which a new segment is begun, if log.roll.ms is unset.";
    "log.roll.jitter.ms" log_roll_jitter_ms: Option<i64> = None, AtLeast(0), Dynamic,
        "The most by which the age of log.roll.ms is varied, for topics without segment.jitter.ms. If unset, log.roll.jitter.hours holds.";
    "log.roll.jitter.hours" log_roll_jitter_hours: i32 = 0, AtLeast(0), ReadOnly,
        "The most by which the age of log.roll.ms is varied, if log.roll.jitter.ms is unset.";
    "log.segment.bytes" log_segment_bytes: i32 = 1_073_741_824, AtLeast(MIB), Dynamic,
        "The size at which a new segment is begun, for topics without segment.bytes.";
    "log.segment.delete.delay.ms" log_segment_delete_delay_ms: i64 = 60_000, AtLeast(0), Dynamic,
        "How long a deleted segment's file is kept for reads under way, for topics without file.delete.delay.ms.";
    "log.index.interval.bytes" log_index_interval_bytes: i32 = 4096, AtLeast(0), Dynamic,
        "Bytes of records between two entries of an index, for topics without index.interval.bytes.";
    "log.index.size.max.bytes" log_index_size_max_bytes: i32 = 10_485_760, AtLeast(4), Dynamic,
        "The largest index of a segment, for topics without segment.index.bytes.";
    "log.flush.interval.messages" log_flush_interval_messages: i64 = 1, AtLeast(1), Dynamic,
        "Records after which a partition is flushed, for topics without flush.messages. Kafka's default is never; ours is 1: acks=all is answered when the records are on disk, many appends sharing one flush.";
    "log.flush.interval.ms" log_flush_interval_ms: Option<i64> = None, AtLeast(0), Dynamic,
        "How long records may stay unflushed, for topics without flush.ms. If unset, log.flush.scheduler.interval.ms holds.";
    "log.flush.scheduler.interval.ms" log_flush_scheduler_interval_ms: i64 = i64::MAX, AtLeast(0), ReadOnly,
        "How long records may stay unflushed, if log.flush.interval.ms is unset.";
    "log.message.timestamp.type" log_message_timestamp_type: TimestampType = TimestampType::CreateTime, OneOf(&["CreateTime", "LogAppendTime"]), Dynamic,
        "Whose time records carry, the producer's or the broker's, for topics without message.timestamp.type.";
    "log.message.timestamp.before.max.ms" log_message_timestamp_before_max_ms: i64 = i64::MAX, AtLeast(0), Dynamic,
        "How far a record's time may be in the past, for topics without message.timestamp.before.max.ms.";
    "log.message.timestamp.after.max.ms" log_message_timestamp_after_max_ms: i64 = HOUR_MS, AtLeast(0), Dynamic,
        "How far a record's time may be in the future, for topics without message.timestamp.after.max.ms.";
    "log.cleaner.delete.retention.ms" log_cleaner_delete_retention_ms: i64 = 24 * HOUR_MS, AtLeast(0), Dynamic,
        "How long compaction keeps a deletion marker, for topics without delete.retention.ms.";
    "log.cleaner.min.compaction.lag.ms" log_cleaner_min_compaction_lag_ms: i64 = 0, AtLeast(0), Dynamic,
        "How long a record stays out of compaction, for topics without min.compaction.lag.ms.";
    "log.cleaner.max.compaction.lag.ms" log_cleaner_max_compaction_lag_ms: i64 = i64::MAX, AtLeast(1), Dynamic,
        "How long a record may stay out of compaction, for topics without max.compaction.lag.ms.";
    "log.cleaner.min.cleanable.ratio" log_cleaner_min_cleanable_ratio: f64 = 0.5, Fraction(0.0, 1.0), Dynamic,
        "The share of a log that must be uncompacted before it is compacted, for topics without min.cleanable.dirty.ratio.";
}

impl Config {
    /// `retention.ms` of topics that do not set it; -1 is for ever.
    pub fn topic_retention_ms(&self) -> i64 {
        let retention_ms = match (self.log_retention_ms, self.log_retention_minutes) {
            (Some(ms), _) => ms,
            (None, Some(minutes)) => i64::from(minutes) * MINUTE_MS,
            (None, None) => i64::from(self.log_retention_hours) * HOUR_MS,
        };
        retention_ms.max(-1)
    }

    /// `segment.ms` of topics that do not set it.
    pub fn topic_segment_ms(&self) -> i64 {
        self.log_roll_ms
            .unwrap_or(i64::from(self.log_roll_hours) * HOUR_MS)
    }

    /// `segment.jitter.ms` of topics that do not set it.
    pub fn topic_segment_jitter_ms(&self) -> i64 {
        self.log_roll_jitter_ms
            .unwrap_or(i64::from(self.log_roll_jitter_hours) * HOUR_MS)
    }

    /// `flush.ms` of topics that do not set it.
    pub fn topic_flush_ms(&self) -> i64 {
        self.log_flush_interval_ms
            .unwrap_or(self.log_flush_scheduler_interval_ms)
    }

    /// HOST:PORT to listen on; the host is empty for every address of the machine.
    pub fn listen_address(&self) -> &str {
        without_protocol(&self.listeners)
    }

    /// HOST:PORT that clients are told, if it is not the listener's own.
    pub fn advertised_address(&self) -> Option<&str> {
        self.advertised_listeners.as_deref().map(without_protocol)
    }

    /// Checks what no key can be asked for alone. The error names the keys and the remedy.
    fn check(&self) -> Result<(), String> {
        let largest_request = i64::from(self.socket_request_max_bytes);
        if self.queued_max_request_bytes > 0 && self.queued_max_request_bytes < largest_request {
            return Err(
                "queued.max.request.bytes must be larger or equal to socket.request.max.bytes; \
                        raise the one or lower the other"
                    .to_owned(),
            );
        }
        if self.kaas_request_memory_connection_max_bytes
            < largest_request.max(self.kaas_request_memory_max_bytes)
        {
            return Err("kaas.request.memory.connection.max.bytes must hold the largest request: raise it to \
                        socket.request.max.bytes and kaas.request.memory.max.bytes, or lower those"
                .to_owned());
        }
        if self.kaas_request_memory_total_max_bytes < self.kaas_request_memory_connection_max_bytes
        {
            return Err("kaas.request.memory.total.max.bytes must not be less than \
                        kaas.request.memory.connection.max.bytes; raise the one or lower the other"
                .to_owned());
        }
        if self.max_connections_per_ip == 0 && self.max_connections_per_ip_overrides.0.is_empty() {
            return Err("max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides names \
                        the addresses that may connect"
                .to_owned());
        }
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms {
            return Err("group.min.session.timeout.ms must not be above group.max.session.timeout.ms, or no member \
                        can join; lower the one or raise the other"
                .to_owned());
        }
        if self.log_cleaner_min_compaction_lag_ms > self.log_cleaner_max_compaction_lag_ms {
            return Err("log.cleaner.min.compaction.lag.ms must not be above log.cleaner.max.compaction.lag.ms; \
                        lower the one or raise the other"
                .to_owned());
        }
        Ok(())
    }

    /// How many connections one address may hold.
    pub fn connection_limit(&self, ip: IpAddr) -> i32 {
        self.max_connections_per_ip_overrides
            .0
            .get(&ip)
            .copied()
            .unwrap_or(self.max_connections_per_ip)
    }
}

/// Why the broker does not start with what it was told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{file}:{line}: {reason}")]
    File {
        file: String,
        line: usize,
        reason: String,
    },
    #[error("--set {0} is not of the form KEY=VALUE")]
    Argument(String),
    #[error("{origin}: unknown key {key}{suggestion}")]
    Unknown {
        origin: String,
        key: String,
        suggestion: String,
    },
    #[error("{origin}: {key}={value}: {reason}; {remedy}")]
    Invalid {
        origin: String,
        key: &'static str,
        value: String,
        reason: String,
        remedy: String,
    },
    #[error("{reason}; set are {told}")]
    Contradiction { reason: String, told: String },
}

fn without_protocol(listener: &str) -> &str {
    listener
        .split_once("://")
        .map_or(listener, |(_, address)| address)
}

/// Connection limits of single addresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IpLimits(pub BTreeMap<IpAddr, i32>);

impl ConfigValue for IpLimits {
    const TYPE: ConfigType = ConfigType::String;

    fn parse(text: &str) -> Result<IpLimits, String> {
        let mut limits = BTreeMap::new();
        for entry in text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            let Some((ip, limit)) = entry.rsplit_once(':') else {
                return Err(format!("{entry} is not of the form ADDRESS:LIMIT"));
            };
            let address = ip.trim_start_matches('[').trim_end_matches(']');
            let Ok(address) = address.parse() else {
                return Err(format!(
                    "{ip} is not an IP address; host names are not resolved"
                ));
            };
            match limit.trim().parse() {
                Ok(limit) if limit >= 0 => limits.insert(address, limit),
                _ => return Err(format!("{limit} is not a number of connections")),
            };
        }
        Ok(IpLimits(limits))
    }

    fn show(&self) -> Option<String> {
        Some(
            self.0
                .iter()
                .map(|(ip, limit)| format!("{ip}:{limit}"))
                .collect::<Vec<_>>()
                .join(","),
        )
    }

    fn check(&self, _: &Valid) -> Result<(), String> {
        Ok(())
    }
}

fn check_listener(text: &str) -> Result<(), String> {
    let Some(address) = text.strip_prefix("PLAINTEXT://") else {
        return Err("it must be one listener of the form PLAINTEXT://HOST:PORT".to_owned());
    };
    check_address(address)
}

fn check_address(text: &str) -> Result<(), String> {
    match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() && !host.contains([',', '/']) => Ok(()),
        _ => Err("it must be one HOST:PORT".to_owned()),
    }
}

fn check_directory(text: &str) -> Result<(), String> {
    if text.is_empty() || text.contains(',') {
        Err("it must be one directory".to_owned())
    } else {
        Ok(())
    }
}

fn check_retention(text: &str) -> Result<(), String> {
    if text == "0" {
        Err("it must be negative (for ever) or at least 1".to_owned())
    } else {
        Ok(())
    }
}
