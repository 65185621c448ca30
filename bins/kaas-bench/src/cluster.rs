//! The brokers behind the bootstrap address: who leads a partition, who coordinates a group; and topics to work with.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use kaas_wire::messages::create_topics::{
    CreatableTopic, CreateTopicsRequest, CreateTopicsResponse,
};
use kaas_wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse,
};
use kaas_wire::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use kaas_wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
};
use kaas_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use kaas_wire::{ErrorCode, Uuid};
use tokio::time::sleep;

use crate::client::{Connection, Failure, Versions};
use crate::clock;

/// How long a cluster may take to create topics and to find coordinators.
const PATIENCE: Duration = Duration::from_secs(60);
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// Groups whose coordinator is asked for at once.
const KEYS_AT_ONCE: usize = 1_000;

const TIMEOUT_MS: i32 = 60_000;

const BROKER_RESOURCE: i8 = 4;

/// Asks for the offset behind the last record.
const LATEST: i64 = -1;

pub struct Cluster {
    pub bootstrap: String,
    pub versions: Rc<Versions>,
    pub control: Connection,
}

#[derive(Clone, Debug)]
pub struct Topic {
    pub name: String,
    pub id: Uuid,
    /// The address of each partition's leader.
    pub leaders: Vec<String>,
}

impl Cluster {
    pub async fn connect(bootstrap: &str) -> anyhow::Result<Cluster> {
        let control = Connection::open(bootstrap)
            .await
            .with_context(|| format!("cannot reach {bootstrap}"))?;
        Ok(Cluster {
            bootstrap: bootstrap.to_owned(),
            versions: control.versions().clone(),
            control,
        })
    }

    /// Who is reached: address, cluster, brokers.
    pub async fn describe(&mut self) -> anyhow::Result<String> {
        let metadata: MetadataResponse = self
            .control
            .call(&MetadataRequest {
                topics: Some(Vec::new()),
                ..Default::default()
            })
            .await?;
        Ok(format!(
            "{}, {} broker(s), cluster {}",
            self.bootstrap,
            metadata.brokers.len(),
            metadata.cluster_id.as_deref().unwrap_or("without id"),
        ))
    }

    pub async fn open(&self, address: &str) -> Result<Connection, Failure> {
        Connection::open_knowing(address, self.versions.clone()).await
    }

    /// The topic, created with so many partitions if it is not there; it may have more.
    pub async fn topic(&mut self, name: &str, partitions: usize) -> anyhow::Result<Topic> {
        let creatable = CreatableTopic {
            name: name.to_owned(),
            num_partitions: partitions as i32,
            replication_factor: 1,
            ..Default::default()
        };
        let request = CreateTopicsRequest {
            topics: vec![creatable],
            timeout_ms: TIMEOUT_MS,
            validate_only: false,
        };
        let response: CreateTopicsResponse = self.control.call(&request).await?;
        for result in response.topics {
            if !result.error_code.is_ok() && result.error_code != ErrorCode::TOPIC_ALREADY_EXISTS {
                bail!(
                    "cannot create {name}: {} {}",
                    result.error_code,
                    result.error_message.unwrap_or_default()
                );
            }
        }
        let deadline = clock::now() + PATIENCE;
        loop {
            if let Some(topic) = self.described_topic(name).await? {
                if topic.leaders.len() < partitions {
                    bail!(
                        "topic {name} has {} partitions, not {partitions}",
                        topic.leaders.len()
                    );
                }
                // A leader may be named before it knows that it leads.
                if !self.end_offsets(&topic).await?.contains(&-1) {
                    return Ok(topic);
                }
            }
            wait_until(deadline)
                .await
                .with_context(|| format!("topic {name} has partitions without leader"))?;
        }
    }

    /// The offset behind the last record of each partition; -1 where the leader does not lead yet.
    pub async fn end_offsets(&self, topic: &Topic) -> Result<Vec<i64>, Failure> {
        let mut ends = vec![-1; topic.leaders.len()];
        let addresses: BTreeSet<&String> = topic.leaders.iter().collect();
        for address in addresses {
            let led = (0..)
                .zip(&topic.leaders)
                .filter(|(_, leader)| *leader == address);
            let partitions = led.map(|(partition, _)| ListOffsetsPartition {
                partition_index: partition,
                timestamp: LATEST,
                ..Default::default()
            });
            let request = ListOffsetsRequest {
                replica_id: -1,
                topics: vec![ListOffsetsTopic {
                    name: topic.name.clone(),
                    partitions: partitions.collect(),
                }],
                ..Default::default()
            };
            let response: ListOffsetsResponse = self.open(address).await?.call(&request).await?;
            for partition in response.topics.iter().flat_map(|topic| &topic.partitions) {
                if let Some(end) = ends.get_mut(partition.partition_index as usize) {
                    *end = partition.offset;
                }
            }
        }
        Ok(ends)
    }

    /// `None` while a partition has no leader.
    async fn described_topic(&mut self, name: &str) -> anyhow::Result<Option<Topic>> {
        let request = MetadataRequest {
            topics: Some(vec![MetadataRequestTopic {
                name: Some(name.to_owned()),
                ..Default::default()
            }]),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        let metadata: MetadataResponse = self.control.call(&request).await?;
        let addresses: BTreeMap<i32, String> = metadata
            .brokers
            .iter()
            .map(|broker| (broker.node_id, format!("{}:{}", broker.host, broker.port)))
            .collect();
        let Some(topic) = metadata
            .topics
            .into_iter()
            .find(|topic| topic.error_code.is_ok())
        else {
            return Ok(None);
        };
        let mut leaders = vec![None; topic.partitions.len()];
        for partition in topic.partitions {
            if let Some(slot) = leaders.get_mut(partition.partition_index as usize) {
                *slot = addresses.get(&partition.leader_id).cloned();
            }
        }
        let leaders: Option<Vec<String>> = leaders.into_iter().collect();
        Ok(leaders.map(|leaders| Topic {
            name: name.to_owned(),
            id: topic.topic_id,
            leaders,
        }))
    }

    /// The address of each group's coordinator.
    pub async fn coordinators(&mut self, groups: &[String]) -> anyhow::Result<Vec<String>> {
        let deadline = clock::now() + PATIENCE;
        let mut addresses = BTreeMap::new();
        for chunk in groups.chunks(KEYS_AT_ONCE) {
            while let Err(code) =
                find_coordinators(&mut self.control, chunk, &mut addresses).await?
            {
                wait_until(deadline)
                    .await
                    .with_context(|| format!("coordinators are not found: {code}"))?;
            }
        }
        groups
            .iter()
            .map(|group| {
                addresses
                    .get(group)
                    .cloned()
                    .with_context(|| format!("{group} was left out of the answer"))
            })
            .collect()
    }

    /// The broker's value of a key of its configuration.
    pub async fn broker_config(&mut self, key: &str) -> anyhow::Result<Option<String>> {
        let metadata: MetadataResponse = self
            .control
            .call(&MetadataRequest {
                topics: Some(Vec::new()),
                ..Default::default()
            })
            .await?;
        let Some(broker) = metadata.brokers.first() else {
            return Ok(None);
        };
        let resource = DescribeConfigsResource {
            resource_type: BROKER_RESOURCE,
            resource_name: broker.node_id.to_string(),
            configuration_keys: Some(vec![key.to_owned()]),
        };
        let request = DescribeConfigsRequest {
            resources: vec![resource],
            ..Default::default()
        };
        let response: DescribeConfigsResponse = self.control.call(&request).await?;
        let configs = response
            .results
            .into_iter()
            .flat_map(|result| result.configs);
        Ok(configs
            .filter(|config| config.name == key)
            .find_map(|config| config.value))
    }
}

/// Adds what is found to `addresses`; the first error ends it.
pub async fn find_coordinators(
    connection: &mut Connection,
    groups: &[String],
    addresses: &mut BTreeMap<String, String>,
) -> Result<Result<(), ErrorCode>, Failure> {
    let request = FindCoordinatorRequest {
        coordinator_keys: groups.to_vec(),
        ..Default::default()
    };
    let response: FindCoordinatorResponse = connection.call(&request).await?;
    for coordinator in response.coordinators {
        if !coordinator.error_code.is_ok() {
            return Ok(Err(coordinator.error_code));
        }
        addresses.insert(
            coordinator.key,
            format!("{}:{}", coordinator.host, coordinator.port),
        );
    }
    Ok(Ok(()))
}

async fn wait_until(deadline: Instant) -> anyhow::Result<()> {
    if clock::now() >= deadline {
        bail!("not after {} s", PATIENCE.as_secs());
    }
    sleep(RETRY_AFTER).await;
    Ok(())
}
