//! OffsetDelete: topics and partitions are checked here, the group by the coordination core, which is asked even when
//! nothing is left; its top-level error discards what was refused here (OF-58, OF-59).

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_coordinator::Request;
use kaas_wire::ErrorCode;
use kaas_wire::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteResponse, OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
};

use crate::connection::ReplySlot;
use crate::coordinator::actor::Refused;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=0;

pub fn handle(broker: &Arc<Broker>, ctx: &Ctx, mut request: OffsetDeleteRequest, reply: ReplySlot) {
    let table = broker.topics.table();
    let mut refused = Vec::new();
    request.topics.retain_mut(|topic| {
        let known = table.get(&topic.name);
        let mut partitions = Vec::new();
        topic.partitions.retain(|partition| {
            let exists = known.is_some_and(|known| known.has_partition(partition.partition_index));
            if !exists {
                partitions.push(OffsetDeleteResponsePartition {
                    partition_index: partition.partition_index,
                    error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                });
            }
            exists
        });
        if !partitions.is_empty() {
            refused.push(OffsetDeleteResponseTopic {
                name: topic.name.clone(),
                partitions,
            });
        }
        !topic.partitions.is_empty()
    });
    let refused = if refused.is_empty() {
        Refused::Nothing
    } else {
        Refused::Delete(refused)
    };
    broker
        .groups
        .call_partly(ctx, Request::OffsetDelete(request), refused, reply);
}

/// Puts what was refused before what the group answered, as OffsetCommit does (OF-24).
pub fn merge(mut refused: Vec<OffsetDeleteResponseTopic>, response: &mut OffsetDeleteResponse) {
    if !response.error_code.is_ok() {
        return;
    }
    for topic in response.topics.drain(..) {
        match refused.iter_mut().find(|other| other.name == topic.name) {
            Some(twin) => twin.partitions.extend(topic.partitions),
            None => refused.push(topic),
        }
    }
    response.topics = refused;
}
