//! OffsetCommit: topics and partitions are checked here (OF-14), the group by the coordination core (OF-16 to OF-33).

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_coordinator::Request;
use kaas_wire::ErrorCode;
use kaas_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
};

use crate::connection::ReplySlot;
use crate::coordinator::actor::Refused;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 2..=10;

pub fn handle(broker: &Arc<Broker>, ctx: &Ctx, mut request: OffsetCommitRequest, reply: ReplySlot) {
    let table = broker.topics.table();
    let mut refused = Vec::new();
    request.topics.retain_mut(|topic| {
        let known = if ctx.version >= 10 {
            table.get_by_id(&topic.topic_id)
        } else {
            table.get(&topic.name)
        };
        let mut partitions = Vec::new();
        match known {
            Some(known) => {
                if ctx.version >= 10 {
                    topic.name.clone_from(&known.name);
                }
                topic.topic_id = known.id;
                topic.partitions.retain(|partition| {
                    let exists = known.has_partition(partition.partition_index);
                    if !exists {
                        partitions.push(OffsetCommitResponsePartition {
                            partition_index: partition.partition_index,
                            error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                        });
                    }
                    exists
                });
            }
            None => {
                let error_code = if ctx.version >= 10 {
                    ErrorCode::UNKNOWN_TOPIC_ID
                } else {
                    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                };
                partitions.extend(topic.partitions.drain(..).map(|partition| {
                    OffsetCommitResponsePartition {
                        partition_index: partition.partition_index,
                        error_code,
                    }
                }));
            }
        }
        if !partitions.is_empty() {
            refused.push(OffsetCommitResponseTopic {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                partitions,
            });
        }
        !topic.partitions.is_empty()
    });
    if request.topics.is_empty() {
        // OF-15: the group is neither checked nor created.
        reply.send(&OffsetCommitResponse {
            topics: refused,
            ..OffsetCommitResponse::default()
        });
        return;
    }
    let refused = if refused.is_empty() {
        Refused::Nothing
    } else {
        Refused::Commit(refused)
    };
    broker
        .groups
        .call_partly(ctx, Request::OffsetCommit(request), refused, reply);
}

/// Puts what was refused before what the group answered: topics with a refused partition first, once each (OF-24).
pub fn merge(mut refused: Vec<OffsetCommitResponseTopic>, response: &mut OffsetCommitResponse) {
    for topic in response.topics.drain(..) {
        let twin = refused
            .iter_mut()
            .find(|other| other.name == topic.name && other.topic_id == topic.topic_id);
        match twin {
            Some(twin) => twin.partitions.extend(topic.partitions),
            None => refused.push(topic),
        }
    }
    response.topics = refused;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str, partitions: &[(i32, ErrorCode)]) -> OffsetCommitResponseTopic {
        OffsetCommitResponseTopic {
            name: name.into(),
            partitions: partitions
                .iter()
                .map(
                    |(partition_index, error_code)| OffsetCommitResponsePartition {
                        partition_index: *partition_index,
                        error_code: *error_code,
                    },
                )
                .collect(),
            ..OffsetCommitResponseTopic::default()
        }
    }

    #[test]
    fn topics_with_a_refused_partition_come_first_and_once_of_24() {
        let three = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        let mut response = OffsetCommitResponse {
            topics: vec![
                topic("a", &[(0, ErrorCode::NONE)]),
                topic("b", &[(0, ErrorCode::NONE)]),
            ],
            ..OffsetCommitResponse::default()
        };
        merge(
            vec![topic("b", &[(9, three)]), topic("c", &[(0, three)])],
            &mut response,
        );
        assert_eq!(
            response.topics,
            [
                topic("b", &[(9, three), (0, ErrorCode::NONE)]),
                topic("c", &[(0, three)]),
                topic("a", &[(0, ErrorCode::NONE)]),
            ]
        );
    }
}
