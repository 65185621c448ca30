//! AlterConfigs (33): all overrides of a resource replaced at once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::alter_configs::{
    AlterConfigsRequest, AlterConfigsResource, AlterConfigsResourceResponse, AlterConfigsResponse,
};

use crate::config::topic::Overrides;
use crate::resource_configs::{Edit, ResourceType};
use crate::topics::ApiError;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=2;

pub async fn handle(
    broker: &Arc<Broker>,
    _ctx: &Ctx,
    request: AlterConfigsRequest,
) -> AlterConfigsResponse {
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
    AlterConfigsResponse {
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
        .filter(|config| config.value.is_none())
        .map(|config| config.name.as_str())
        .collect();
    if !nulls.is_empty() {
        return Err(refuse(format!(
            "Null value not supported for : {}",
            nulls.join(",")
        )));
    }
    let kind = ResourceType::of(resource.resource_type)
        .ok_or_else(|| refuse(format!("Unknown resource type {}", resource.resource_type)))?;
    let overrides: Overrides = resource
        .configs
        .iter()
        .filter_map(|config| Some((config.name.clone(), config.value.clone()?)))
        .collect();
    broker
        .resource_configs
        .alter(
            kind,
            &resource.resource_name,
            Edit::Replace(overrides),
            validate_only,
        )
        .await
}
