//! The configuration of a broker: one table of keys with Kafka's names, from which come the struct, the defaults, the
//! parsing, the rows of `DescribeConfigs` and `docs/configs.md`. Keys of our own start with `kaas.`.
//!
//! The tables of topics and groups are in `config/topic.rs` and `config/group.rs`, Kafka's broker keys that mean nothing
//! here in `config/ignored.rs`. What an operator sets is gathered in `config/settings.rs`, what clients alter at run time is
//! layered over it in `config/live.rs`.

pub mod alter;
pub mod describe;
pub mod docs;
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
        "Connections open at one time; a further one waits to be accepted until one closes.";
    "max.connections.per.ip" max_connections_per_ip: i32 = i32::MAX, AtLeast(0), Dynamic,
        "Connections open at one time from one address; a further one is closed at once. 0 needs an override in max.connections.per.ip.overrides.";
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::group::{ClientMetricsConfig, GroupConfig};
    use super::table::{Configuration, Key};
    use super::topic::TopicConfig;
    use super::*;

    /// Scope, name, type, default and range of the keys here, as Apache Kafka 4.4.0 declares them.
    const KAFKA: &str = include_str!("config/kafka-4.4.tsv");

    fn for_every_key(mut check: impl FnMut(&str, KeyFacts)) {
        fn facts<C: Configuration>(scope: &str, check: &mut dyn FnMut(&str, KeyFacts)) {
            for key in C::keys() {
                check(scope, KeyFacts::of(key));
            }
        }
        facts::<Config>("broker", &mut check);
        facts::<TopicConfig>("topic", &mut check);
        facts::<GroupConfig>("group", &mut check);
        facts::<ClientMetricsConfig>("clientmetrics", &mut check);
    }

    struct KeyFacts {
        name: &'static str,
        field: &'static str,
        kind: ConfigType,
        default: Option<String>,
        valid: Valid,
        /// What the default's text comes to when it is set: shown again, or why it is refused.
        set_again: Option<Result<Option<String>, String>>,
    }

    impl KeyFacts {
        fn of<C: Configuration>(key: &Key<C>) -> KeyFacts {
            let mut config = C::default();
            let set_again =
                key.default
                    .as_ref()
                    .map(|default| match key.set(&mut config, default) {
                        Ok(()) => Ok(key.get(&config)),
                        Err(invalid) => Err(invalid.to_string()),
                    });
            KeyFacts {
                name: key.name,
                field: key.field,
                kind: key.kind,
                default: key.default.clone(),
                valid: key.valid,
                set_again,
            }
        }
    }

    #[test]
    fn every_default_is_within_its_range_and_reads_back_as_itself() {
        for_every_key(|_, key| {
            if let Some(outcome) = key.set_again {
                assert_eq!(outcome, Ok(key.default), "{}", key.name);
            }
        });
    }

    #[test]
    fn a_field_is_its_key_with_underscores() {
        for_every_key(|_, key| {
            assert_eq!(
                key.field.trim_start_matches("r#"),
                key.name.replace('.', "_")
            )
        });
    }

    #[test]
    fn no_key_is_declared_twice() {
        let mut seen = BTreeMap::new();
        for_every_key(|scope, key| {
            assert!(
                seen.insert((scope.to_owned(), key.name), ()).is_none(),
                "{}",
                key.name
            );
        });
        for name in ignored::names() {
            assert!(
                seen.insert(("broker".to_owned(), name), ()).is_none(),
                "{name}"
            );
        }
    }

    #[test]
    fn every_broker_key_of_kafka_4_4_is_known() {
        let acting = Config::keys()
            .iter()
            .filter(|key| !key.name.starts_with("kaas."))
            .count();
        let without_effect = ignored::REASONS
            .iter()
            .map(|reason| reason.keys.len())
            .sum::<usize>();
        let aliases = ["broker.id", "log.dir"].len();
        let declared = 379;
        let only_dynamic = 3;
        assert_eq!(acting + without_effect + aliases, declared + only_dynamic);
    }

    #[test]
    fn the_defaults_together_contradict_nothing() {
        assert_eq!(Config::default().check(), Ok(()));
    }

    #[test]
    fn types_defaults_and_ranges_are_kafkas_but_for_these() {
        let mut kafka = BTreeMap::new();
        for line in KAFKA.lines() {
            let mut columns = line.split('\t');
            let mut column = || columns.next().unwrap_or("").to_owned();
            kafka.insert(
                (column(), column()),
                [column().to_lowercase(), column(), column()],
            );
        }
        let mut differences = Vec::new();
        for_every_key(|scope, key| {
            if key.name.starts_with("kaas.") {
                return;
            }
            let ours = [
                key.kind.name().to_owned(),
                key.default.unwrap_or("null".to_owned()),
                kafkas_words(&key.valid),
            ];
            let theirs = &kafka
                .remove(&(scope.to_owned(), key.name.to_owned()))
                .expect(key.name);
            if ours != *theirs {
                differences.push(format!(
                    "{scope} {}: {} for {}",
                    key.name,
                    ours.join(" "),
                    theirs.join(" ")
                ));
            }
        });
        assert_eq!(kafka.into_keys().collect::<Vec<_>>(), []);
        let expected = [
            "broker node.id: int 0 [0,...] for int <none> [0,...]",
            "broker listeners: string PLAINTEXT://127.0.0.1:9092 one PLAINTEXT://HOST:PORT for list PLAINTEXT://:9092 ",
            "broker advertised.listeners: string null one PLAINTEXT://HOST:PORT for list null ",
            "broker log.dirs: string ./data one directory for list null ",
            "broker broker.session.timeout.ms: int 9000 [1,...] for int 9000 ",
            "broker default.replication.factor: int 1 [1,...] for int 1 ",
            "broker log.retention.ms: long null -1, or at least 1 for long null ",
            "broker log.retention.minutes: int null negative, or at least 1 for int null ",
            "broker log.retention.hours: int 168 negative, or at least 1 for int 168 ",
            "broker log.roll.ms: long null [1,...] for long null ",
            "broker log.roll.jitter.ms: long null [0,...] for long null ",
            "broker log.flush.interval.messages: long 1 [1,...] for long 9223372036854775807 [1,...]",
            "broker log.flush.interval.ms: long null [0,...] for long null ",
            "broker log.flush.scheduler.interval.ms: long 9223372036854775807 [0,...] for long 9223372036854775807 ",
            "topic flush.messages: long 1 [1,...] for long 9223372036854775807 [1,...]",
            "topic follower.replication.throttled.replicas: list  * or PARTITION:BROKER,... for list  \
             [partitionId]:[brokerId],[partitionId]:[brokerId],...",
            "topic leader.replication.throttled.replicas: list  * or PARTITION:BROKER,... for list  \
             [partitionId]:[brokerId],[partitionId]:[brokerId],...",
            "group share.auto.offset.reset: string latest  for string latest [latest, earliest, by_duration:PnDTnHnMn.nS]",
            "group streams.assignor.name: string sticky  for string null ",
            "clientmetrics interval.ms: int 300000 [100,...,3600000] for int 300000 ",
        ];
        assert_eq!(differences, expected);
    }

    fn kafkas_words(valid: &Valid) -> String {
        match *valid {
            Valid::Any => String::new(),
            Valid::AtLeast(low) => format!("[{low},...]"),
            Valid::Between(low, high) => format!("[{low},...,{high}]"),
            Valid::BetweenOr(low, high, other) => format!("[{low},...,{high}] or {other}"),
            Valid::Fraction(low, high) => format!("[{low},...,{high}]"),
            Valid::OneOf(choices) | Valid::EachOf(choices) => format!("[{}]", choices.join(", ")),
            Valid::Rule(text, _) => text.to_owned(),
        }
    }

    #[test]
    fn the_coarser_unit_of_a_key_counts_only_if_the_finer_is_unset() {
        let mut config = Config {
            log_retention_hours: 2,
            log_roll_hours: 3,
            log_roll_jitter_hours: 4,
            ..Config::default()
        };
        assert_eq!(config.topic_retention_ms(), 2 * HOUR_MS);
        config.log_retention_minutes = Some(5);
        assert_eq!(config.topic_retention_ms(), 5 * MINUTE_MS);
        config.log_retention_ms = Some(7);
        assert_eq!(config.topic_retention_ms(), 7);
        config.log_retention_ms = Some(-20);
        assert_eq!(config.topic_retention_ms(), -1);
        assert_eq!(
            (config.topic_segment_ms(), config.topic_segment_jitter_ms()),
            (3 * HOUR_MS, 4 * HOUR_MS)
        );
        config.log_roll_ms = Some(8);
        config.log_roll_jitter_ms = Some(9);
        assert_eq!(
            (config.topic_segment_ms(), config.topic_segment_jitter_ms()),
            (8, 9)
        );
        assert_eq!(config.topic_flush_ms(), i64::MAX);
        config.log_flush_scheduler_interval_ms = 10;
        assert_eq!(config.topic_flush_ms(), 10);
        config.log_flush_interval_ms = Some(11);
        assert_eq!(config.topic_flush_ms(), 11);
    }

    #[test]
    fn an_address_may_have_a_connection_limit_of_its_own() {
        let limits = IpLimits::parse("10.0.0.1:200, ::1:100,[fe80::2]:3").unwrap();
        let config = Config {
            max_connections_per_ip: 7,
            max_connections_per_ip_overrides: limits,
            ..Config::default()
        };
        let limit = |ip: &str| config.connection_limit(ip.parse().unwrap());
        assert_eq!(
            (
                limit("10.0.0.1"),
                limit("::1"),
                limit("fe80::2"),
                limit("10.0.0.2")
            ),
            (200, 100, 3, 7)
        );
        assert_eq!(
            IpLimits::parse("10.0.0.1").unwrap_err(),
            "10.0.0.1 is not of the form ADDRESS:LIMIT"
        );
        assert_eq!(
            IpLimits::parse("localhost:5").unwrap_err(),
            "localhost is not an IP address; host names are not resolved"
        );
        assert_eq!(
            IpLimits::parse("::1:-5").unwrap_err(),
            "-5 is not a number of connections"
        );
    }

    #[test]
    fn a_listener_is_one_plain_host_and_port() {
        for (text, listens_on) in [
            ("PLAINTEXT://:9092", ":9092"),
            ("PLAINTEXT://[::1]:0", "[::1]:0"),
            ("PLAINTEXT://a:1", "a:1"),
        ] {
            assert_eq!(check_listener(text), Ok(()));
            assert_eq!(
                Config {
                    listeners: text.to_owned(),
                    ..Config::default()
                }
                .listen_address(),
                listens_on
            );
        }
        for text in [
            "a:1",
            "SSL://a:1",
            "PLAINTEXT://a",
            "PLAINTEXT://a:99999",
            "PLAINTEXT://a:1,PLAINTEXT://b:2",
        ] {
            assert!(check_listener(text).is_err(), "{text}");
        }
    }
}
