//! RemoveRaftVoter (key 81): remove a KRaft voter.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    RemoveRaftVoterRequest: key 81, versions 0..=0, flexible 0..;

    struct RemoveRaftVoterRequest {
        cluster_id:         Option<String>, 0.., = Some(String::new());
        voter_id:           i32,            0..;
        voter_directory_id: Uuid,           0..;
    }
}

message! {
    RemoveRaftVoterResponse: key 81, versions 0..=0, flexible 0..;

    struct RemoveRaftVoterResponse {
        throttle_time_ms: i32,            0..;
        error_code:       ErrorCode,      0..;
        error_message:    Option<String>, 0.., = Some(String::new());
    }
}
