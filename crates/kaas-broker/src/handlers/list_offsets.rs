//! ListOffsets (2): offsets by what is known of time: the earliest, the latest, the one with the highest timestamp, or
//! the first at or after a timestamp.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_storage::log::{Isolation, LogError};
use kaas_wire::ErrorCode;
use kaas_wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
    ListOffsetsTopicResponse,
};

use crate::assignment::ClusterView;
use crate::topics::Table;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 1..=11;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
/// Without tiered storage nothing is tiered, and nothing is about to be.
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

pub fn handle(broker: &Arc<Broker>, ctx: &Ctx, request: ListOffsetsRequest) -> ListOffsetsResponse {
    let table = broker.topics.table();
    let view = broker.cluster.load();
    let isolation = if request.isolation_level == 1 {
        Isolation::ReadCommitted
    } else {
        Isolation::ReadUncommitted
    };
    let mut times = BTreeMap::<(&str, i32), usize>::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            *times
                .entry((&topic.name, partition.partition_index))
                .or_default() += 1;
        }
    }
    let mut topics = Vec::<ListOffsetsTopicResponse>::new();
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            let found = match times.insert((&topic.name, partition.partition_index), 0) {
                // Named before and refused there.
                Some(0) => continue,
                Some(1) => look_up(
                    broker,
                    ctx.version,
                    &table,
                    &view,
                    &topic.name,
                    partition,
                    isolation,
                ),
                _ => Err(ErrorCode::INVALID_REQUEST),
            };
            partitions.push(
                found.unwrap_or_else(|error_code| ListOffsetsPartitionResponse {
                    partition_index: partition.partition_index,
                    error_code,
                    ..Default::default()
                }),
            );
        }
        match topics.iter_mut().find(|other| other.name == topic.name) {
            Some(other) => other.partitions.extend(partitions),
            None => topics.push(ListOffsetsTopicResponse {
                name: topic.name.clone(),
                partitions,
            }),
        }
    }
    ListOffsetsResponse {
        topics,
        ..Default::default()
    }
}

fn look_up(
    broker: &Broker,
    version: i16,
    table: &Table,
    view: &ClusterView,
    topic: &str,
    asked: &ListOffsetsPartition,
    isolation: Isolation,
) -> Result<ListOffsetsPartitionResponse, ErrorCode> {
    if version < first_version(asked.timestamp) {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    let topic = table
        .get(topic)
        .ok_or_else(|| crate::topics::unknown(table, topic).code)?;
    let partition = broker.partitions.lead(
        topic,
        asked.partition_index,
        asked.current_leader_epoch,
        view,
    )?;
    let log = partition.log()?;
    let code = |error: LogError| error.code;
    let unknown = (-1, -1, -1);
    let (timestamp, offset, leader_epoch) = match asked.timestamp {
        LATEST => {
            let offsets = log.offsets().map_err(code)?;
            let latest = match isolation {
                Isolation::ReadUncommitted => offsets.high_watermark,
                Isolation::ReadCommitted => offsets.last_stable,
            };
            (-1, latest, partition.leader_epoch)
        }
        EARLIEST | EARLIEST_LOCAL => {
            let start = log.start_offset().map_err(code)?;
            (-1, start, log.epoch_of(start).map_err(code)?)
        }
        MAX_TIMESTAMP => log
            .max_timestamp_offset(isolation)
            .map_err(code)?
            .map_or(unknown, |found| {
                (found.timestamp_ms, found.offset, found.leader_epoch)
            }),
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => unknown,
        timestamp => log
            .offset_for_timestamp(timestamp, isolation)
            .map_err(code)?
            .map_or(unknown, |found| {
                (found.timestamp_ms, found.offset, found.leader_epoch)
            }),
    };
    Ok(ListOffsetsPartitionResponse {
        partition_index: asked.partition_index,
        error_code: ErrorCode::NONE,
        timestamp,
        offset,
        leader_epoch,
    })
}

/// The version that brought a special timestamp.
fn first_version(timestamp: i64) -> i16 {
    match timestamp {
        MAX_TIMESTAMP => 7,
        EARLIEST_LOCAL => 8,
        LATEST_TIERED => 9,
        EARLIEST_PENDING_UPLOAD => 11,
        LATEST | EARLIEST | 0.. => 1,
        _ => i16::MAX,
    }
}
