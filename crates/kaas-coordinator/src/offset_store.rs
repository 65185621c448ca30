//! The offsets of one group: committed ones, and those of open transactions in a layer of their own. Of the group it
//! asks only what every type answers.

use std::collections::BTreeMap;

use kaas_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kaas_wire::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kaas_wire::messages::offset_fetch::{
    OffsetFetchRequestGroup, OffsetFetchResponseGroup, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
};
use kaas_wire::{ErrorCode, Uuid};

use crate::document::{Committed, DeltaWriter, Offsets, remove, set};
use crate::group::{Group, Retention};
use crate::{GroupConfig, Now};

const MS_PER_MINUTE: i64 = 60_000;

#[derive(Default)]
pub(crate) struct OffsetStore {
    committed: Offsets,
    /// By producer id. Invisible to reads but for "is there any" (OF-53), and a shield against expiry (OF-67).
    pending: BTreeMap<i64, Offsets>,
}

impl OffsetStore {
    pub fn load(committed: Offsets, pending: BTreeMap<i64, Offsets>) -> OffsetStore {
        OffsetStore { committed, pending }
    }

    pub fn document(&self) -> (Offsets, BTreeMap<i64, Offsets>) {
        (self.committed.clone(), self.pending.clone())
    }

    pub fn is_empty(&self) -> bool {
        self.committed.is_empty() && self.pending.is_empty()
    }

    pub fn len(&self) -> usize {
        self.committed.values().map(BTreeMap::len).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, i32, &Committed)> {
        self.committed.iter().flat_map(|(topic, partitions)| {
            partitions
                .iter()
                .map(|(partition, committed)| (topic.as_str(), *partition, committed))
        })
    }

    /// Stores what a valid commit carries, but for partitions with too much metadata (OF-20).
    pub fn commit(
        &mut self,
        now: Now,
        config: &GroupConfig,
        request: OffsetCommitRequest,
        delta: &mut DeltaWriter,
    ) -> Vec<OffsetCommitResponseTopic> {
        let expire_timestamp = (request.retention_time_ms != -1)
            .then(|| now.wall_ms.saturating_add(request.retention_time_ms));
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in request.topics {
            let mut topic_written = false;
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for partition in topic.partitions {
                let error_code = if metadata_fits(partition.committed_metadata.as_deref(), config) {
                    let metadata = partition.committed_metadata.unwrap_or_default();
                    let committed = Committed {
                        offset: partition.committed_offset,
                        leader_epoch: partition.committed_leader_epoch,
                        metadata: metadata.into_boxed_str(),
                        commit_timestamp: now.wall_ms,
                        expire_timestamp,
                        topic_id: topic.topic_id,
                    };
                    if !topic_written {
                        delta.topic(&topic.name, topic.topic_id);
                        topic_written = true;
                    }
                    delta.set(partition.partition_index, &committed);
                    set(
                        &mut self.committed,
                        &topic.name,
                        partition.partition_index,
                        committed,
                    );
                    ErrorCode::NONE
                } else {
                    ErrorCode::OFFSET_METADATA_TOO_LARGE
                };
                partitions.push(OffsetCommitResponsePartition {
                    partition_index: partition.partition_index,
                    error_code,
                });
            }
            topics.push(OffsetCommitResponseTopic {
                name: topic.name,
                topic_id: topic.topic_id,
                partitions,
            });
        }
        topics
    }

    /// `by_id`: an offset committed to a former topic of that name was never committed to this one (OF-43).
    pub fn fetch(
        &self,
        request: &OffsetFetchRequestGroup,
        require_stable: bool,
        by_id: bool,
    ) -> OffsetFetchResponseGroup {
        let one = |topic: &str, topic_id: Uuid, partition: i32| {
            if require_stable && self.is_pending(topic, partition) {
                return no_offset(partition, ErrorCode::UNSTABLE_OFFSET_COMMIT);
            }
            let committed = self
                .committed
                .get(topic)
                .and_then(|partitions| partitions.get(&partition));
            match committed {
                Some(committed) if !(by_id && differ(committed.topic_id, topic_id)) => {
                    OffsetFetchResponsePartitions {
                        partition_index: partition,
                        committed_offset: committed.offset,
                        committed_leader_epoch: committed.leader_epoch,
                        metadata: Some(committed.metadata.as_ref().to_owned()),
                        error_code: ErrorCode::NONE,
                    }
                }
                _ => no_offset(partition, ErrorCode::NONE),
            }
        };
        let topics = match &request.topics {
            Some(topics) => topics
                .iter()
                .map(|topic| OffsetFetchResponseTopics {
                    name: topic.name.clone(),
                    topic_id: topic.topic_id,
                    partitions: topic
                        .partition_indexes
                        .iter()
                        .map(|partition| one(&topic.name, topic.topic_id, *partition))
                        .collect(),
                })
                .collect(),
            // Without a question of ids (OF-93), and only what is committed (OF-51).
            None => self
                .committed
                .iter()
                .map(|(name, partitions)| OffsetFetchResponseTopics {
                    name: name.clone(),
                    topic_id: partitions
                        .values()
                        .next_back()
                        .map_or(Uuid::ZERO, |committed| committed.topic_id),
                    partitions: partitions
                        .keys()
                        .map(|partition| one(name, Uuid::ZERO, *partition))
                        .collect(),
                })
                .collect(),
        };
        OffsetFetchResponseGroup {
            group_id: request.group_id.clone(),
            topics,
            error_code: ErrorCode::NONE,
        }
    }

    /// Deletes what the group is not subscribed to (OF-59). The count is of partitions that had an offset.
    pub fn delete<R>(
        &mut self,
        group: &Group<R>,
        request: OffsetDeleteRequest,
        delta: &mut DeltaWriter,
    ) -> (Vec<OffsetDeleteResponseTopic>, usize) {
        let mut count = 0;
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in request.topics {
            let subscribed = group.is_subscribed(&topic.name);
            let error_code = if subscribed {
                ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC
            } else {
                ErrorCode::NONE
            };
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            let mut doomed = Vec::new();
            for partition in topic.partitions {
                let partition_index = partition.partition_index;
                let held = self
                    .committed
                    .get(&topic.name)
                    .is_some_and(|held| held.contains_key(&partition_index))
                    || self.is_pending(&topic.name, partition_index);
                if !subscribed && held {
                    doomed.push(partition_index);
                }
                partitions.push(OffsetDeleteResponsePartition {
                    partition_index,
                    error_code,
                });
            }
            count += self.remove_all(&topic.name, doomed, delta);
            topics.push(OffsetDeleteResponseTopic {
                name: topic.name,
                partitions,
            });
        }
        (topics, count)
    }

    /// Removes what is past its retention; how many.
    pub fn expire<R>(
        &mut self,
        now: Now,
        config: &GroupConfig,
        group: &Group<R>,
        delta: &mut DeltaWriter,
    ) -> usize {
        let base = match group.retention() {
            Retention::Paused => return 0,
            Retention::SinceCommit => None,
            Retention::Since(moment) => Some(moment),
        };
        let retention_ms = i64::from(config.offsets_retention_minutes) * MS_PER_MINUTE;
        let mut doomed: Vec<(String, Vec<i32>)> = Vec::new();
        for (topic, partitions) in &self.committed {
            let mut expired = Vec::new();
            for (partition, committed) in partitions {
                let over = match committed.expire_timestamp {
                    Some(moment) => now.wall_ms >= moment,
                    None => {
                        now.wall_ms
                            .saturating_sub(base.unwrap_or(committed.commit_timestamp))
                            >= retention_ms
                    }
                };
                if over && !self.is_pending(topic, *partition) {
                    expired.push(*partition);
                }
            }
            if !expired.is_empty() && !group.is_subscribed(topic) {
                doomed.push((topic.clone(), expired));
            }
        }
        doomed
            .into_iter()
            .map(|(topic, partitions)| self.remove_all(&topic, partitions, delta))
            .sum()
    }

    /// Removes the offsets, committed and pending, of a topic that is gone; how many partitions had one.
    pub fn topic_deleted(&mut self, topic: &str, topic_id: Uuid, delta: &mut DeltaWriter) -> usize {
        let layers = std::iter::once(&self.committed).chain(self.pending.values());
        let mut doomed: Vec<i32> = layers
            .filter_map(|offsets| offsets.get(topic))
            .flatten()
            .filter(|(_, committed)| !differ(committed.topic_id, topic_id))
            .map(|(partition, _)| *partition)
            .collect();
        doomed.sort_unstable();
        doomed.dedup();
        self.remove_all(topic, doomed, delta)
    }

    fn remove_all(&mut self, topic: &str, partitions: Vec<i32>, delta: &mut DeltaWriter) -> usize {
        if partitions.is_empty() {
            return 0;
        }
        delta.topic(topic, Uuid::ZERO);
        let mut count = 0;
        for partition in partitions {
            let mut held = remove(&mut self.committed, topic, partition);
            for offsets in self.pending.values_mut() {
                held |= remove(offsets, topic, partition);
            }
            // A partition named twice in a request is removed once.
            if held {
                delta.remove(partition);
                count += 1;
            }
        }
        self.pending.retain(|_, offsets| !offsets.is_empty());
        count
    }

    fn is_pending(&self, topic: &str, partition: i32) -> bool {
        self.pending.values().any(|offsets| {
            offsets
                .get(topic)
                .is_some_and(|partitions| partitions.contains_key(&partition))
        })
    }
}

/// Whether any partition of a commit has metadata that may be stored.
pub(crate) fn accepts_any(config: &GroupConfig, request: &OffsetCommitRequest) -> bool {
    let mut partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.any(|partition| metadata_fits(partition.committed_metadata.as_deref(), config))
}

/// The limit is on UTF-16 code units (OF-22). A text has never more of these than bytes.
fn metadata_fits(metadata: Option<&str>, config: &GroupConfig) -> bool {
    let limit = i64::from(config.offset_metadata_max_bytes);
    metadata.is_none_or(|metadata| {
        metadata.len() as i64 <= limit || metadata.encode_utf16().count() as i64 <= limit
    })
}

/// Both known and not the same.
fn differ(one: Uuid, other: Uuid) -> bool {
    !one.is_zero() && !other.is_zero() && one != other
}

fn no_offset(partition_index: i32, error_code: ErrorCode) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(String::new()),
        error_code,
    }
}
