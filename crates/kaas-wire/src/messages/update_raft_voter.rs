//! UpdateRaftVoter (key 82): a KRaft voter's endpoints or versions changed.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    UpdateRaftVoterRequest: key 82, versions 0..=0, flexible 0..;

    struct UpdateRaftVoterRequest {
        cluster_id:             Option<String>,      0.., = Some(String::new());
        current_leader_epoch:   i32,                 0..;
        voter_id:               i32,                 0..;
        voter_directory_id:     Uuid,                0..;
        listeners:              Vec<Listener>,       0..;
        k_raft_version_feature: KRaftVersionFeature, 0..;
    }

    struct Listener {
        name: String, 0..;
        host: String, 0..;
        port: u16,    0..;
    }

    struct KRaftVersionFeature {
        min_supported_version: i16, 0..;
        max_supported_version: i16, 0..;
    }
}

message! {
    UpdateRaftVoterResponse: key 82, versions 0..=0, flexible 0..;

    struct UpdateRaftVoterResponse {
        throttle_time_ms: i32,       0..;
        error_code:       ErrorCode, 0..;
    }
    tagged {
        0: current_leader: CurrentLeader, 0..;
    }

    struct CurrentLeader {
        leader_id:    i32,    0.., = -1;
        leader_epoch: i32,    0.., = -1;
        host:         String, 0..;
        port:         i32,    0..;
    }
}
