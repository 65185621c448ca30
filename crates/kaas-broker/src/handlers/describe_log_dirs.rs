//! DescribeLogDirs (35): the volume as the one log directory, and what each partition takes of it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::describe_log_dirs::{
    DescribeLogDirsPartition, DescribeLogDirsRequest, DescribeLogDirsResponse,
    DescribeLogDirsResult, DescribeLogDirsTopic,
};

use crate::topics::Topic;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 1..=5;

pub async fn handle(
    broker: &Arc<Broker>,
    _ctx: &Ctx,
    request: DescribeLogDirsRequest,
) -> DescribeLogDirsResponse {
    let broker = broker.clone();
    // Logs that nobody used yet are opened for it.
    let describing = tokio::task::spawn_blocking(move || describe(&broker, &request));
    let result = describing
        .await
        .expect("describing the logs does not panic");
    DescribeLogDirsResponse {
        error_code: ErrorCode::NONE,
        results: vec![result],
        ..Default::default()
    }
}

fn describe(broker: &Broker, request: &DescribeLogDirsRequest) -> DescribeLogDirsResult {
    let table = broker.topics.table();
    let topics = match &request.topics {
        None => table
            .iter()
            .map(|topic| describe_topic(broker, topic, 0..topic.partitions))
            .collect::<Vec<_>>(),
        Some(asked) => asked
            .iter()
            .filter_map(|asked| {
                Some(describe_topic(
                    broker,
                    table.get(&asked.topic)?,
                    asked.partitions.iter().copied(),
                ))
            })
            .collect(),
    };
    let (total_bytes, usable_bytes) = match broker.resource_configs.volume().space() {
        Ok(Some(space)) => (capped(space.total_bytes), capped(space.usable_bytes)),
        // Unknown, as Kafka says it.
        Ok(None) | Err(_) => (-1, -1),
    };
    DescribeLogDirsResult {
        error_code: ErrorCode::NONE,
        log_dir: broker.config.load().log_dirs.clone(),
        topics: topics
            .into_iter()
            .filter(|topic| !topic.partitions.is_empty())
            .collect(),
        total_bytes,
        usable_bytes,
        is_cordoned: false,
    }
}

fn describe_topic(
    broker: &Broker,
    topic: &Topic,
    partitions: impl Iterator<Item = i32>,
) -> DescribeLogDirsTopic {
    let partitions = partitions
        .filter_map(|index| {
            let log = broker.partitions.get(topic.id, index)?.log().ok()?;
            Some(DescribeLogDirsPartition {
                partition_index: index,
                partition_size: capped(log.size()),
                offset_lag: 0,
                is_future_key: false,
            })
        })
        .collect();
    DescribeLogDirsTopic {
        name: topic.name.clone(),
        partitions,
    }
}

fn capped(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
