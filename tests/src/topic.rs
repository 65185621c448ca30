//! Topics and records over a raw connection.

use bytes::Bytes;
use kaas_wire::batch::{self, BatchBuilder};
use kaas_wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use kaas_wire::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use kaas_wire::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};
use kaas_wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use kaas_wire::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData,
};
use kaas_wire::{ErrorCode, Records, Uuid};

use crate::connection::Connection;

/// Creates a topic and gives its id.
pub fn create(connection: &mut Connection, name: &str, partitions: i32) -> Uuid {
    let response = connection.call(
        7,
        &CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name: name.to_owned(),
                num_partitions: partitions,
                replication_factor: 1,
                ..CreatableTopic::default()
            }],
            ..CreateTopicsRequest::default()
        },
    );
    let created = &response.topics[0];
    assert_eq!(created.error_code, ErrorCode::NONE, "{created:?}");
    created.topic_id
}

pub fn delete(connection: &mut Connection, name: &str) {
    let response = connection.call(
        6,
        &DeleteTopicsRequest {
            topics: vec![DeleteTopicState {
                name: Some(name.to_owned()),
                ..DeleteTopicState::default()
            }],
            timeout_ms: 10_000,
            ..DeleteTopicsRequest::default()
        },
    );
    assert_eq!(response.responses[0].error_code, ErrorCode::NONE);
}

/// A batch of these values.
pub fn batch(values: &[Vec<u8>]) -> Bytes {
    values
        .iter()
        .fold(BatchBuilder::new(0), |batch, value| {
            batch.record(1_700_000_000_000, None, Some(value))
        })
        .build()
}

pub fn produce_request(topic: &str, partition: i32, records: Bytes) -> ProduceRequest {
    ProduceRequest {
        acks: -1,
        timeout_ms: 10_000,
        topic_data: vec![TopicProduceData {
            name: topic.to_owned(),
            partition_data: vec![PartitionProduceData {
                index: partition,
                records: Some(records),
            }],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    }
}

/// Produces with acks=all.
pub fn produce(
    connection: &mut Connection,
    topic: &str,
    partition: i32,
    values: &[Vec<u8>],
) -> PartitionProduceResponse {
    let request = produce_request(topic, partition, batch(values));
    let mut response = connection.call(12, &request);
    response.responses.remove(0).partition_responses.remove(0)
}

/// The offset of a timestamp: -1 is the end, -2 the start.
pub fn offset(connection: &mut Connection, topic: &str, partition: i32, timestamp: i64) -> i64 {
    let response = connection.call(
        7,
        &ListOffsetsRequest {
            replica_id: -1,
            topics: vec![ListOffsetsTopic {
                name: topic.to_owned(),
                partitions: vec![ListOffsetsPartition {
                    partition_index: partition,
                    timestamp,
                    ..ListOffsetsPartition::default()
                }],
            }],
            ..ListOffsetsRequest::default()
        },
    );
    let found = &response.topics[0].partitions[0];
    assert_eq!(found.error_code, ErrorCode::NONE);
    found.offset
}

pub fn fetch_request(topic: &str, partition: i32, offset: i64) -> FetchRequest {
    FetchRequest {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: 8 * 1024 * 1024,
        topics: vec![FetchTopic {
            topic: topic.to_owned(),
            partitions: vec![FetchPartition {
                partition,
                fetch_offset: offset,
                partition_max_bytes: 8 * 1024 * 1024,
                ..FetchPartition::default()
            }],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

/// Every record of a partition: offset and value.
pub fn read_all(connection: &mut Connection, topic: &str, partition: i32) -> Vec<(i64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut next = offset(connection, topic, partition, -2);
    loop {
        let response = connection.call(11, &fetch_request(topic, partition, next));
        let data = &response.responses[0].partitions[0];
        assert_eq!(data.error_code, ErrorCode::NONE);
        let Records::Inline(records) = &data.records else {
            return found;
        };
        if records.is_empty() {
            return found;
        }
        let before = next;
        // A batch that is cut off at the end comes again, whole.
        for batch in batch::batches(records).map_while(Result::ok) {
            batch.verify_crc().expect("fetched batches are whole");
            let body = batch.body(64 * 1024 * 1024).expect("the body is small");
            for record in batch.records(&body) {
                let record = record.expect("fetched records parse");
                if record.offset >= next {
                    found.push((record.offset, record.value.unwrap_or_default().to_vec()));
                    next = record.offset + 1;
                }
            }
        }
        assert!(
            next > before,
            "what was fetched at {before} holds no whole batch"
        );
    }
}
