//! DeleteTopics (20): topics by name or, from version 6, by id. What a client is told is durably gone.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::messages::delete_topics::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use kaas_wire::{ErrorCode, Uuid};

use crate::topics::{self, ApiError, Table};
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 1..=6;

pub async fn handle(
    broker: &Arc<Broker>,
    ctx: &Ctx,
    request: DeleteTopicsRequest,
) -> DeleteTopicsResponse {
    let asked: Vec<DeleteTopicState> = if ctx.version >= 6 {
        request.topics
    } else {
        request
            .topic_names
            .into_iter()
            .map(|name| DeleteTopicState {
                name: Some(name),
                topic_id: Uuid::ZERO,
            })
            .collect()
    };
    if !broker.config.load().delete_topic_enable {
        let error = ApiError::new(
            if ctx.version < 3 {
                ErrorCode::INVALID_REQUEST
            } else {
                ErrorCode::TOPIC_DELETION_DISABLED
            },
            "This version does not support topic deletion.",
        );
        let responses = asked
            .into_iter()
            .map(|topic| result(topic.name, topic.topic_id, Err(error.clone())))
            .collect();
        return DeleteTopicsResponse {
            responses,
            ..Default::default()
        };
    }
    let resolved = resolve(&broker.topics.table(), asked);
    let found = resolved
        .iter()
        .filter_map(|topic| topic.found.as_ref().ok().copied())
        .collect();
    let mut deleted = topics::delete(broker, found).await.into_iter();
    let responses = resolved
        .into_iter()
        .map(|topic| match topic.found {
            Ok(id) => result(topic.name, id, deleted.next().expect("one answer a topic")),
            Err(error) => result(topic.name, topic.topic_id, Err(error)),
        })
        .collect();
    DeleteTopicsResponse {
        responses,
        ..Default::default()
    }
}

struct Resolved {
    name: Option<String>,
    topic_id: Uuid,
    found: Result<Uuid, ApiError>,
}

/// Which topics are meant. Whoever is named twice is refused, not deleted.
fn resolve(table: &Table, asked: Vec<DeleteTopicState>) -> Vec<Resolved> {
    let mut names = BTreeMap::<String, usize>::new();
    let mut ids = BTreeMap::<Uuid, usize>::new();
    for topic in &asked {
        match &topic.name {
            Some(name) if topic.topic_id == Uuid::ZERO => {
                *names.entry(name.clone()).or_default() += 1
            }
            None if topic.topic_id != Uuid::ZERO => *ids.entry(topic.topic_id).or_default() += 1,
            _ => {}
        }
    }
    let refuse = |why: &str| Err(ApiError::new(ErrorCode::INVALID_REQUEST, why));
    let mut resolved = Vec::with_capacity(asked.len());
    for topic in &asked {
        let found = match &topic.name {
            None if topic.topic_id == Uuid::ZERO => {
                refuse("Neither topic name nor id were specified.")
            }
            Some(_) if topic.topic_id != Uuid::ZERO => {
                refuse("You may not specify both topic name and topic id.")
            }
            _ => continue,
        };
        resolved.push(Resolved {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            found,
        });
    }
    for (id, times) in &ids {
        let (name, found) = match table.get_by_id(id) {
            _ if *times > 1 => (None, refuse("Duplicate topic id.")),
            Some(topic) if names.contains_key(&topic.name) => (
                Some(topic.name.clone()),
                refuse("The provided topic name maps to an ID that was already supplied."),
            ),
            Some(topic) => (Some(topic.name.clone()), Ok(*id)),
            None => (None, Err(ApiError::bare(ErrorCode::UNKNOWN_TOPIC_ID))),
        };
        resolved.push(Resolved {
            name,
            topic_id: *id,
            found,
        });
    }
    for (name, times) in names {
        let found = match table.get(&name) {
            _ if times > 1 => refuse("Duplicate topic name."),
            // Answered with its id.
            Some(topic) if ids.contains_key(&topic.id) => continue,
            Some(topic) => Ok(topic.id),
            None => Err(topics::unknown(table, &name)),
        };
        resolved.push(Resolved {
            name: Some(name),
            topic_id: Uuid::ZERO,
            found,
        });
    }
    resolved
}

fn result(
    name: Option<String>,
    topic_id: Uuid,
    deleted: Result<(), ApiError>,
) -> DeletableTopicResult {
    let (error_code, error_message) = match deleted {
        Ok(()) => (ErrorCode::NONE, None),
        Err(error) => (error.code, error.message),
    };
    DeletableTopicResult {
        name,
        topic_id,
        error_code,
        error_message,
    }
}
