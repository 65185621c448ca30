//! Topics, groups and lag under the names of `kafka_exporter`, so that dashboards made for it show kaas.

use std::sync::Arc;

use fnv::FnvHashMap;

use super::Snapshot;
use super::exposition::Page;

/// Committed offsets shown at most. A page of more is no use to anyone, and would take the scraper's memory with it.
pub const MAX_OFFSETS: usize = 200_000;

pub fn write(page: &mut Page, snapshot: &Snapshot) {
    page.gauge(
        "kafka_brokers",
        "Number of Brokers in the Kafka Cluster.",
        snapshot.brokers.len(),
    );
    page.head(
        "kafka_broker_info",
        "gauge",
        "Information about the Kafka Broker.",
    );
    for (id, address) in &snapshot.brokers {
        page.sample("kafka_broker_info", &[("id", id), ("address", address)], 1);
    }
    topics(page, snapshot);
    groups(page, snapshot);
}

fn topics(page: &mut Page, snapshot: &Snapshot) {
    page.head(
        "kafka_topic_partitions",
        "gauge",
        "Number of partitions for this Topic",
    );
    for (topic, partitions) in &snapshot.topics {
        page.sample("kafka_topic_partitions", &[("topic", topic)], partitions);
    }
    let mut family = |name: &str, help: &str, value: &dyn Fn(&super::PartitionSnapshot) -> i64| {
        page.head(name, "gauge", help);
        for partition in &snapshot.partitions {
            let labels: super::exposition::Labels<'_> = &[
                ("topic", &partition.topic),
                ("partition", &partition.partition),
            ];
            page.sample(name, labels, value(partition));
        }
    };
    family(
        "kafka_topic_partition_current_offset",
        "Current Offset of a Broker at Topic/Partition",
        &|partition| partition.high_watermark,
    );
    family(
        "kafka_topic_partition_oldest_offset",
        "Oldest Offset of a Broker at Topic/Partition",
        &|partition| partition.log_start_offset,
    );
    family(
        "kafka_topic_partition_leader",
        "Leader Broker ID of this Topic/Partition",
        &|_| i64::from(snapshot.node_id),
    );
    family(
        "kafka_topic_partition_leader_is_preferred",
        "1 if Topic/Partition is using the Preferred Broker",
        &|_| 1,
    );
    family(
        "kafka_topic_partition_replicas",
        "Number of Replicas for this Topic/Partition",
        &|_| 1,
    );
    family(
        "kafka_topic_partition_in_sync_replica",
        "Number of In-Sync Replicas for this Topic/Partition",
        &|_| 1,
    );
    family(
        "kafka_topic_partition_under_replicated_partition",
        "1 if Topic/Partition is under Replicated",
        &|_| 0,
    );
    family(
        "kaas_log_size_bytes",
        "Size of a partition's log.",
        &|partition| partition.size as i64,
    );
}

/// A group's offsets of one topic.
struct Consumed<'a> {
    group: &'a Arc<str>,
    topic: &'a str,
    /// Partition, committed offset, and how far it is behind, which is known for partitions that this broker leads.
    partitions: Vec<(i32, i64, Option<i64>)>,
}

fn groups(page: &mut Page, snapshot: &Snapshot) {
    let ends: FnvHashMap<(&str, i32), i64> = snapshot
        .partitions
        .iter()
        .map(|partition| {
            (
                (&*partition.topic, partition.partition),
                partition.high_watermark,
            )
        })
        .collect();
    let mut left = MAX_OFFSETS;
    let mut left_out = 0;
    let mut consumed: Vec<Consumed<'_>> = Vec::new();
    for group in &snapshot.groups {
        if group.offsets.len() > left {
            left_out += group.offsets.len();
            continue;
        }
        left -= group.offsets.len();
        let mut offsets: Vec<_> = group.offsets.iter().collect();
        offsets.sort_unstable_by_key(|offset| (&*offset.topic, offset.partition));
        for offset in offsets {
            let end = ends.get(&(&*offset.topic, offset.partition));
            let entry = (
                offset.partition,
                offset.offset,
                end.map(|end| (end - offset.offset).max(0)),
            );
            match consumed.last_mut() {
                Some(last)
                    if Arc::ptr_eq(last.group, &group.group_id) && last.topic == &*offset.topic =>
                {
                    last.partitions.push(entry);
                }
                _ => consumed.push(Consumed {
                    group: &group.group_id,
                    topic: &offset.topic,
                    partitions: vec![entry],
                }),
            }
        }
    }

    page.head(
        "kafka_consumergroup_members",
        "gauge",
        "Amount of members in a consumer group",
    );
    for group in &snapshot.groups {
        page.sample(
            "kafka_consumergroup_members",
            &[("consumergroup", &group.group_id)],
            group.members,
        );
    }
    let name = "kafka_consumergroup_current_offset";
    page.head(
        name,
        "gauge",
        "Current Offset of a ConsumerGroup at Topic/Partition",
    );
    for entry in &consumed {
        for (partition, offset, _) in &entry.partitions {
            let labels: super::exposition::Labels<'_> = &[
                ("consumergroup", entry.group),
                ("topic", &entry.topic),
                ("partition", partition),
            ];
            page.sample(name, labels, offset);
        }
    }
    let name = "kafka_consumergroup_current_offset_sum";
    page.head(
        name,
        "gauge",
        "Current Offset of a ConsumerGroup at Topic for all partitions",
    );
    for entry in &consumed {
        let sum: i64 = entry.partitions.iter().map(|(_, offset, _)| offset).sum();
        page.sample(
            name,
            &[("consumergroup", entry.group), ("topic", &entry.topic)],
            sum,
        );
    }
    let name = "kafka_consumergroup_lag";
    page.head(
        name,
        "gauge",
        "Current Approximate Lag of a ConsumerGroup at Topic/Partition",
    );
    for entry in &consumed {
        for (partition, _, lag) in &entry.partitions {
            let Some(lag) = lag else { continue };
            let labels: super::exposition::Labels<'_> = &[
                ("consumergroup", entry.group),
                ("topic", &entry.topic),
                ("partition", partition),
            ];
            page.sample(name, labels, lag);
        }
    }
    let name = "kafka_consumergroup_lag_sum";
    page.head(
        name,
        "gauge",
        "Current Approximate Lag of a ConsumerGroup at Topic for all partitions",
    );
    for entry in &consumed {
        let known: Vec<i64> = entry
            .partitions
            .iter()
            .filter_map(|(_, _, lag)| *lag)
            .collect();
        if !known.is_empty() {
            page.sample(
                name,
                &[("consumergroup", entry.group), ("topic", &entry.topic)],
                known.iter().sum::<i64>(),
            );
        }
    }
    page.gauge(
        "kaas_metrics_offsets_left_out",
        "Committed offsets that are not on this page because there are too many.",
        left_out,
    );
}
