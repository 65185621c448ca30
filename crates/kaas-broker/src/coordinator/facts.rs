//! What happened in groups, told to the log. The metrics of the same facts are counted in `actor.rs`.

use kaas_coordinator::Effect;
use tracing::{debug, info};

pub fn log(effect: &Effect) {
    match effect {
        Effect::GroupCreated { group_id } => debug!(%group_id, "group created"),
        Effect::MemberAdded {
            group_id,
            member_id,
            instance_id,
            client_id,
            client_host,
            members,
        } => {
            info!(%group_id, %member_id, ?instance_id, client_id, client_host, members, "member added")
        }
        Effect::MemberRemoved {
            group_id,
            member_id,
            instance_id,
            reason,
            members,
        } => info!(%group_id, %member_id, ?instance_id, %reason, members, "member removed"),
        Effect::StaticMemberReplaced {
            group_id,
            instance_id,
            old_member_id,
            new_member_id,
        } => {
            info!(%group_id, %instance_id, %old_member_id, %new_member_id, "static member came back, its old id is fenced")
        }
        Effect::RebalanceStarted {
            group_id,
            generation,
            reason,
            client_reason,
            members,
            waiting_for,
            waiting_count,
            timeout_ms,
        } => {
            info!(%group_id, generation, %reason, client_reason, members, ?waiting_for, waiting_count, timeout_ms, "rebalance started")
        }
        Effect::GenerationFormed {
            group_id,
            generation,
            protocol,
            leader,
            members,
        } => {
            debug!(%group_id, generation, protocol, %leader, members, "generation formed, waiting for the leader's assignment")
        }
        Effect::RebalanceComplete {
            group_id,
            generation,
            members,
            took_ms,
        } => info!(%group_id, generation, members, took_ms, "rebalance complete"),
        Effect::GroupEmptied {
            group_id,
            generation,
        } => info!(%group_id, generation, "group is empty"),
        Effect::GroupLoaded {
            group_id,
            generation,
            members,
            offsets,
        } => debug!(%group_id, generation, members, offsets, "group loaded"),
        Effect::GroupRemoved { group_id, reason } => info!(%group_id, ?reason, "group removed"),
        Effect::OffsetsRemoved {
            group_id,
            count,
            reason,
        } => info!(%group_id, count, ?reason, "offsets removed"),
    }
}
