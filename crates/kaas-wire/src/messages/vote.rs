//! Vote (key 52): a KRaft candidate asks for votes.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    VoteRequest: key 52, versions 0..=2, flexible 0..;

    struct VoteRequest {
        cluster_id: Option<String>, 0..;
        voter_id:   i32,            1.., = -1;
        topics:     Vec<TopicData>, 0..;
    }

    struct TopicData {
        topic_name: String,             0..;
        partitions: Vec<PartitionData>, 0..;
    }

    struct PartitionData {
        partition_index:      i32,  0..;
        replica_epoch:        i32,  0..;
        replica_id:           i32,  0..;
        replica_directory_id: Uuid, 1..;
        voter_directory_id:   Uuid, 1..;
        last_offset_epoch:    i32,  0..;
        last_offset:          i64,  0..;
        pre_vote:             bool, 2..;
    }
}

message! {
    VoteResponse: key 52, versions 0..=2, flexible 0..;

    struct VoteResponse {
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
        vote_granted:    bool,      0..;
    }

    struct NodeEndpoint {
        node_id: i32,    1..;
        host:    String, 1..;
        port:    u16,    1..;
    }
}
