//! Committed offsets: written once, and read back.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::bail;
use kaas_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use kaas_wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponse,
};
use kaas_wire::{ApiKey, Uuid};

use crate::client::Connection;
use crate::cluster::{Cluster, Topic};
use crate::measure::Measure;

/// Groups that are asked for at once.
const GROUPS_AT_ONCE: usize = 500;

/// Commits that are under way on a connection.
const COMMITS_AT_ONCE: usize = 50;

/// A commit of a consumer that is no member of the group.
pub fn commit_request(
    group: &str,
    topic: &str,
    topic_id: Uuid,
    offsets: impl Iterator<Item = (usize, i64)>,
) -> OffsetCommitRequest {
    let partitions = offsets
        .map(|(partition, offset)| OffsetCommitRequestPartition {
            partition_index: partition as i32,
            committed_offset: offset,
            ..Default::default()
        })
        .collect();
    OffsetCommitRequest {
        group_id: group.to_owned(),
        topics: vec![OffsetCommitRequestTopic {
            name: topic.to_owned(),
            topic_id,
            partitions,
        }],
        ..Default::default()
    }
}

/// What [`commit_once`] commits in every partition of a group.
pub fn offset_of(group: usize) -> i64 {
    1_000 + group as i64
}

/// Commits for every group, in all partitions. So many are under way at once that the broker is busy.
pub async fn commit_once(
    cluster: &mut Cluster,
    groups: &[String],
    coordinators: &[String],
    topic: &Topic,
    partitions: usize,
) -> anyhow::Result<()> {
    let mut by_address: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (group, address) in coordinators.iter().enumerate() {
        by_address.entry(address).or_default().push(group);
    }
    for (address, here) in by_address {
        let mut connection = cluster.open(address).await?;
        for chunk in here.chunks(COMMITS_AT_ONCE) {
            for &group in chunk {
                let offsets = (0..partitions).map(|partition| (partition, offset_of(group)));
                let frame = connection.frame(&commit_request(
                    &groups[group],
                    &topic.name,
                    topic.id,
                    offsets,
                ))?;
                connection.push(&frame);
            }
            for &group in chunk {
                let response: OffsetCommitResponse = connection.next_answer().await?.decode()?;
                let mut codes = response
                    .topics
                    .iter()
                    .flat_map(|topic| &topic.partitions)
                    .map(|each| each.error_code);
                if let Some(code) = codes.find(|code| !code.is_ok()) {
                    bail!("cannot commit for {}: {code}", groups[group]);
                }
            }
        }
    }
    Ok(())
}

/// What one connection committed for a group: the same offset in all partitions.
pub struct Committed {
    pub group: usize,
    pub partitions: Range<usize>,
    pub acknowledged: Option<i64>,
    /// The last offset that was sent. It counts too if it was answered with an error.
    pub attempted: i64,
}

/// Reads every committed offset and tells what is not as it was acknowledged. Gives the number read.
pub async fn read_back(
    cluster: &mut Cluster,
    groups: &[String],
    coordinators: &[String],
    topic: &Topic,
    committed: &[Committed],
    measure: &Measure,
) -> anyhow::Result<usize> {
    let mut by_address: BTreeMap<&str, Vec<&Committed>> = BTreeMap::new();
    for commit in committed {
        by_address
            .entry(&coordinators[commit.group])
            .or_default()
            .push(commit);
    }
    let mut read = 0;
    for (address, commits) in by_address {
        let mut connection = cluster.open(address).await?;
        for chunk in commits.chunks(GROUPS_AT_ONCE) {
            // Several connections may have committed for one group, each in partitions of its own.
            let mut partitions: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
            for commit in chunk {
                let indexes = partitions.entry(&groups[commit.group]).or_default();
                indexes.extend(commit.partitions.clone().map(|partition| partition as i32));
            }
            let found = fetch_offsets(&mut connection, topic, &partitions, measure).await?;
            for commit in chunk {
                let group = &groups[commit.group];
                for partition in commit.partitions.clone() {
                    read += 1;
                    let offset = found.get(&(group.clone(), partition as i32)).copied();
                    let right = match commit.acknowledged {
                        Some(acknowledged) => offset.is_some_and(|offset| {
                            (acknowledged..=commit.attempted).contains(&offset)
                        }),
                        None => true,
                    };
                    if !right {
                        measure.wrong(|| {
                            format!(
                                "{group} partition {partition}: {:?} was acknowledged, {offset:?} is read back",
                                commit.acknowledged
                            )
                        });
                    }
                }
            }
        }
    }
    Ok(read)
}

/// The request for the given partitions of each group.
pub fn fetch_request<'a>(
    topic: &Topic,
    partitions: impl Iterator<Item = (&'a str, Vec<i32>)>,
) -> OffsetFetchRequest {
    let groups = partitions
        .map(|(group, partition_indexes)| OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: topic.name.clone(),
                topic_id: topic.id,
                partition_indexes,
            }]),
            ..Default::default()
        })
        .collect();
    OffsetFetchRequest {
        groups,
        ..Default::default()
    }
}

async fn fetch_offsets(
    connection: &mut Connection,
    topic: &Topic,
    partitions: &BTreeMap<&str, Vec<i32>>,
    measure: &Measure,
) -> anyhow::Result<BTreeMap<(String, i32), i64>> {
    let request = fetch_request(
        topic,
        partitions
            .iter()
            .map(|(group, indexes)| (*group, indexes.clone())),
    );
    let response: OffsetFetchResponse = connection.call(&request).await?;
    Ok(offsets_of(&response, measure))
}

/// The offsets in an answer, by group and partition; errors are counted.
pub fn offsets_of(
    response: &OffsetFetchResponse,
    measure: &Measure,
) -> BTreeMap<(String, i32), i64> {
    let mut offsets = BTreeMap::new();
    for group in &response.groups {
        if !group.error_code.is_ok() {
            measure.error(ApiKey::OFFSET_FETCH, group.error_code);
        }
        for partition in group.topics.iter().flat_map(|topic| &topic.partitions) {
            if partition.error_code.is_ok() {
                offsets.insert(
                    (group.group_id.clone(), partition.partition_index),
                    partition.committed_offset,
                );
            } else {
                measure.error(ApiKey::OFFSET_FETCH, partition.error_code);
            }
        }
    }
    offsets
}
