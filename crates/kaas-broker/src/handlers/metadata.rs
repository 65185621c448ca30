//! Metadata (3): brokers, topics, and who leads which partition. Asking for a topic may create it.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::messages::metadata::{
    MetadataRequest, MetadataResponse, MetadataResponseBroker, MetadataResponsePartition,
    MetadataResponseTopic,
};
use kaas_wire::{ErrorCode, Uuid};
use tracing::warn;

use crate::assignment::ClusterView;
use crate::topics::{self, NewTopic, Table, Topic};
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=13;

/// Without an authoriser everybody may do everything a topic supports: read, write, create, delete, alter, describe,
/// describe and alter configs, as bits of Kafka's `AclOperation`.
pub const TOPIC_OPERATIONS: i32 =
    1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11;
/// The same for the cluster: create, alter, describe, cluster action, describe and alter configs, idempotent write.
pub const CLUSTER_OPERATIONS: i32 = 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;

/// What a request asks for.
enum Asked {
    All,
    /// In the order asked, each once.
    Topics(Vec<Key>),
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Clone)]
enum Key {
    Name(String),
    Id(Uuid),
}

pub async fn handle(broker: &Arc<Broker>, ctx: &Ctx, request: MetadataRequest) -> MetadataResponse {
    let topics = match asked(ctx.version, &request) {
        Ok(Asked::All) => {
            let table = broker.topics.table();
            let view = broker.cluster.load();
            table.iter().map(|topic| describe(&view, topic)).collect()
        }
        Ok(Asked::Topics(keys)) => {
            let missing = missing(&broker.topics.table(), &keys);
            let view = broker.cluster.load_full();
            let table = broker.topics.table();
            let answers = keys
                .into_iter()
                .map(|key| answer(&table, &view, key))
                .collect();
            if request.allow_auto_topic_creation && broker.config.load().auto_create_topics_enable {
                create_missing(broker, missing).await;
            }
            answers
        }
        // Kafka's answer to such a request tells nothing else.
        Err(error) => {
            let topics = refuse(request.topics.unwrap_or_default(), error);
            return MetadataResponse {
                topics,
                ..Default::default()
            };
        }
    };
    let view = broker.cluster.load();
    let mut response = MetadataResponse {
        brokers: view
            .alive()
            .map(|entry| {
                let (host, port) = broker.address_of(&ctx.connection, entry);
                MetadataResponseBroker {
                    node_id: entry.id,
                    host,
                    port,
                    rack: None,
                }
            })
            .collect(),
        cluster_id: Some(view.cluster_id.clone()),
        controller_id: view.controller_id,
        topics,
        ..Default::default()
    };
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = CLUSTER_OPERATIONS;
    }
    if request.include_topic_authorized_operations {
        // Told of every topic that has a name, whether it exists or not.
        for topic in response
            .topics
            .iter_mut()
            .filter(|topic| topic.name.is_some())
        {
            topic.topic_authorized_operations = TOPIC_OPERATIONS;
        }
    }
    response
}

/// Null means all topics, and in version 0, which has no null, so does the empty list. If any topic is named by its id,
/// all are.
fn asked(version: i16, request: &MetadataRequest) -> Result<Asked, ErrorCode> {
    let Some(topics) = &request.topics else {
        return Ok(Asked::All);
    };
    if version == 0 && topics.is_empty() {
        return Ok(Asked::All);
    }
    if version < 12
        && topics
            .iter()
            .any(|topic| topic.name.is_none() || topic.topic_id != Uuid::ZERO)
    {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    // Kafka fails on it; its code is copied.
    if topics
        .iter()
        .any(|topic| topic.name.is_none() && topic.topic_id == Uuid::ZERO)
    {
        return Err(ErrorCode::UNKNOWN_SERVER_ERROR);
    }
    let by_id = topics.iter().any(|topic| topic.topic_id != Uuid::ZERO);
    let mut seen = BTreeSet::new();
    let mut keys = Vec::new();
    for topic in topics {
        let key = match &topic.name {
            _ if by_id && topic.topic_id == Uuid::ZERO => continue,
            _ if by_id => Key::Id(topic.topic_id),
            Some(name) => Key::Name(name.clone()),
            None => continue,
        };
        if seen.insert(key.clone()) {
            keys.push(key);
        }
    }
    Ok(Asked::Topics(keys))
}

fn refuse(
    topics: Vec<kaas_wire::messages::metadata::MetadataRequestTopic>,
    error: ErrorCode,
) -> Vec<MetadataResponseTopic> {
    topics
        .into_iter()
        .map(|topic| MetadataResponseTopic {
            error_code: error,
            name: Some(topic.name.unwrap_or_default()),
            topic_id: topic.topic_id,
            ..Default::default()
        })
        .collect()
}

fn answer(table: &Table, view: &ClusterView, key: Key) -> MetadataResponseTopic {
    match key {
        Key::Name(name) => match table.get(&name) {
            Some(topic) => describe(view, topic),
            None => MetadataResponseTopic {
                error_code: match topics::validate_name(&name) {
                    Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
                    Ok(()) => topics::unknown(table, &name).code,
                },
                is_internal: topics::is_internal(&name),
                name: Some(name),
                ..Default::default()
            },
        },
        Key::Id(id) => match table.get_by_id(&id) {
            Some(topic) => describe(view, topic),
            None => MetadataResponseTopic {
                error_code: ErrorCode::UNKNOWN_TOPIC_ID,
                name: None,
                topic_id: id,
                ..Default::default()
            },
        },
    }
}

fn describe(view: &ClusterView, topic: &Topic) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: ErrorCode::NONE,
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: false,
        partitions: (0..topic.partitions)
            .map(|partition| describe_partition(view, topic, partition))
            .collect(),
        ..Default::default()
    }
}

/// The volume holds one copy, so the leader is the one replica there is.
pub fn describe_partition(
    view: &ClusterView,
    topic: &Topic,
    partition: i32,
) -> MetadataResponsePartition {
    let leader = view.leader(topic.id, partition);
    let alive = leader.filter(|leader| view.alive().any(|broker| broker.id == leader.id));
    let replicas: Vec<i32> = leader.iter().map(|leader| leader.id).collect();
    MetadataResponsePartition {
        error_code: if alive.is_some() {
            ErrorCode::NONE
        } else {
            ErrorCode::LEADER_NOT_AVAILABLE
        },
        partition_index: partition,
        leader_id: alive.map_or(-1, |leader| leader.id),
        leader_epoch: leader.map_or(-1, |leader| leader.epoch),
        offline_replicas: if alive.is_some() {
            Vec::new()
        } else {
            replicas.clone()
        },
        isr_nodes: alive.iter().map(|leader| leader.id).collect(),
        replica_nodes: replicas,
    }
}

/// Topics asked for by name that could exist and do not.
fn missing(table: &Table, keys: &[Key]) -> Vec<String> {
    keys.iter()
        .filter_map(|key| match key {
            Key::Name(name) if table.get(name).is_none() && topics::validate_name(name).is_ok() => {
                Some(name.clone())
            }
            _ => None,
        })
        .filter(|name| !topics::is_internal(name) && table.refused(name).is_none())
        .collect()
}

/// Creates topics that were asked for. As with Kafka, this answer still says that they are unknown; the client's next
/// request finds them, because they are there before the answer leaves.
async fn create_missing(broker: &Arc<Broker>, names: Vec<String>) {
    if names.is_empty() {
        return;
    }
    let config = broker.config.load();
    let wanted = names
        .into_iter()
        .map(|name| NewTopic {
            name,
            id: broker.ids.kafka_uuid(),
            partitions: config.num_partitions,
            configs: Default::default(),
            created_ms: broker.clock.wall_ms(),
        })
        .collect();
    for error in topics::create(broker, wanted)
        .await
        .into_iter()
        .filter_map(Result::err)
    {
        if error.code != ErrorCode::TOPIC_ALREADY_EXISTS {
            warn!(code = %error.code, message = error.message, "topic not created on demand");
        }
    }
}
