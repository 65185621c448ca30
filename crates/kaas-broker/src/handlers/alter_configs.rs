//! AlterConfigs (33): all overrides of a resource replaced at once.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::messages::alter_configs::{
    AlterConfigsRequest, AlterConfigsResource, AlterConfigsResourceResponse, AlterConfigsResponse,
};

use crate::config::topic::Overrides;
use crate::resource_configs::{Edit, ResourceType, check_keys, refuse_repeated};
use crate::topics::ApiError;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=2;

pub async fn handle(
    broker: &Arc<Broker>,
    _ctx: &Ctx,
    request: AlterConfigsRequest,
) -> AlterConfigsResponse {
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
    let keys = resource.configs.iter().map(|config| config.name.as_str());
    let nulls = resource
        .configs
        .iter()
        .filter(|config| config.value.is_none())
        .map(|config| config.name.as_str());
    check_keys(keys, nulls, ",")?;
    let kind = ResourceType::named(resource.resource_type)?;
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
