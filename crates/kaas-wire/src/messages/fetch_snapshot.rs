//! FetchSnapshot (key 59): read a KRaft snapshot, chunk by chunk.

use bytes::Bytes;

use crate::message::message;
use crate::{ErrorCode, Records, Uuid};

message! {
    FetchSnapshotRequest: key 59, versions 0..=1, flexible 0..;

    struct FetchSnapshotRequest {
        replica_id: i32,                0.., = -1;
        max_bytes:  i32,                0.., = i32::MAX;
        topics:     Vec<TopicSnapshot>, 0..;
    }
    tagged {
        0: cluster_id: Option<String>, 0..;
    }

    struct TopicSnapshot {
        name:       String,                 0..;
        partitions: Vec<PartitionSnapshot>, 0..;
    }

    struct PartitionSnapshot {
        partition:            i32,        0..;
        current_leader_epoch: i32,        0..;
        snapshot_id:          SnapshotId, 0..;
        position:             i64,        0..;
    }
    tagged {
        0: replica_directory_id: Uuid, 1..;
    }

    struct SnapshotId {
        end_offset: i64, 0..;
        epoch:      i32, 0..;
    }
}

message! {
    FetchSnapshotResponse: key 59, versions 0..=1, flexible 0..;

    struct FetchSnapshotResponse {
        throttle_time_ms: i32,                        0..;
        error_code:       ErrorCode,                  0..;
        topics:           Vec<TopicSnapshotResponse>, 0..;
    }
    tagged {
        0: node_endpoints: Vec<NodeEndpoint>, 1..;
    }

    struct TopicSnapshotResponse {
        name:       String,                         0..;
        partitions: Vec<PartitionSnapshotResponse>, 0..;
    }

    struct PartitionSnapshotResponse {
        index:             i32,        0..;
        error_code:        ErrorCode,  0..;
        snapshot_id:       SnapshotId, 0..;
        size:              i64,        0..;
        position:          i64,        0..;
        unaligned_records: Records,    0.., = Records::Inline(Bytes::new());
    }
    tagged {
        0: current_leader: LeaderIdAndEpoch, 0..;
    }

    struct LeaderIdAndEpoch {
        leader_id:    i32, 0..;
        leader_epoch: i32, 0..;
    }

    struct NodeEndpoint {
        node_id: i32,    1..;
        host:    String, 1..;
        port:    u16,    1..;
    }
}
