//! The bodies of replies: shapes of errors by API and version.

use kaas_wire::ErrorCode;
use kaas_wire::messages::heartbeat::HeartbeatResponse;
use kaas_wire::messages::join_group::JoinGroupResponse;
use kaas_wire::messages::leave_group::LeaveGroupResponse;
use kaas_wire::messages::offset_commit::OffsetCommitResponse;
use kaas_wire::messages::offset_delete::OffsetDeleteResponse;
use kaas_wire::messages::sync_group::SyncGroupResponse;

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

/// Before version 7 a name that is absent goes as `""`, from then on `""` goes as null (CG-29).
pub(crate) fn protocol_name_for(version: i16, name: Option<&str>) -> Option<String> {
    match name {
        Some(name) if !name.is_empty() => Some(name.to_owned()),
        _ if version < 7 => Some(String::new()),
        _ => None,
    }
}
