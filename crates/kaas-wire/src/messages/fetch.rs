//! Fetch (key 1): read record batches from partitions, within a fetch session if the client keeps one.

use crate::message::message;
use crate::{ErrorCode, Records, Uuid};

message! {
    FetchRequest: key 1, versions 4..=18, flexible 12..;

    struct FetchRequest {
        replica_id:            i32,                 0..=14, = -1;
        max_wait_ms:           i32,                 0..;
        min_bytes:             i32,                 0..;
        max_bytes:             i32,                 3.., = i32::MAX;
        isolation_level:       i8,                  4..;
        session_id:            i32,                 7..;
        session_epoch:         i32,                 7.., = -1;
        topics:                Vec<FetchTopic>,     0..;
        forgotten_topics_data: Vec<ForgottenTopic>, 7..;
        rack_id:               String,              11..;
    }
    tagged {
        0: cluster_id:    Option<String>, 12..;
        1: replica_state: ReplicaState,   15..;
    }

    struct ReplicaState {
        replica_id:    i32, 15.., = -1;
        replica_epoch: i64, 15.., = -1;
    }

    struct FetchTopic {
        topic:      String,              0..=12;
        topic_id:   Uuid,                13..;
        partitions: Vec<FetchPartition>, 0..;
    }

    struct FetchPartition {
        partition:            i32, 0..;
        current_leader_epoch: i32, 9.., = -1;
        fetch_offset:         i64, 0..;
        last_fetched_epoch:   i32, 12.., = -1;
        log_start_offset:     i64, 5.., = -1;
        partition_max_bytes:  i32, 0..;
    }
    tagged {
        0: replica_directory_id: Uuid, 17..;
        1: high_watermark:       i64,  18.., = i64::MAX;
    }

    struct ForgottenTopic {
        topic:      String,   7..=12;
        topic_id:   Uuid,     13..;
        partitions: Vec<i32>, 7..;
    }
}

message! {
    FetchResponse: key 1, versions 4..=18, flexible 12..;

    struct FetchResponse {
        throttle_time_ms: i32,                         1..;
        error_code:       ErrorCode,                   7..;
        session_id:       i32,                         7..;
        responses:        Vec<FetchableTopicResponse>, 0..;
    }
    tagged {
        0: node_endpoints: Vec<NodeEndpoint>, 16..;
    }

    struct FetchableTopicResponse {
        topic:      String,             0..=12;
        topic_id:   Uuid,               13..;
        partitions: Vec<PartitionData>, 0..;
    }

    struct PartitionData {
        partition_index:        i32,                             0..;
        error_code:             ErrorCode,                       0..;
        high_watermark:         i64,                             0..;
        last_stable_offset:     i64,                             4.., = -1;
        log_start_offset:       i64,                             5.., = -1;
        aborted_transactions:   Option<Vec<AbortedTransaction>>, 4.., = Some(Vec::new());
        preferred_read_replica: i32,                             11.., = -1;
        records:                Records,                         0..;
    }
    tagged {
        0: diverging_epoch: EpochEndOffset,   12..;
        1: current_leader:  LeaderIdAndEpoch, 12..;
        2: snapshot_id:     SnapshotId,       12..;
    }

    struct EpochEndOffset {
        epoch:      i32, 12.., = -1;
        end_offset: i64, 12.., = -1;
    }

    struct LeaderIdAndEpoch {
        leader_id:    i32, 12.., = -1;
        leader_epoch: i32, 12.., = -1;
    }

    struct SnapshotId {
        end_offset: i64, 0.., = -1;
        epoch:      i32, 0.., = -1;
    }

    struct AbortedTransaction {
        producer_id:  i64, 4..;
        first_offset: i64, 4..;
    }

    struct NodeEndpoint {
        node_id: i32,            16..;
        host:    String,         16..;
        port:    i32,            16..;
        rack:    Option<String>, 16..;
    }
}
