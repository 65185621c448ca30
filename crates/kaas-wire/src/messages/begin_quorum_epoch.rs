//! BeginQuorumEpoch (key 53): a new KRaft leader tells the voters.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    BeginQuorumEpochRequest: key 53, versions 0..=1, flexible 1..;

    struct BeginQuorumEpochRequest {
        cluster_id:       Option<String>,      0..;
        voter_id:         i32,                 1.., = -1;
        topics:           Vec<TopicData>,      0..;
        leader_endpoints: Vec<LeaderEndpoint>, 1..;
    }

    struct TopicData {
        topic_name: String,             0..;
        partitions: Vec<PartitionData>, 0..;
    }

    struct PartitionData {
        partition_index:    i32,  0..;
        voter_directory_id: Uuid, 1..;
        leader_id:          i32,  0..;
        leader_epoch:       i32,  0..;
    }

    struct LeaderEndpoint {
        name: String, 1..;
        host: String, 1..;
        port: u16,    1..;
    }
}

message! {
    BeginQuorumEpochResponse: key 53, versions 0..=1, flexible 1..;

    struct BeginQuorumEpochResponse {
        error_code: ErrorCode,              0..;
        topics:     Vec<TopicDataResponse>, 0..;
    }
    tagged {
        0: node_endpoints: Vec<NodeEndpoint>, 1..;
    }

    struct TopicDataResponse {
        topic_name: String,                     0..;
        partitions: Vec<PartitionDataResponse>, 0..;
    }

    struct PartitionDataResponse {
        partition_index: i32,       0..;
        error_code:      ErrorCode, 0..;
        leader_id:       i32,       0..;
        leader_epoch:    i32,       0..;
    }

    struct NodeEndpoint {
        node_id: i32,    1..;
        host:    String, 1..;
        port:    u16,    1..;
    }
}
