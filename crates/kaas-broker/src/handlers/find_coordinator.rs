//! FindCoordinator: where a group or transactional id is coordinated (CG-25 to CG-28). Any broker answers, whether or
//! not the group exists.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::messages::find_coordinator::{
    Coordinator, FindCoordinatorRequest, FindCoordinatorResponse,
};
use kaas_wire::{ErrorCode, Uuid};

use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=6;

/// The first version with several keys, each answered for itself.
const SEVERAL_KEYS_FROM: i16 = 4;
/// The first version in which the coordinator of a share partition may be asked for.
const SHARE_FROM: i16 = 6;

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

pub fn handle(
    broker: &Arc<Broker>,
    ctx: &Ctx,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    let key_type = request.key_type;
    if ctx.version >= SEVERAL_KEYS_FROM {
        return FindCoordinatorResponse {
            coordinators: request
                .coordinator_keys
                .into_iter()
                .map(|key| find(broker, ctx, key_type, key))
                .collect(),
            ..FindCoordinatorResponse::default()
        };
    }
    let found = find(broker, ctx, key_type, request.key);
    // Kafka's text for success, which it sends in these versions only.
    let message = if found.error_code.is_ok() {
        "NONE"
    } else {
        found.error_code.message()
    };
    FindCoordinatorResponse {
        error_code: found.error_code,
        error_message: Some(message.to_owned()),
        node_id: found.node_id,
        host: found.host,
        port: found.port,
        ..FindCoordinatorResponse::default()
    }
}

fn find(broker: &Broker, ctx: &Ctx, key_type: i8, key: String) -> Coordinator {
    let refused = |key, error_code| Coordinator {
        key,
        node_id: -1,
        port: -1,
        error_code,
        ..Coordinator::default()
    };
    match key_type {
        GROUP | TRANSACTION => {}
        SHARE if ctx.version >= SHARE_FROM && is_share_partition(&key) => {
            return refused(key, ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        SHARE => return refused(key, ErrorCode::INVALID_REQUEST),
        _ => {
            // The one refusal that Kafka explains in these versions.
            let error_message = Some(ErrorCode::INVALID_REQUEST.message().to_owned());
            return Coordinator {
                error_message,
                ..refused(key, ErrorCode::INVALID_REQUEST)
            };
        }
    }
    let view = broker.cluster.load();
    let coordinator = broker
        .groups
        .coordinator_of(&key)
        .and_then(|id| view.alive().find(|entry| entry.id == id));
    let Some(entry) = coordinator else {
        return refused(key, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    };
    let (host, port) = broker.address_of(&ctx.connection, entry);
    Coordinator {
        key,
        node_id: entry.id,
        host,
        port,
        ..Coordinator::default()
    }
}

/// `GROUP:TOPIC-ID:PARTITION`
fn is_share_partition(key: &str) -> bool {
    let parts: Vec<&str> = key.split(':').collect();
    let [group, topic_id, partition] = parts[..] else {
        return false;
    };
    !group.trim().is_empty() && topic_id.parse::<Uuid>().is_ok() && partition.parse::<i32>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_share_partition_has_three_parts() {
        assert!(is_share_partition("g:AAAAAAAAAAAAAAAAAAAAAQ:0"));
        for key in [
            "",
            "g",
            "g:t:0",
            "g:AAAAAAAAAAAAAAAAAAAAAQ:x",
            " :AAAAAAAAAAAAAAAAAAAAAQ:0",
        ] {
            assert!(!is_share_partition(key), "{key}");
        }
    }
}
