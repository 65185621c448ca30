//! Refusals of whole requests, in the shape of each API: for groups that are coordinated elsewhere, cannot be read, or
//! whose coordinator stops.

use kaas_wire::ErrorCode;
use kaas_wire::messages::heartbeat::HeartbeatResponse;
use kaas_wire::messages::offset_commit::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kaas_wire::messages::offset_delete::OffsetDeleteResponse;

use crate::reply::{join_error, leave_error, sync_error};
use crate::{Reply, Request};

impl Reply {
    /// The answer to a request that no group sees. JoinGroup carries no member id then (CG-31).
    pub fn refusal(version: i16, request: &Request, error: ErrorCode) -> Reply {
        match request {
            Request::JoinGroup(_) => Reply::JoinGroup(join_error(version, error, "")),
            Request::SyncGroup(_) => Reply::SyncGroup(sync_error(error)),
            Request::Heartbeat(_) => Reply::Heartbeat(HeartbeatResponse {
                error_code: error,
                ..HeartbeatResponse::default()
            }),
            Request::LeaveGroup(_) => Reply::LeaveGroup(leave_error(error)),
            Request::OffsetCommit(request) => {
                let topics = request
                    .topics
                    .iter()
                    .map(|topic| OffsetCommitResponseTopic {
                        name: topic.name.clone(),
                        topic_id: topic.topic_id,
                        partitions: topic
                            .partitions
                            .iter()
                            .map(|partition| OffsetCommitResponsePartition {
                                partition_index: partition.partition_index,
                                error_code: error,
                            })
                            .collect(),
                    });
                Reply::OffsetCommit(OffsetCommitResponse {
                    topics: topics.collect(),
                    ..OffsetCommitResponse::default()
                })
            }
            Request::OffsetDelete(_) => Reply::OffsetDelete(OffsetDeleteResponse {
                error_code: error,
                ..OffsetDeleteResponse::default()
            }),
        }
    }
}
