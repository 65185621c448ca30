//! EndQuorumEpoch (key 54): a KRaft leader resigns.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    EndQuorumEpochRequest: key 54, versions 0..=1, flexible 1..;

    struct EndQuorumEpochRequest {
        cluster_id:       Option<String>,      0..;
        topics:           Vec<TopicData>,      0..;
        leader_endpoints: Vec<LeaderEndpoint>, 1..;
    }

    struct TopicData {
        topic_name: String,             0..;
        partitions: Vec<PartitionData>, 0..;
    }

    struct PartitionData {
        partition_index:      i32,              0..;
        leader_id:            i32,              0..;
        leader_epoch:         i32,              0..;
        preferred_successors: Vec<i32>,         0..=0;
        preferred_candidates: Vec<ReplicaInfo>, 1..;
    }

    struct ReplicaInfo {
        candidate_id:           i32,  1..;
        candidate_directory_id: Uuid, 1..;
    }

    struct LeaderEndpoint {
        name: String, 1..;
        host: String, 1..;
        port: u16,    1..;
    }
}

message! {
    EndQuorumEpochResponse: key 54, versions 0..=1, flexible 1..;

    struct EndQuorumEpochResponse {
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
