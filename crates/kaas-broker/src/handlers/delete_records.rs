//! DeleteRecords (21): everything below an offset gone, durably, before the answer.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::delete_records::{
    DeleteRecordsPartitionResult, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
    DeleteRecordsTopicResult,
};

use crate::topics::{self, Table};
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=2;

pub async fn handle(
    broker: &Arc<Broker>,
    _ctx: &Ctx,
    request: DeleteRecordsRequest,
) -> DeleteRecordsResponse {
    let broker = broker.clone();
    let deleting = tokio::task::spawn_blocking(move || {
        let table = broker.topics.table();
        request
            .topics
            .into_iter()
            .map(|topic| delete(&broker, &table, topic))
            .collect()
    });
    let topics = deleting.await.expect("deleting records does not panic");
    DeleteRecordsResponse {
        topics,
        ..Default::default()
    }
}

fn delete(broker: &Broker, table: &Table, topic: DeleteRecordsTopic) -> DeleteRecordsTopicResult {
    let view = broker.cluster.load();
    let partitions = topic
        .partitions
        .into_iter()
        .map(|asked| {
            let deleted = table
                .get(&topic.name)
                .ok_or_else(|| topics::unknown(table, &topic.name).code)
                .and_then(|topic| {
                    broker
                        .partitions
                        .lead(topic, asked.partition_index, -1, &view)
                })
                .and_then(|partition| {
                    let log = partition.log()?;
                    if !log.config().cleanup_policy.delete {
                        return Err(ErrorCode::POLICY_VIOLATION);
                    }
                    let start = log
                        .delete_records_before(asked.offset)
                        .map_err(|error| error.code)?;
                    partition.wake();
                    Ok(start)
                });
            let (low_watermark, error_code) = match deleted {
                Ok(start) => (start, ErrorCode::NONE),
                Err(error) => (-1, error),
            };
            DeleteRecordsPartitionResult {
                partition_index: asked.partition_index,
                low_watermark,
                error_code,
            }
        })
        .collect();
    DeleteRecordsTopicResult {
        name: topic.name,
        partitions,
    }
}
