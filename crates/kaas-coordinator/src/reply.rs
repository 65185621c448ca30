//! The bodies of replies: shapes of errors by API and version.

use kaas_wire::ErrorCode;
use kaas_wire::messages::heartbeat::HeartbeatResponse;
use kaas_wire::messages::join_group::JoinGroupResponse;
use kaas_wire::messages::leave_group::LeaveGroupResponse;
use kaas_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
};
use kaas_wire::messages::offset_delete::OffsetDeleteResponse;
use kaas_wire::messages::sync_group::SyncGroupResponse;

use crate::Request;

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    JoinGroup(JoinGroupResponse),
    SyncGroup(SyncGroupResponse),
    Heartbeat(HeartbeatResponse),
    LeaveGroup(LeaveGroupResponse),
    OffsetCommit(OffsetCommitResponse),
    OffsetDelete(OffsetDeleteResponse),
}

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
            Request::OffsetCommit(request) => Reply::OffsetCommit(commit_error(request, error)),
            Request::OffsetDelete(_) => Reply::OffsetDelete(OffsetDeleteResponse {
                error_code: error,
                ..OffsetDeleteResponse::default()
            }),
        }
    }

    /// Turns an answer that rests on a change which could not be made durable into the error of that failure, mapped
    /// by CG-23. `version` is that of the request. What had been refused already stays refused.
    pub fn fail(&mut self, version: i16, error: ErrorCode) {
        let error = coordinator_error(error);
        match self {
            Reply::JoinGroup(response) => *response = join_error(version, error, ""),
            Reply::SyncGroup(response) => *response = sync_error(error),
            Reply::Heartbeat(response) => response.error_code = error,
            Reply::LeaveGroup(response) => {
                response.members.clear();
                response.error_code = error;
            }
            Reply::OffsetCommit(response) => {
                for partition in response
                    .topics
                    .iter_mut()
                    .flat_map(|topic| &mut topic.partitions)
                {
                    if partition.error_code.is_ok() {
                        partition.error_code = error;
                    }
                }
            }
            Reply::OffsetDelete(response) => {
                response.topics.clear();
                response.error_code = error;
            }
        }
    }
}

/// The error a group API answers when a write failed with `error` (CG-23).
pub fn coordinator_error(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        | ErrorCode::NOT_ENOUGH_REPLICAS
        | ErrorCode::REQUEST_TIMED_OUT => ErrorCode::COORDINATOR_NOT_AVAILABLE,
        ErrorCode::NOT_LEADER_OR_FOLLOWER | ErrorCode::KAFKA_STORAGE_ERROR => {
            ErrorCode::NOT_COORDINATOR
        }
        ErrorCode::MESSAGE_TOO_LARGE
        | ErrorCode::RECORD_LIST_TOO_LARGE
        | ErrorCode::INVALID_FETCH_SIZE => ErrorCode::UNKNOWN_SERVER_ERROR,
        ErrorCode::NETWORK_EXCEPTION => ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        other => other,
    }
}

/// The shape of every refused JoinGroup (CG-30); whether `member_id` is echoed is CG-31.
pub(crate) fn join_error(version: i16, error: ErrorCode, member_id: &str) -> JoinGroupResponse {
    JoinGroupResponse {
        error_code: error,
        generation_id: -1,
        protocol_type: None,
        protocol_name: protocol_name_for(version, None),
        member_id: member_id.to_owned(),
        ..JoinGroupResponse::default()
    }
}

pub(crate) fn sync_error(error: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse {
        error_code: error,
        ..SyncGroupResponse::default()
    }
}

pub(crate) fn leave_error(error: ErrorCode) -> LeaveGroupResponse {
    LeaveGroupResponse {
        error_code: error,
        ..LeaveGroupResponse::default()
    }
}

pub(crate) fn commit_error(
    request: &OffsetCommitRequest,
    error: ErrorCode,
) -> OffsetCommitResponse {
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
    OffsetCommitResponse {
        topics: topics.collect(),
        ..OffsetCommitResponse::default()
    }
}

/// Before version 7 a name that is absent goes as `""`, from then on `""` goes as null (CG-29).
pub(crate) fn protocol_name_for(version: i16, name: Option<&str>) -> Option<String> {
    match name {
        Some(name) if !name.is_empty() => Some(name.to_owned()),
        _ if version < 7 => Some(String::new()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kaas_wire::messages::join_group::JoinGroupResponseMember;
    use kaas_wire::messages::leave_group::MemberResponse;
    use kaas_wire::messages::offset_delete::OffsetDeleteResponseTopic;

    use super::*;

    fn failed(mut reply: Reply, version: i16) -> Reply {
        reply.fail(version, ErrorCode::KAFKA_STORAGE_ERROR);
        reply
    }

    #[test]
    fn cg_23_what_a_failed_write_is_to_a_client() {
        for (failure, told) in [
            (
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode::COORDINATOR_NOT_AVAILABLE,
            ),
            (
                ErrorCode::NOT_ENOUGH_REPLICAS,
                ErrorCode::COORDINATOR_NOT_AVAILABLE,
            ),
            (
                ErrorCode::REQUEST_TIMED_OUT,
                ErrorCode::COORDINATOR_NOT_AVAILABLE,
            ),
            (
                ErrorCode::NOT_LEADER_OR_FOLLOWER,
                ErrorCode::NOT_COORDINATOR,
            ),
            (ErrorCode::KAFKA_STORAGE_ERROR, ErrorCode::NOT_COORDINATOR),
            (
                ErrorCode::MESSAGE_TOO_LARGE,
                ErrorCode::UNKNOWN_SERVER_ERROR,
            ),
            (
                ErrorCode::RECORD_LIST_TOO_LARGE,
                ErrorCode::UNKNOWN_SERVER_ERROR,
            ),
            (
                ErrorCode::INVALID_FETCH_SIZE,
                ErrorCode::UNKNOWN_SERVER_ERROR,
            ),
            (
                ErrorCode::NETWORK_EXCEPTION,
                ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
            ),
            (ErrorCode::NOT_COORDINATOR, ErrorCode::NOT_COORDINATOR),
            (ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::UNKNOWN_MEMBER_ID),
        ] {
            assert_eq!(coordinator_error(failure), told, "{failure}");
        }
    }

    #[test]
    fn cg_30_a_join_that_failed_tells_nothing_of_the_group() {
        let joined = JoinGroupResponse {
            generation_id: 3,
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some("range".to_owned()),
            leader: "a".to_owned(),
            skip_assignment: true,
            member_id: "a".to_owned(),
            members: vec![JoinGroupResponseMember::default()],
            ..JoinGroupResponse::default()
        };
        let Reply::JoinGroup(answer) = failed(Reply::JoinGroup(joined.clone()), 9) else {
            panic!()
        };
        assert_eq!(answer, join_error(9, ErrorCode::NOT_COORDINATOR, ""));
        assert_eq!((answer.generation_id, answer.protocol_name), (-1, None));
        let Reply::JoinGroup(answer) = failed(Reply::JoinGroup(joined), 6) else {
            panic!()
        };
        assert_eq!(answer.protocol_name.as_deref(), Some(""));
    }

    #[test]
    fn of_07_a_commit_that_failed_tells_so_for_all_that_had_been_accepted() {
        let partition = |partition_index, error_code| OffsetCommitResponsePartition {
            partition_index,
            error_code,
        };
        let committed = OffsetCommitResponse {
            topics: vec![OffsetCommitResponseTopic {
                partitions: vec![
                    partition(0, ErrorCode::NONE),
                    partition(1, ErrorCode::OFFSET_METADATA_TOO_LARGE),
                ],
                ..OffsetCommitResponseTopic::default()
            }],
            ..OffsetCommitResponse::default()
        };
        let Reply::OffsetCommit(answer) = failed(Reply::OffsetCommit(committed), 8) else {
            panic!()
        };
        let told: Vec<ErrorCode> = answer.topics[0]
            .partitions
            .iter()
            .map(|partition| partition.error_code)
            .collect();
        assert_eq!(
            told,
            [
                ErrorCode::NOT_COORDINATOR,
                ErrorCode::OFFSET_METADATA_TOO_LARGE
            ]
        );
    }

    #[test]
    fn other_answers_that_failed_tell_so_at_the_top() {
        let synced = SyncGroupResponse {
            protocol_name: Some("range".to_owned()),
            assignment: "mine".into(),
            ..SyncGroupResponse::default()
        };
        let left = LeaveGroupResponse {
            members: vec![MemberResponse::default()],
            ..LeaveGroupResponse::default()
        };
        let deleted = OffsetDeleteResponse {
            topics: vec![OffsetDeleteResponseTopic::default()],
            ..OffsetDeleteResponse::default()
        };
        let error = ErrorCode::NOT_COORDINATOR;
        assert_eq!(
            failed(Reply::SyncGroup(synced), 5),
            Reply::SyncGroup(sync_error(error))
        );
        assert_eq!(
            failed(Reply::LeaveGroup(left), 5),
            Reply::LeaveGroup(leave_error(error))
        );
        let deleted = failed(Reply::OffsetDelete(deleted), 0);
        let told = OffsetDeleteResponse {
            error_code: error,
            ..OffsetDeleteResponse::default()
        };
        assert_eq!(deleted, Reply::OffsetDelete(told));
        let beaten = failed(Reply::Heartbeat(HeartbeatResponse::default()), 4);
        let told = HeartbeatResponse {
            error_code: error,
            ..HeartbeatResponse::default()
        };
        assert_eq!(beaten, Reply::Heartbeat(told));
    }
}
