//! OffsetForLeaderEpoch (23): where an epoch ended, by which a client finds out whether its records are still there.
//! Only the leader answers.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition, OffsetForLeaderTopicResult,
};

use crate::assignment::ClusterView;
use crate::topics::{self, Table};
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 2..=4;

pub fn handle(
    broker: &Arc<Broker>,
    _ctx: &Ctx,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let table = broker.topics.table();
    let view = broker.cluster.load();
    let topics = request
        .topics
        .into_iter()
        .map(|topic| OffsetForLeaderTopicResult {
            partitions: topic
                .partitions
                .iter()
                .map(|asked| {
                    look_up(broker, &table, &view, &topic.topic, asked).unwrap_or_else(
                        |error_code| EpochEndOffset {
                            partition: asked.partition,
                            error_code,
                            ..Default::default()
                        },
                    )
                })
                .collect(),
            topic: topic.topic,
        })
        .collect();
    OffsetForLeaderEpochResponse {
        topics,
        ..Default::default()
    }
}

fn look_up(
    broker: &Broker,
    table: &Table,
    view: &ClusterView,
    topic: &str,
    asked: &OffsetForLeaderPartition,
) -> Result<EpochEndOffset, ErrorCode> {
    let topic = table
        .get(topic)
        .ok_or_else(|| topics::unknown(table, topic).code)?;
    let partition =
        broker
            .partitions
            .lead(topic, asked.partition, asked.current_leader_epoch, view)?;
    let end = partition
        .log()?
        .epoch_end_offset(asked.leader_epoch)
        .map_err(|error| error.code)?;
    let (leader_epoch, end_offset) = end.map_or((-1, -1), |end| (end.leader_epoch, end.end_offset));
    Ok(EpochEndOffset {
        error_code: ErrorCode::NONE,
        partition: asked.partition,
        leader_epoch,
        end_offset,
    })
}
