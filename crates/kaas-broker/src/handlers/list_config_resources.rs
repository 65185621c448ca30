//! ListConfigResources (74): the resources that have, or may have, a configuration. Version 0 was
//! ListClientMetricsResources and lists those only.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::list_config_resources::{
    ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse,
};

use crate::resource_configs::ResourceType;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=1;

pub fn handle(
    broker: &Arc<Broker>,
    ctx: &Ctx,
    request: ListConfigResourcesRequest,
) -> ListConfigResourcesResponse {
    let kinds: Option<Vec<ResourceType>> = if ctx.version == 0 {
        Some(vec![ResourceType::ClientMetrics])
    } else if request.resource_types.is_empty() {
        Some(ResourceType::ALL.to_vec())
    } else {
        request
            .resource_types
            .iter()
            .map(|code| ResourceType::of(*code))
            .collect()
    };
    let Some(mut kinds) = kinds else {
        return ListConfigResourcesResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION,
            ..Default::default()
        };
    };
    kinds.sort_unstable();
    kinds.dedup();
    let view = broker.cluster.load();
    let config_resources = kinds
        .into_iter()
        .flat_map(|kind| {
            let names = broker
                .resource_configs
                .names(kind, view.alive().map(|broker| broker.id));
            names.into_iter().map(move |resource_name| ConfigResource {
                resource_name,
                resource_type: kind as i8,
            })
        })
        .collect();
    ListConfigResourcesResponse {
        config_resources,
        ..Default::default()
    }
}
