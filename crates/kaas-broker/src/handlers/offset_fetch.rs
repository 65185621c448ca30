//! OffsetFetch: every version becomes a list of groups, and the groups' answers become the version's shape (OF-43 to
//! OF-57, OF-93).

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponse,
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};

use crate::connection::ReplySlot;
use crate::coordinator::actor::Work;
use crate::topics::Table;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 1..=10;

pub fn handle(broker: &Arc<Broker>, ctx: &Ctx, request: OffsetFetchRequest, reply: ReplySlot) {
    let plan = Plan::of(ctx.version, request, broker.topics.table());
    broker.groups.submit(Work::Fetch { plan, reply });
}

/// A fetch in the form the core answers, with what is needed to shape the answer.
pub struct Plan {
    pub version: i16,
    pub require_stable: bool,
    pub groups: Vec<OffsetFetchRequestGroup>,
    /// Topics of each group whose id is unknown: they come last in its answer (OF-46).
    unknown: Vec<Vec<OffsetFetchResponseTopics>>,
    table: Arc<Table>,
}

impl Plan {
    fn of(version: i16, request: OffsetFetchRequest, table: Arc<Table>) -> Plan {
        let mut groups = request.groups;
        if version < 8 {
            let topics = request.topics.map(|topics| {
                topics
                    .into_iter()
                    .map(|topic| OffsetFetchRequestTopics {
                        name: topic.name,
                        partition_indexes: topic.partition_indexes,
                        ..OffsetFetchRequestTopics::default()
                    })
                    .collect()
            });
            groups = vec![OffsetFetchRequestGroup {
                group_id: request.group_id,
                topics,
                ..OffsetFetchRequestGroup::default()
            }];
        }
        let unknown = groups
            .iter_mut()
            .map(|group| match &mut group.topics {
                Some(topics) if version >= 10 => name_topics(topics, &table),
                _ => Vec::new(),
            })
            .collect();
        Plan {
            version,
            require_stable: version >= 7 && request.require_stable,
            groups,
            unknown,
            table,
        }
    }

    /// The answer in the request's version, from one answer a group.
    pub fn shape(self, mut groups: Vec<OffsetFetchResponseGroup>) -> OffsetFetchResponse {
        if self.version < 8 {
            let group = groups.pop().expect("one group was asked for and answered");
            return flat(self.version, &self.groups[0], group);
        }
        for ((asked, unknown), group) in self.groups.iter().zip(self.unknown).zip(&mut groups) {
            if !group.error_code.is_ok() {
                continue;
            }
            if self.version >= 10 && asked.topics.is_none() {
                group
                    .topics
                    .retain_mut(|topic| match self.table.get(&topic.name) {
                        Some(known) => {
                            topic.topic_id = known.id;
                            true
                        }
                        None => false,
                    });
            }
            group.topics.extend(unknown);
        }
        OffsetFetchResponse {
            groups,
            ..OffsetFetchResponse::default()
        }
    }
}

/// Fills in the names of known topics and takes out the others, answered with UNKNOWN_TOPIC_ID.
fn name_topics(
    topics: &mut Vec<OffsetFetchRequestTopics>,
    table: &Table,
) -> Vec<OffsetFetchResponseTopics> {
    let mut unknown = Vec::new();
    topics.retain_mut(|topic| match table.get_by_id(&topic.topic_id) {
        Some(known) => {
            topic.name.clone_from(&known.name);
            true
        }
        None => {
            let partitions = topic.partition_indexes.iter().map(|partition_index| {
                OffsetFetchResponsePartitions {
                    partition_index: *partition_index,
                    committed_offset: -1,
                    metadata: Some(String::new()),
                    error_code: ErrorCode::UNKNOWN_TOPIC_ID,
                    ..OffsetFetchResponsePartitions::default()
                }
            });
            unknown.push(OffsetFetchResponseTopics {
                topic_id: topic.topic_id,
                partitions: partitions.collect(),
                ..OffsetFetchResponseTopics::default()
            });
            false
        }
    });
    unknown
}

/// Versions 1 to 7: one group, its error at the top or, in version 1, on each partition that was asked for (OF-44).
fn flat(
    version: i16,
    asked: &OffsetFetchRequestGroup,
    group: OffsetFetchResponseGroup,
) -> OffsetFetchResponse {
    let mut response = OffsetFetchResponse {
        error_code: group.error_code,
        ..OffsetFetchResponse::default()
    };
    if group.error_code.is_ok() {
        response.topics = group
            .topics
            .into_iter()
            .map(|topic| OffsetFetchResponseTopic {
                name: topic.name,
                partitions: topic
                    .partitions
                    .into_iter()
                    .map(|partition| OffsetFetchResponsePartition {
                        partition_index: partition.partition_index,
                        committed_offset: partition.committed_offset,
                        committed_leader_epoch: partition.committed_leader_epoch,
                        metadata: partition.metadata,
                        error_code: partition.error_code,
                    })
                    .collect(),
            })
            .collect();
    } else if version < 2 {
        response.topics = asked
            .topics
            .iter()
            .flatten()
            .map(|topic| OffsetFetchResponseTopic {
                name: topic.name.clone(),
                partitions: topic
                    .partition_indexes
                    .iter()
                    .map(|partition_index| OffsetFetchResponsePartition {
                        partition_index: *partition_index,
                        committed_offset: -1,
                        metadata: Some(String::new()),
                        error_code: group.error_code,
                        ..OffsetFetchResponsePartition::default()
                    })
                    .collect(),
            })
            .collect();
    }
    response
}

/// What a group answers whose state could not be read or proven durable.
pub fn group_error(group_id: &str, error_code: ErrorCode) -> OffsetFetchResponseGroup {
    OffsetFetchResponseGroup {
        group_id: group_id.to_owned(),
        error_code,
        ..OffsetFetchResponseGroup::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kaas_wire::messages::offset_fetch::OffsetFetchRequestTopic;

    fn asked(version: i16) -> Plan {
        let request = OffsetFetchRequest {
            group_id: "g".into(),
            topics: Some(vec![OffsetFetchRequestTopic {
                name: "t".into(),
                partition_indexes: vec![0, 1],
            }]),
            ..OffsetFetchRequest::default()
        };
        Plan::of(version, request, Arc::default())
    }

    #[test]
    fn a_group_error_goes_on_every_partition_in_v1_and_to_the_top_from_v2_of_44() {
        let error = ErrorCode::NOT_COORDINATOR;
        let old = asked(1).shape(vec![group_error("g", error)]);
        let codes: Vec<ErrorCode> = old.topics[0]
            .partitions
            .iter()
            .map(|partition| partition.error_code)
            .collect();
        assert_eq!(codes, [error, error]);
        let new = asked(2).shape(vec![group_error("g", error)]);
        assert_eq!((new.error_code, new.topics.len()), (error, 0));
    }
}
