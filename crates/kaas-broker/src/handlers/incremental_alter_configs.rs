//! IncrementalAlterConfigs (44): single keys set, deleted, or with elements added to and taken from their lists.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};

use crate::config::alter::Change;
use crate::resource_configs::{Edit, ResourceType};
use crate::topics::ApiError;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=1;

/// Kafka's `AlterConfigOp.OpType`.
const DELETE: i8 = 1;
const SUBTRACT: i8 = 3;

pub async fn handle(
    broker: &Arc<Broker>,
    _ctx: &Ctx,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let mut times = BTreeMap::<(i8, &str), usize>::new();
    for resource in &request.resources {
        *times
            .entry((resource.resource_type, &resource.resource_name))
            .or_default() += 1;
    }
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        let altered = if times[&(resource.resource_type, resource.resource_name.as_str())] > 1 {
            Err(ApiError::new(
                ErrorCode::INVALID_REQUEST,
                "Each resource must appear at most once.",
            ))
        } else {
            alter(broker, resource, request.validate_only).await
        };
        let (error_code, error_message) = match altered {
            Ok(()) => (ErrorCode::NONE, None),
            Err(error) => (error.code, error.message),
        };
        responses.push(AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
        });
    }
    IncrementalAlterConfigsResponse {
        responses,
        ..Default::default()
    }
}

async fn alter(
    broker: &Arc<Broker>,
    resource: &AlterConfigsResource,
    validate_only: bool,
) -> Result<(), ApiError> {
    let refuse = |why: String| ApiError::new(ErrorCode::INVALID_REQUEST, why);
    let mut seen = BTreeSet::new();
    if !resource
        .configs
        .iter()
        .all(|config| seen.insert(config.name.as_str()))
    {
        return Err(refuse("Error due to duplicate config keys".to_owned()));
    }
    let nulls: Vec<&str> = resource
        .configs
        .iter()
        .filter(|config| config.config_operation != DELETE && config.value.is_none())
        .map(|config| config.name.as_str())
        .collect();
    if !nulls.is_empty() {
        return Err(refuse(format!(
            "Null value not supported for : {}",
            nulls.join(", ")
        )));
    }
    let kind = ResourceType::of(resource.resource_type)
        .ok_or_else(|| refuse(format!("Unknown resource type {}", resource.resource_type)))?;
    if resource
        .configs
        .iter()
        .any(|config| !(0..=SUBTRACT).contains(&config.config_operation))
    {
        // Kafka trips over it; its code is copied.
        return Err(ApiError {
            code: ErrorCode::UNKNOWN_SERVER_ERROR,
            message: None,
        });
    }
    let mut changes = Vec::with_capacity(resource.configs.len());
    for config in &resource.configs {
        let change = Change::from_wire(
            &config.name,
            config.config_operation,
            config.value.as_deref(),
        )?;
        changes.push((config.name.clone(), change));
    }
    broker
        .resource_configs
        .alter(
            kind,
            &resource.resource_name,
            Edit::Incremental(changes),
            validate_only,
        )
        .await
}
