//! IncrementalAlterConfigs (44): single keys set, deleted, or with elements added to and taken from their lists.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};

use crate::config::alter::Change;
use crate::resource_configs::{Edit, ResourceType, check_keys, refuse_repeated};
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
    let names = request
        .resources
        .iter()
        .map(|resource| (resource.resource_type, resource.resource_name.as_str()));
    let mut responses = Vec::with_capacity(request.resources.len());
    for (resource, admitted) in request.resources.iter().zip(refuse_repeated(names)) {
        let altered = match admitted {
            Ok(()) => alter(broker, resource, request.validate_only).await,
            refused => refused,
        };
        let (error_code, error_message) = ApiError::outcome(altered);
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
    let keys = resource.configs.iter().map(|config| config.name.as_str());
    let nulls = resource
        .configs
        .iter()
        .filter(|config| config.config_operation != DELETE && config.value.is_none())
        .map(|config| config.name.as_str());
    check_keys(keys, nulls, ", ")?;
    let kind = ResourceType::named(resource.resource_type)?;
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
