//! CreatePartitions (37): more partitions for a topic; there are never fewer.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic,
    CreatePartitionsTopicResult,
};

use crate::handlers::create_topics::{MAX_PARTITIONS_PER_REQUEST, check_replicas};
use crate::topics::{self, ApiError, Topic};
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=3;

pub async fn handle(
    broker: &Arc<Broker>,
    _ctx: &Ctx,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let mut times = BTreeMap::<String, usize>::new();
    for topic in &request.topics {
        *times.entry(topic.name.clone()).or_default() += 1;
    }
    let mut results: Vec<CreatePartitionsTopicResult> = times
        .iter()
        .filter(|(_, times)| **times > 1)
        .map(|(name, _)| {
            result(
                name,
                Err(ApiError::new(
                    ErrorCode::INVALID_REQUEST,
                    "Duplicate topic name.",
                )),
            )
        })
        .collect();
    for topic in request
        .topics
        .iter()
        .filter(|topic| times[&topic.name] == 1)
    {
        let grown = if request.validate_only {
            let table = broker.topics.table();
            match table.get(&topic.name) {
                Some(old) => validate(broker, old, topic),
                None => Err(topics::unknown(&table, &topic.name)),
            }
        } else {
            let (of_it, asked) = (broker.clone(), topic.clone());
            topics::grow(broker, topic.name.clone(), topic.count, move |old| {
                validate(&of_it, old, &asked)
            })
            .await
        };
        results.push(result(&topic.name, grown));
    }
    CreatePartitionsResponse {
        results,
        ..Default::default()
    }
}

fn validate(broker: &Broker, old: &Topic, asked: &CreatePartitionsTopic) -> Result<(), ApiError> {
    if asked.count == old.partitions {
        return Err(ApiError::new(
            ErrorCode::INVALID_PARTITIONS,
            format!("Topic already has {} partition(s).", old.partitions),
        ));
    }
    if asked.count < old.partitions {
        return Err(ApiError::new(
            ErrorCode::INVALID_PARTITIONS,
            format!(
                "The topic {} currently has {} partition(s); {} would not be an increase.",
                old.name, old.partitions, asked.count
            ),
        ));
    }
    let additional = asked.count - old.partitions;
    if additional > MAX_PARTITIONS_PER_REQUEST {
        return Err(ApiError::new(
            ErrorCode::POLICY_VIOLATION,
            "Excessively large number of additional partitions per request.",
        ));
    }
    if let Some(assignments) = &asked.assignments {
        if assignments.len() != additional as usize {
            return Err(ApiError::new(
                ErrorCode::INVALID_REPLICA_ASSIGNMENT,
                format!(
                    "Attempted to add {additional} additional partition(s), but only {} assignment(s) were specified.",
                    assignments.len()
                ),
            ));
        }
        let view = broker.cluster.load();
        for assignment in assignments {
            check_replicas(&assignment.broker_ids, Some(1), &view)?;
        }
    }
    Ok(())
}

fn result(name: &str, grown: Result<(), ApiError>) -> CreatePartitionsTopicResult {
    let (error_code, error_message) = match grown {
        Ok(()) => (ErrorCode::NONE, None),
        Err(error) => (error.code, error.message),
    };
    CreatePartitionsTopicResult {
        name: name.to_owned(),
        error_code,
        error_message,
    }
}
