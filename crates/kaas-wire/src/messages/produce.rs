//! Produce (key 0): append record batches to partitions.

use bytes::Bytes;

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    ProduceRequest: key 0, versions 3..=13, flexible 9..;

    struct ProduceRequest {
        transactional_id: Option<String>,        3..;
        acks:             i16,                   0..;
        timeout_ms:       i32,                   0..;
        topic_data:       Vec<TopicProduceData>, 0..;
    }

    struct TopicProduceData {
        name:           String,                    0..=12;
        topic_id:       Uuid,                      13..;
        partition_data: Vec<PartitionProduceData>, 0..;
    }

    struct PartitionProduceData {
        index:   i32,                          0..;
        records: Option<Bytes> as frame_slice, 0..;
    }
}

message! {
    ProduceResponse: key 0, versions 3..=13, flexible 9..;

    struct ProduceResponse {
        responses:        Vec<TopicProduceResponse>, 0..;
        throttle_time_ms: i32,                       1..;
    }
    tagged {
        0: node_endpoints: Vec<NodeEndpoint>, 10..;
    }

    struct TopicProduceResponse {
        name:                String,                        0..=12;
        topic_id:            Uuid,                          13..;
        partition_responses: Vec<PartitionProduceResponse>, 0..;
    }

    struct PartitionProduceResponse {
        index:              i32,                            0..;
        error_code:         ErrorCode,                      0..;
        base_offset:        i64,                            0..;
        log_append_time_ms: i64,                            2.., = -1;
        log_start_offset:   i64,                            5.., = -1;
        record_errors:      Vec<BatchIndexAndErrorMessage>, 8..;
        error_message:      Option<String>,                 8..;
    }
    tagged {
        0: current_leader: LeaderIdAndEpoch, 10..;
    }

    struct BatchIndexAndErrorMessage {
        batch_index:               i32,            8..;
        batch_index_error_message: Option<String>, 8..;
    }

    struct LeaderIdAndEpoch {
        leader_id:    i32, 10.., = -1;
        leader_epoch: i32, 10.., = -1;
    }

    struct NodeEndpoint {
        node_id: i32,            10..;
        host:    String,         10..;
        port:    i32,            10..;
        rack:    Option<String>, 10..;
    }
}
