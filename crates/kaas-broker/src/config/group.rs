//! The configurations of groups and of client metrics subscriptions. What they configure is not served yet, so nothing
//! overrides them; `DescribeConfigs` answers with their defaults, as Kafka does for a group nobody configured.

use super::describe::{self, ConfigEntry};
use super::table::config_table;

config_table! {
    /// What a group of a newer protocol may override.
    pub struct GroupConfig;

    "consumer.assignment.interval.ms" consumer_assignment_interval_ms: i32 = 1000, AtLeast(0), Dynamic,
        "The least time between two assignments of a consumer group.";
    "consumer.heartbeat.interval.ms" consumer_heartbeat_interval_ms: i32 = 5000, AtLeast(1), Dynamic,
        "How often members of a consumer group beat.";
    "consumer.session.timeout.ms" consumer_session_timeout_ms: i32 = 45_000, AtLeast(1), Dynamic,
        "How long a member of a consumer group may be silent.";
    "errors.deadletterqueue.copy.record.enable" errors_deadletterqueue_copy_record_enable: bool = false, Any, Dynamic,
        "Whether the dead-letter queue gets the record itself.";
    "errors.deadletterqueue.topic.name" errors_deadletterqueue_topic_name: String = String::new(), Any, Dynamic,
        "The topic of the dead-letter queue.";
    "share.assignment.interval.ms" share_assignment_interval_ms: i32 = 1000, AtLeast(0), Dynamic,
        "The least time between two assignments of a share group.";
    "share.auto.offset.reset" share_auto_offset_reset: String = "latest".to_owned(), Any, Dynamic,
        "Where a share group starts.";
    "share.delivery.count.limit" share_delivery_count_limit: i32 = 5, AtLeast(2), Dynamic,
        "How often a share group tries to deliver a record.";
    "share.heartbeat.interval.ms" share_heartbeat_interval_ms: i32 = 5000, AtLeast(1), Dynamic,
        "How often members of a share group beat.";
    "share.isolation.level" share_isolation_level: String = "read_uncommitted".to_owned(), OneOf(&["read_committed", "read_uncommitted"]), Dynamic,
        "Which transactional records a share group reads.";
    "share.partition.max.record.locks" share_partition_max_record_locks: i32 = 2000, AtLeast(100), Dynamic,
        "Records of a partition that a share group may hold at one time.";
    "share.record.lock.duration.ms" share_record_lock_duration_ms: i32 = 30_000, AtLeast(1000), Dynamic,
        "How long a member of a share group may hold a record.";
    "share.renew.acknowledge.enable" share_renew_acknowledge_enable: bool = true, Any, Dynamic,
        "Whether a member of a share group may renew its hold on a record.";
    "share.session.timeout.ms" share_session_timeout_ms: i32 = 45_000, AtLeast(1), Dynamic,
        "How long a member of a share group may be silent.";
    "streams.assignment.interval.ms" streams_assignment_interval_ms: i32 = 1000, AtLeast(0), Dynamic,
        "The least time between two assignments of a streams group.";
    "streams.assignor.name" streams_assignor_name: String = "sticky".to_owned(), Any, Dynamic,
        "The assignor of a streams group.";
    "streams.heartbeat.interval.ms" streams_heartbeat_interval_ms: i32 = 5000, AtLeast(1), Dynamic,
        "How often members of a streams group beat.";
    "streams.initial.rebalance.delay.ms" streams_initial_rebalance_delay_ms: i32 = 3000, AtLeast(0), Dynamic,
        "How long the first rebalance of a streams group waits for more members.";
    "streams.num.standby.replicas" streams_num_standby_replicas: i32 = 0, AtLeast(0), Dynamic,
        "Standby replicas of each task of a streams group.";
    "streams.rack.aware.assignment.tags" streams_rack_aware_assignment_tags: Vec<String> = Vec::new(), Any, Dynamic,
        "Client tags by which a streams group spreads standby replicas.";
    "streams.session.timeout.ms" streams_session_timeout_ms: i32 = 45_000, AtLeast(1), Dynamic,
        "How long a member of a streams group may be silent.";
}

config_table! {
    /// What a subscription to client metrics says.
    pub struct ClientMetricsConfig;

    "interval.ms" interval_ms: i32 = 300_000, Between(100, 3_600_000), Dynamic,
        "How often clients push their metrics.";
    "match" r#match: Vec<String> = Vec::new(), Any, Dynamic,
        "Which clients push metrics.";
    "metrics" metrics: Vec<String> = Vec::new(), Any, Dynamic,
        "Prefixes of the metrics to push.";
}

/// The rows of `DescribeConfigs` for any group.
pub fn describe_group() -> Vec<ConfigEntry> {
    describe::defaults::<GroupConfig>(|name| Some(broker_key(name).unwrap_or(name)))
}

/// The rows of `DescribeConfigs` for any client metrics subscription.
pub fn describe_client_metrics() -> Vec<ConfigEntry> {
    describe::defaults::<ClientMetricsConfig>(|_| None)
}

/// The broker key a group key takes its default from.
fn broker_key(name: &str) -> Option<&'static str> {
    const BROKER_KEYS: &[(&str, &str)] = &[
        (
            "consumer.assignment.interval.ms",
            "group.consumer.assignment.interval.ms",
        ),
        (
            "consumer.heartbeat.interval.ms",
            "group.consumer.heartbeat.interval.ms",
        ),
        (
            "consumer.session.timeout.ms",
            "group.consumer.session.timeout.ms",
        ),
        (
            "share.assignment.interval.ms",
            "group.share.assignment.interval.ms",
        ),
        (
            "share.delivery.count.limit",
            "group.share.delivery.count.limit",
        ),
        (
            "share.heartbeat.interval.ms",
            "group.share.heartbeat.interval.ms",
        ),
        (
            "share.partition.max.record.locks",
            "group.share.partition.max.record.locks",
        ),
        (
            "share.record.lock.duration.ms",
            "group.share.record.lock.duration.ms",
        ),
        ("share.session.timeout.ms", "group.share.session.timeout.ms"),
        (
            "streams.assignment.interval.ms",
            "group.streams.assignment.interval.ms",
        ),
        ("streams.assignor.name", "group.streams.assignors"),
        (
            "streams.heartbeat.interval.ms",
            "group.streams.heartbeat.interval.ms",
        ),
        (
            "streams.initial.rebalance.delay.ms",
            "group.streams.initial.rebalance.delay.ms",
        ),
        (
            "streams.num.standby.replicas",
            "group.streams.num.standby.replicas",
        ),
        (
            "streams.rack.aware.assignment.tags",
            "group.streams.rack.aware.assignment.tags",
        ),
        (
            "streams.session.timeout.ms",
            "group.streams.session.timeout.ms",
        ),
    ];
    BROKER_KEYS
        .iter()
        .find(|(group_key, _)| *group_key == name)
        .map(|(_, broker_key)| *broker_key)
}
