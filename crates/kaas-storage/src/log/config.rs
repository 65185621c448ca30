//! What a topic's configuration says about its logs. Field names are Kafka's keys with underscores; units last.

/// Kafka's topic-level keys that the log obeys, with Kafka 4.4's defaults except `flush_messages`, which is 1 here:
/// an acknowledged record is on the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    pub segment_bytes: u64,
    pub segment_ms: i64,
    /// Up to this much is taken off `segment_ms`, by a fixed share per partition, so that they do not all roll at once.
    pub segment_jitter_ms: i64,
    pub retention_ms: Option<i64>,
    pub retention_bytes: Option<u64>,
    pub max_message_bytes: usize,
    pub message_timestamp_type: TimestampType,
    pub message_timestamp_before_max_ms: i64,
    pub message_timestamp_after_max_ms: i64,
    /// 1: records become visible, and acks=all is answered, when they are on the disk. Larger: they are visible and
    /// acknowledged at once, and a flush starts whenever this many have gathered.
    pub flush_messages: u64,
    /// A flush starts when a record has waited this long (none: never by time).
    pub flush_ms: Option<i64>,
    pub index_interval_bytes: u32,
    pub cleanup_policy: CleanupPolicy,
    pub delete_retention_ms: i64,
    pub min_compaction_lag_ms: i64,
    pub min_cleanable_dirty_ratio: f64,
    pub producer_id_expiration_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

/// `cleanup.policy`: `delete`, `compact`, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupPolicy {
    pub delete: bool,
    pub compact: bool,
}

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            segment_jitter_ms: 0,
            retention_ms: Some(7 * 24 * 3_600_000),
            retention_bytes: None,
            max_message_bytes: 1_048_588,
            message_timestamp_type: TimestampType::CreateTime,
            message_timestamp_before_max_ms: i64::MAX,
            message_timestamp_after_max_ms: 3_600_000,
            flush_messages: 1,
            flush_ms: None,
            index_interval_bytes: 4096,
            cleanup_policy: CleanupPolicy {
                delete: true,
                compact: false,
            },
            delete_retention_ms: 24 * 3_600_000,
            min_compaction_lag_ms: 0,
            min_cleanable_dirty_ratio: 0.5,
            producer_id_expiration_ms: 24 * 3_600_000,
        }
    }
}

impl LogConfig {
    /// With the default dial a record is acknowledged and visible only once it is on the disk.
    pub(crate) fn flushes_every_append(&self) -> bool {
        self.flush_messages <= 1
    }
}
