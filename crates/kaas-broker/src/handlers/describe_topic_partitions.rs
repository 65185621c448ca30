//! DescribeTopicPartitions (75): topics and their partitions by pages, in the order of names. A cursor says where the
//! next page begins.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic, TopicRequest,
};

use crate::assignment::ClusterView;
use crate::handlers::metadata::{TOPIC_OPERATIONS, describe_partition};
use crate::topics::{self, Table, Topic};
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=0;

/// Kafka's `max.request.partition.size.limit`.
const MAX_PARTITIONS_PER_PAGE: i32 = 2_000;

pub fn handle(
    broker: &Arc<Broker>,
    _ctx: &Ctx,
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let table = broker.topics.table();
    let view = broker.cluster.load();
    let asked: BTreeSet<&str> = request
        .topics
        .iter()
        .map(|topic| topic.name.as_str())
        .collect();
    if let Some(cursor) = &request.cursor
        && (cursor.partition_index < 0
            || !(asked.is_empty() || asked.contains(cursor.topic_name.as_str())))
    {
        return refuse(request.topics, ErrorCode::INVALID_REQUEST);
    }
    let (from, mut first) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.as_str(), cursor.partition_index),
        None => ("", 0),
    };
    let names: Vec<&str> = if asked.is_empty() {
        table.from(from).map(|topic| topic.name.as_str()).collect()
    } else {
        asked.range(from..).copied().collect()
    };
    let mut left = request
        .response_partition_limit
        .clamp(1, MAX_PARTITIONS_PER_PAGE);
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names {
        if left == 0 {
            response.next_cursor = Some(Cursor {
                topic_name: name.to_owned(),
                partition_index: 0,
            });
            break;
        }
        // The cursor's partition is of its own topic; if that is gone, the next one begins at its start.
        let begin = if name == from {
            std::mem::take(&mut first)
        } else {
            0
        };
        match table.get(name) {
            Some(topic) => {
                let end = topic.partitions.min(begin.saturating_add(left));
                response.topics.push(describe(&view, topic, begin..end));
                left -= (end - begin).max(0);
                if end < topic.partitions && begin < topic.partitions {
                    response.next_cursor = Some(Cursor {
                        topic_name: name.to_owned(),
                        partition_index: end,
                    });
                    break;
                }
            }
            None => response.topics.push(missing(&table, name)),
        }
    }
    response
}

fn describe(
    view: &ClusterView,
    topic: &Topic,
    partitions: std::ops::Range<i32>,
) -> DescribeTopicPartitionsResponseTopic {
    let partitions = partitions
        .map(|index| {
            let partition = describe_partition(view, topic, index);
            DescribeTopicPartitionsResponsePartition {
                error_code: partition.error_code,
                partition_index: index,
                leader_id: partition.leader_id,
                leader_epoch: partition.leader_epoch,
                replica_nodes: partition.replica_nodes,
                isr_nodes: partition.isr_nodes,
                eligible_leader_replicas: Some(Vec::new()),
                last_known_elr: Some(Vec::new()),
                offline_replicas: partition.offline_replicas,
            }
        })
        .collect();
    DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::NONE,
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: false,
        partitions,
        topic_authorized_operations: TOPIC_OPERATIONS,
    }
}

fn missing(table: &Table, name: &str) -> DescribeTopicPartitionsResponseTopic {
    let error_code = match topics::validate_name(name) {
        Ok(()) => topics::unknown(table, name).code,
        Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
    };
    DescribeTopicPartitionsResponseTopic {
        error_code,
        name: Some(name.to_owned()),
        is_internal: topics::is_internal(name),
        topic_authorized_operations: TOPIC_OPERATIONS,
        ..Default::default()
    }
}

fn refuse(topics: Vec<TopicRequest>, error_code: ErrorCode) -> DescribeTopicPartitionsResponse {
    let topics = topics
        .into_iter()
        .map(|topic| DescribeTopicPartitionsResponseTopic {
            error_code,
            name: Some(topic.name),
            ..Default::default()
        })
        .collect();
    DescribeTopicPartitionsResponse {
        topics,
        ..Default::default()
    }
}
