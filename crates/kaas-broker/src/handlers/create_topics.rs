//! CreateTopics (19): new topics, each with its own answer. Texts and their precedence are those of Kafka's controller.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfigs, CreatableTopicResult,
    CreateTopicsRequest, CreateTopicsResponse,
};
use kaas_wire::{ErrorCode, Uuid};

use crate::assignment::{BrokerState, ClusterView};
use crate::config::topic::TopicConfig;
use crate::topics::{self, ApiError, NewTopic};
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 2..=7;

/// Kafka's `MAX_PARTITIONS_PER_BATCH`: more in one request are refused whole.
pub const MAX_PARTITIONS_PER_REQUEST: i32 = 10_000;

pub async fn handle(
    broker: &Arc<Broker>,
    _ctx: &Ctx,
    request: CreateTopicsRequest,
) -> CreateTopicsResponse {
    let mut seen = BTreeMap::<&str, usize>::new();
    for topic in &request.topics {
        *seen.entry(&topic.name).or_default() += 1;
    }
    let duplicates: BTreeSet<String> = seen
        .into_iter()
        .filter(|(_, times)| *times > 1)
        .map(|(name, _)| name.to_owned())
        .collect();
    let single = || {
        request
            .topics
            .iter()
            .filter(|topic| !duplicates.contains(&topic.name))
    };

    let asked: i64 = single()
        .map(|topic| {
            if topic.assignments.is_empty() {
                i64::from(topic.num_partitions.max(0))
            } else {
                topic.assignments.len() as i64
            }
        })
        .sum();
    let mut answers: Vec<Result<NewTopic, ApiError>> = single()
        .map(|topic| {
            if asked > i64::from(MAX_PARTITIONS_PER_REQUEST) {
                return Err(ApiError::new(
                    ErrorCode::POLICY_VIOLATION,
                    "Excessively large number of partitions per request.",
                ));
            }
            validate(broker, topic)
        })
        .collect();

    if !request.validate_only {
        let wanted: Vec<NewTopic> = answers
            .iter()
            .filter_map(|answer| answer.as_ref().ok().cloned())
            .collect();
        let mut created = topics::create(broker, wanted).await.into_iter();
        for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
            if let Err(error) = created.next().expect("one answer a topic") {
                *answer = Err(error);
            }
        }
    }
    let mut results: Vec<CreatableTopicResult> = single()
        .zip(answers)
        .map(|(topic, answer)| match answer {
            Ok(new) => created_result(broker, new),
            Err(error) => refused_result(&topic.name, error),
        })
        .collect();
    results.extend(duplicates.iter().map(|name| {
        refused_result(
            name,
            ApiError::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name."),
        )
    }));
    CreateTopicsResponse {
        topics: results,
        ..Default::default()
    }
}

fn validate(broker: &Arc<Broker>, topic: &CreatableTopic) -> Result<NewTopic, ApiError> {
    if topic.name == "__cluster_metadata" {
        return Err(ApiError::new(
            ErrorCode::INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ));
    }
    let table = broker.topics.table();
    topics::validate_name(&topic.name)
        .map_err(|why| ApiError::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why))?;
    topics::may_create(&table, &topic.name)?;
    let mut overrides = BTreeMap::new();
    let mut nulls = Vec::new();
    for config in &topic.configs {
        match &config.value {
            Some(value) => {
                overrides.insert(config.name.clone(), value.clone());
            }
            None => nulls.push(config.name.as_str()),
        }
    }
    if !nulls.is_empty() {
        return Err(ApiError::new(
            ErrorCode::INVALID_CONFIG,
            format!(
                "Null value not supported for topic configs: {}",
                nulls.join(",")
            ),
        ));
    }
    let config = broker.config.load();
    TopicConfig::with_overrides(&config, &overrides)?;
    let partitions = if topic.assignments.is_empty() {
        if topic.replication_factor < -1 || topic.replication_factor == 0 {
            return Err(ApiError::new(
                ErrorCode::INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            ));
        }
        if topic.num_partitions < -1 || topic.num_partitions == 0 {
            return Err(ApiError::new(
                ErrorCode::INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            ));
        }
        // What the operator set as the default holds on any number of brokers: the volume keeps the only copy.
        let brokers = broker.cluster.load().alive().count();
        if topic.replication_factor > 1 && topic.replication_factor as usize > brokers {
            return Err(ApiError::new(
                ErrorCode::INVALID_REPLICATION_FACTOR,
                format!(
                    "Unable to replicate the partition {} time(s): The target replication factor of {} cannot be reached because only {brokers} broker(s) are registered or some brokers have all their log directories cordoned.",
                    topic.replication_factor, topic.replication_factor
                ),
            ));
        }
        if topic.num_partitions == -1 {
            config.num_partitions
        } else {
            topic.num_partitions
        }
    } else {
        manual(topic, &broker.cluster.load())?
    };
    if topics::is_internal(&topic.name) {
        return Err(ApiError::new(
            ErrorCode::INVALID_TOPIC_EXCEPTION,
            format!(
                "Topic name is invalid: '{}' is kept by the broker itself and is no topic here",
                topic.name
            ),
        ));
    }
    Ok(NewTopic {
        name: topic.name.clone(),
        id: broker.ids.kafka_uuid(),
        partitions,
        configs: overrides,
        created_ms: broker.clock.wall_ms(),
    })
}

/// Checks an assignment made by hand; the number of partitions it names. Replicas are a formality here, so beyond the
/// checks they are not kept.
fn manual(topic: &CreatableTopic, view: &ClusterView) -> Result<i32, ApiError> {
    if topic.replication_factor != -1 {
        return Err(ApiError::new(
            ErrorCode::INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ));
    }
    if topic.num_partitions != -1 {
        return Err(ApiError::new(
            ErrorCode::INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ));
    }
    let mut factor = None;
    let mut indices = BTreeSet::new();
    for CreatableReplicaAssignment {
        partition_index,
        broker_ids,
    } in &topic.assignments
    {
        if indices.contains(partition_index) {
            return Err(ApiError::new(
                ErrorCode::INVALID_REPLICA_ASSIGNMENT,
                format!(
                    "Found multiple manual partition assignments for partition {partition_index}"
                ),
            ));
        }
        check_replicas(broker_ids, factor, view)?;
        factor = Some(broker_ids.len());
        if !broker_ids.iter().any(|id| {
            view.broker(*id)
                .is_some_and(|broker| broker.state == BrokerState::Alive)
        }) {
            return Err(ApiError::new(
                ErrorCode::INVALID_REPLICA_ASSIGNMENT,
                format!(
                    "All brokers specified in the manual partition assignment for partition {partition_index} are fenced or in controlled shutdown."
                ),
            ));
        }
        indices.insert(*partition_index);
    }
    if (0..topic.assignments.len() as i32).any(|index| !indices.contains(&index)) {
        return Err(ApiError::new(
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ));
    }
    Ok(topic.assignments.len() as i32)
}

/// The replicas of one partition as someone assigned them by hand.
pub fn check_replicas(
    replicas: &[i32],
    factor: Option<usize>,
    view: &ClusterView,
) -> Result<(), ApiError> {
    let refuse = |why: String| Err(ApiError::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, why));
    if replicas.is_empty() {
        return refuse(
            "The manual partition assignment includes an empty replica list.".to_owned(),
        );
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    let mut last = None;
    for id in sorted {
        if view.broker(id).is_none() {
            return refuse(format!(
                "The manual partition assignment includes broker {id}, but no such broker is registered."
            ));
        }
        if last == Some(id) {
            return refuse(format!(
                "The manual partition assignment includes the broker {id} more than once."
            ));
        }
        last = Some(id);
    }
    match factor {
        Some(factor) if factor != replicas.len() => refuse(format!(
            "The manual partition assignment includes a partition with {} replica(s), but this is not consistent with previous partitions, which have {factor} replica(s).",
            replicas.len()
        )),
        _ => Ok(()),
    }
}

fn created_result(broker: &Arc<Broker>, new: NewTopic) -> CreatableTopicResult {
    let configs = broker
        .config
        .describe_topic(&new.configs)
        .unwrap_or_default()
        .into_iter();
    let configs = configs.map(|entry| CreatableTopicConfigs {
        name: entry.name.to_owned(),
        value: entry.value,
        read_only: entry.read_only,
        config_source: entry.source.code(),
        is_sensitive: false,
    });
    CreatableTopicResult {
        name: new.name,
        topic_id: new.id,
        error_code: ErrorCode::NONE,
        error_message: None,
        num_partitions: new.partitions,
        replication_factor: 1,
        configs: Some(configs.collect()),
        topic_config_error_code: 0,
    }
}

fn refused_result(name: &str, error: ApiError) -> CreatableTopicResult {
    CreatableTopicResult {
        name: name.to_owned(),
        topic_id: Uuid::ZERO,
        error_code: error.code,
        error_message: error.message,
        ..Default::default()
    }
}
