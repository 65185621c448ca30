//! AddRaftVoter (key 80): add a KRaft voter.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    AddRaftVoterRequest: key 80, versions 0..=1, flexible 0..;

    struct AddRaftVoterRequest {
        cluster_id:         Option<String>, 0.., = Some(String::new());
        timeout_ms:         i32,            0..;
        voter_id:           i32,            0..;
        voter_directory_id: Uuid,           0..;
        listeners:          Vec<Listener>,  0..;
        ack_when_committed: bool,           1.., = true;
    }

    struct Listener {
        name: String, 0..;
        host: String, 0..;
        port: u16,    0..;
    }
}

message! {
    AddRaftVoterResponse: key 80, versions 0..=1, flexible 0..;

    struct AddRaftVoterResponse {
        throttle_time_ms: i32,            0..;
        error_code:       ErrorCode,      0..;
        error_message:    Option<String>, 0.., = Some(String::new());
    }
}
