//! The configuration of a topic: Kafka's keys, what a topic inherits from its broker, and what it may override.

use std::collections::BTreeMap;

use super::Config;
use super::alter::AlterError;
use super::table::{Configuration, config_table};
use super::value::TimestampType;

/// Overrides as a topic's file and `CreateTopics` carry them: key to text.
pub type Overrides = BTreeMap<String, String>;

config_table! {
    /// A topic's configuration in effect: its overrides over what its broker says. A field is its key with underscores.
    pub struct TopicConfig;

    "cleanup.policy" cleanup_policy: Vec<String> = vec!["delete".to_owned()], EachOf(&["compact", "delete"]), Dynamic,
        "What happens to old records: delete drops whole segments, compact keeps the last record of each key. Empty keeps everything.";
    "compression.gzip.level" compression_gzip_level: i32 = -1, BetweenOr(1, 9, -1), Dynamic,
        "Kept for Kafka's tools. Batches are stored as the producer compressed them.";
    "compression.lz4.level" compression_lz4_level: i32 = 9, Between(1, 17), Dynamic,
        "Kept for Kafka's tools. Batches are stored as the producer compressed them.";
    "compression.type" compression_type: String = "producer".to_owned(), OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]), Dynamic,
        "Kept for Kafka's tools. Batches are stored as the producer compressed them.";
    "compression.zstd.level" compression_zstd_level: i32 = 3, Between(-131_072, 22), Dynamic,
        "Kept for Kafka's tools. Batches are stored as the producer compressed them.";
    "delete.retention.ms" delete_retention_ms: i64 = 86_400_000, AtLeast(0), Dynamic,
        "How long compaction keeps a deletion marker.";
    "errors.deadletterqueue.group.enable" errors_deadletterqueue_group_enable: bool = false, Any, Dynamic,
        "Kept for Kafka's tools. No dead-letter queue writes here.";
    "file.delete.delay.ms" file_delete_delay_ms: i64 = 60_000, AtLeast(0), Dynamic,
        "How long a deleted segment's file is kept for reads under way.";
    "flush.messages" flush_messages: i64 = 1, AtLeast(1), Dynamic,
        "Records after which a partition is flushed. 1, the default here, makes acks=all mean on disk; Kafka's default is never.";
    "flush.ms" flush_ms: i64 = i64::MAX, AtLeast(0), Dynamic,
        "How long records may stay unflushed.";
    "follower.replication.throttled.replicas" follower_replication_throttled_replicas: Vec<String> = Vec::new(), Rule("* or PARTITION:BROKER,...", check_replicas), Dynamic,
        "Kept for Kafka's tools. There is no replication to throttle.";
    "index.interval.bytes" index_interval_bytes: i32 = 4096, AtLeast(0), Dynamic,
        "Bytes of records between two entries of an index.";
    "internal.segment.bytes" internal_segment_bytes: Option<i32> = None, Any, Dynamic,
        "The size at which a new segment is begun, without a lower bound. For tests; it goes before segment.bytes.";
    "leader.replication.throttled.replicas" leader_replication_throttled_replicas: Vec<String> = Vec::new(), Rule("* or PARTITION:BROKER,...", check_replicas), Dynamic,
        "Kept for Kafka's tools. There is no replication to throttle.";
    "local.retention.bytes" local_retention_bytes: i64 = -2, AtLeast(-2), Dynamic,
        "Kept for Kafka's tools. There is no tiered storage.";
    "local.retention.ms" local_retention_ms: i64 = -2, AtLeast(-2), Dynamic,
        "Kept for Kafka's tools. There is no tiered storage.";
    "max.compaction.lag.ms" max_compaction_lag_ms: i64 = i64::MAX, AtLeast(1), Dynamic,
        "How long a record may stay out of compaction.";
    "max.decompressed.message.bytes" max_decompressed_message_bytes: i32 = 2_147_483_639, Between(1, 2_147_483_639), Dynamic,
        "Kept for Kafka's tools. Batches are not decompressed to be stored.";
    "max.message.bytes" max_message_bytes: i32 = 1_048_588, AtLeast(0), Dynamic,
        "The largest record batch.";
    "message.timestamp.after.max.ms" message_timestamp_after_max_ms: i64 = 3_600_000, AtLeast(0), Dynamic,
        "How far a record's time may be in the future when message.timestamp.type is CreateTime.";
    "message.timestamp.before.max.ms" message_timestamp_before_max_ms: i64 = i64::MAX, AtLeast(0), Dynamic,
        "How far a record's time may be in the past when message.timestamp.type is CreateTime.";
    "message.timestamp.type" message_timestamp_type: TimestampType = TimestampType::CreateTime, OneOf(&["CreateTime", "LogAppendTime"]), Dynamic,
        "Whose time records carry: the producer's, or the broker's on append.";
    "min.cleanable.dirty.ratio" min_cleanable_dirty_ratio: f64 = 0.5, Fraction(0.0, 1.0), Dynamic,
        "The share of a log that must be uncompacted before it is compacted.";
    "min.compaction.lag.ms" min_compaction_lag_ms: i64 = 0, AtLeast(0), Dynamic,
        "How long a record stays out of compaction.";
    "min.insync.replicas" min_insync_replicas: i32 = 1, AtLeast(1), Dynamic,
        "Kept for Kafka's tools. A record is acknowledged when the volume has it.";
    "preallocate" preallocate: bool = false, Any, Dynamic,
        "Kept for Kafka's tools.";
    "remote.copy.lag.bytes" remote_copy_lag_bytes: i64 = -1, AtLeast(-1), Dynamic,
        "Kept for Kafka's tools. There is no tiered storage.";
    "remote.copy.lag.ms" remote_copy_lag_ms: i64 = 0, AtLeast(-1), Dynamic,
        "Kept for Kafka's tools. There is no tiered storage.";
    "remote.log.copy.disable" remote_log_copy_disable: bool = false, Any, Dynamic,
        "Kept for Kafka's tools. There is no tiered storage.";
    "remote.log.delete.on.disable" remote_log_delete_on_disable: bool = false, Any, Dynamic,
        "Kept for Kafka's tools. There is no tiered storage.";
    "remote.storage.enable" remote_storage_enable: bool = false, Any, Dynamic,
        "There is no tiered storage: true is refused.";
    "retention.bytes" retention_bytes: i64 = -1, Any, Dynamic,
        "How large a partition may grow before its oldest segments go; -1 sets no bound.";
    "retention.ms" retention_ms: i64 = 604_800_000, AtLeast(-1), Dynamic,
        "How long records are kept; -1 keeps them.";
    "segment.bytes" segment_bytes: i32 = 1_073_741_824, AtLeast(1_048_576), Dynamic,
        "The size at which a new segment is begun.";
    "segment.index.bytes" segment_index_bytes: i32 = 10_485_760, AtLeast(4), Dynamic,
        "The largest index of a segment.";
    "segment.jitter.ms" segment_jitter_ms: i64 = 0, AtLeast(0), Dynamic,
        "The most by which segment.ms is varied, so that segments do not all end at one time.";
    "segment.ms" segment_ms: i64 = 604_800_000, AtLeast(1), Dynamic,
        "The age at which a new segment is begun.";
    "unclean.leader.election.enable" unclean_leader_election_enable: bool = false, Any, Dynamic,
        "Kept for Kafka's tools. A leader always finds every acknowledged record on the volume.";
}

/// The broker key a topic key takes its default from, as Kafka's `DescribeConfigs` names it.
const BROKER_KEYS: &[(&str, &str)] = &[
    ("cleanup.policy", "log.cleanup.policy"),
    ("compression.gzip.level", "compression.gzip.level"),
    ("compression.lz4.level", "compression.lz4.level"),
    ("compression.type", "compression.type"),
    ("compression.zstd.level", "compression.zstd.level"),
    ("delete.retention.ms", "log.cleaner.delete.retention.ms"),
    ("file.delete.delay.ms", "log.segment.delete.delay.ms"),
    ("flush.messages", "log.flush.interval.messages"),
    ("flush.ms", "log.flush.interval.ms"),
    ("index.interval.bytes", "log.index.interval.bytes"),
    ("local.retention.bytes", "log.local.retention.bytes"),
    ("local.retention.ms", "log.local.retention.ms"),
    ("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    (
        "max.decompressed.message.bytes",
        "max.decompressed.message.bytes",
    ),
    ("max.message.bytes", "message.max.bytes"),
    (
        "message.timestamp.after.max.ms",
        "log.message.timestamp.after.max.ms",
    ),
    (
        "message.timestamp.before.max.ms",
        "log.message.timestamp.before.max.ms",
    ),
    ("message.timestamp.type", "log.message.timestamp.type"),
    (
        "min.cleanable.dirty.ratio",
        "log.cleaner.min.cleanable.ratio",
    ),
    ("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"),
    ("min.insync.replicas", "min.insync.replicas"),
    ("preallocate", "log.preallocate"),
    ("remote.copy.lag.bytes", "log.remote.copy.lag.bytes"),
    ("remote.copy.lag.ms", "log.remote.copy.lag.ms"),
    ("retention.bytes", "log.retention.bytes"),
    ("retention.ms", "log.retention.ms"),
    ("segment.bytes", "log.segment.bytes"),
    ("segment.index.bytes", "log.index.size.max.bytes"),
    ("segment.jitter.ms", "log.roll.jitter.ms"),
    ("segment.ms", "log.roll.ms"),
    (
        "unclean.leader.election.enable",
        "unclean.leader.election.enable",
    ),
];

impl TopicConfig {
    /// The configuration of a topic that overrides nothing.
    pub fn inherited(broker: &Config) -> TopicConfig {
        TopicConfig {
            cleanup_policy: broker.log_cleanup_policy.clone(),
            delete_retention_ms: broker.log_cleaner_delete_retention_ms,
            file_delete_delay_ms: broker.log_segment_delete_delay_ms,
            flush_messages: broker.log_flush_interval_messages,
            flush_ms: broker.topic_flush_ms(),
            index_interval_bytes: broker.log_index_interval_bytes,
            max_compaction_lag_ms: broker.log_cleaner_max_compaction_lag_ms,
            max_message_bytes: broker.message_max_bytes,
            message_timestamp_after_max_ms: broker.log_message_timestamp_after_max_ms,
            message_timestamp_before_max_ms: broker.log_message_timestamp_before_max_ms,
            message_timestamp_type: broker.log_message_timestamp_type,
            min_cleanable_dirty_ratio: broker.log_cleaner_min_cleanable_ratio,
            min_compaction_lag_ms: broker.log_cleaner_min_compaction_lag_ms,
            retention_bytes: broker.log_retention_bytes,
            retention_ms: broker.topic_retention_ms(),
            segment_bytes: broker.log_segment_bytes,
            segment_index_bytes: broker.log_index_size_max_bytes,
            segment_jitter_ms: broker.topic_segment_jitter_ms(),
            segment_ms: broker.topic_segment_ms(),
            ..TopicConfig::default()
        }
    }

    /// The configuration of a topic with these overrides, or why they are refused, in Kafka's words (`INVALID_CONFIG`).
    pub fn with_overrides(
        broker: &Config,
        overrides: &Overrides,
    ) -> Result<TopicConfig, AlterError> {
        for name in overrides.keys() {
            if TopicConfig::key(name).is_none() {
                return Err(AlterError::InvalidConfig(format!(
                    "Unknown topic config name: {name}"
                )));
            }
        }
        let mut config = TopicConfig::inherited(broker);
        for key in TopicConfig::keys() {
            if let Some(text) = overrides.get(key.name) {
                key.set(&mut config, text)?;
            }
        }
        if config.min_compaction_lag_ms > config.max_compaction_lag_ms {
            return Err(AlterError::InvalidConfig(format!(
                "conflict topic config setting min.compaction.lag.ms ({}) > max.compaction.lag.ms ({})",
                config.min_compaction_lag_ms, config.max_compaction_lag_ms
            )));
        }
        if config.remote_storage_enable {
            return Err(AlterError::InvalidConfig(
                "Tiered Storage functionality is disabled in the broker. \
                 Topic cannot be configured with remote log storage."
                    .to_owned(),
            ));
        }
        Ok(config)
    }

    /// The size at which a new segment is begun.
    pub fn segment_size(&self) -> i32 {
        self.internal_segment_bytes.unwrap_or(self.segment_bytes)
    }

    pub fn is_compacted(&self) -> bool {
        self.cleanup_policy.iter().any(|policy| policy == "compact")
    }

    pub fn is_deleted_from(&self) -> bool {
        self.cleanup_policy.iter().any(|policy| policy == "delete")
    }
}

/// The broker key whose value a topic without an override for `name` has.
pub fn broker_key(name: &str) -> Option<&'static str> {
    BROKER_KEYS
        .iter()
        .find(|(topic_key, _)| *topic_key == name)
        .map(|(_, broker_key)| *broker_key)
}

/// Kafka hides its internal keys unless a topic overrides them.
pub fn is_internal(name: &str) -> bool {
    name.starts_with("internal.")
}

fn check_replicas(text: &str) -> Result<(), String> {
    let is_replica = |entry: &str| {
        entry.split_once(':').is_some_and(|(partition, broker)| {
            partition.parse::<u32>().is_ok() && broker.parse::<u32>().is_ok()
        })
    };
    if text.is_empty() || text == "*" || text.split(',').all(is_replica) {
        Ok(())
    } else {
        Err(
            "it must be the literal '*' or a list of replicas in the following format: \
             [partitionId]:[brokerId],[partitionId]:[brokerId],..."
                .to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(key: &str, value: &str) -> String {
        let overrides = Overrides::from([(key.to_owned(), value.to_owned())]);
        match TopicConfig::with_overrides(&Config::default(), &overrides) {
            Err(AlterError::InvalidConfig(message)) => message,
            other => panic!("{key}={value} gives {other:?}"),
        }
    }

    #[test]
    fn refusals_are_worded_as_kafka_words_them() {
        for (key, value, message) in [
            (
                "retention.ms",
                "abc",
                "Invalid value abc for configuration retention.ms: Not a number of type LONG",
            ),
            (
                "retention.ms",
                "-5",
                "Invalid value -5 for configuration retention.ms: Value must be at least -1",
            ),
            (
                "retention.ms",
                "",
                "Invalid value  for configuration retention.ms: Not a number of type LONG",
            ),
            (
                "cleanup.policy",
                "foo",
                "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
            ),
            (
                "compression.type",
                "none",
                "Invalid value none for configuration compression.type: \
                 String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
            ),
            (
                "preallocate",
                "maybe",
                "Invalid value maybe for configuration preallocate: Expected value to be either true or false",
            ),
            (
                "min.cleanable.dirty.ratio",
                "2",
                "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
            ),
            (
                "min.cleanable.dirty.ratio",
                "-1",
                "Invalid value -1.0 for configuration min.cleanable.dirty.ratio: Value must be at least 0",
            ),
            (
                "segment.bytes",
                "3000000000",
                "Invalid value 3000000000 for configuration segment.bytes: Not a number of type INT",
            ),
            (
                "cleanup.policy",
                "compact,,delete",
                "Invalid value compact,,delete for configuration cleanup.policy: values must not be empty",
            ),
            ("foo", "bar", "Unknown topic config name: foo"),
            (
                "message.timestamp.type",
                "x",
                "Invalid value x for configuration message.timestamp.type: String must be one of: CreateTime, LogAppendTime",
            ),
            (
                "compression.gzip.level",
                "0",
                "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
            ),
            (
                "compression.lz4.level",
                "20",
                "Invalid value 20 for configuration compression.lz4.level: Value must be no more than 17",
            ),
            (
                "remote.storage.enable",
                "true",
                "Tiered Storage functionality is disabled in the broker. \
                 Topic cannot be configured with remote log storage.",
            ),
        ] {
            assert_eq!(refused(key, value), message);
        }
        let overrides = Overrides::from(
            [
                ("min.compaction.lag.ms", "100"),
                ("max.compaction.lag.ms", "10"),
            ]
            .map(|(k, v)| (k.to_owned(), v.to_owned())),
        );
        assert_eq!(
            TopicConfig::with_overrides(&Config::default(), &overrides)
                .unwrap_err()
                .to_string(),
            "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (10)"
        );
    }

    #[test]
    fn what_kafka_accepts_is_accepted() {
        for (key, value) in [
            ("retention.ms", "0"),
            ("retention.ms", " 77 "),
            ("cleanup.policy", ""),
            ("cleanup.policy", "compact, delete"),
            ("preallocate", "TRUE"),
            ("min.cleanable.dirty.ratio", "1e-3"),
            ("compression.gzip.level", "-1"),
            ("leader.replication.throttled.replicas", "0:1,1:2"),
            ("leader.replication.throttled.replicas", "*"),
            ("leader.replication.throttled.replicas", ""),
            ("internal.segment.bytes", "10"),
            ("min.insync.replicas", "5"),
            ("errors.deadletterqueue.group.enable", "true"),
        ] {
            let overrides = Overrides::from([(key.to_owned(), value.to_owned())]);
            TopicConfig::with_overrides(&Config::default(), &overrides).unwrap();
        }
    }

    #[test]
    fn a_topic_that_overrides_nothing_has_its_brokers_values() {
        let default = TopicConfig::default();
        assert_eq!(TopicConfig::inherited(&Config::default()), default);
        for (topic_key, broker_key) in BROKER_KEYS {
            let Some(key) = Config::key(broker_key) else {
                continue;
            };
            let text = match key.name {
                "log.message.timestamp.type" => "LogAppendTime",
                "log.cleanup.policy" => "compact",
                "log.cleaner.min.cleanable.ratio" => "0.25",
                _ => "7340032",
            };
            let mut broker = Config::default();
            key.set(&mut broker, text).unwrap();
            let mut expected = default.clone();
            TopicConfig::key(topic_key)
                .unwrap()
                .set(&mut expected, text)
                .unwrap();
            assert_eq!(TopicConfig::inherited(&broker), expected, "{broker_key}");
            assert_ne!(expected, default, "{broker_key}");
        }
    }
}
