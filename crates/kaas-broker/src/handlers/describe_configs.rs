//! DescribeConfigs (32): what is configured, where each value comes from and what else would have a say in it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult,
    DescribeConfigsResponse, DescribeConfigsResult, DescribeConfigsSynonym,
};

use crate::config::describe::ConfigEntry;
use crate::resource_configs::ResourceType;
use crate::topics::ApiError;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 1..=4;

pub fn handle(
    broker: &Arc<Broker>,
    _ctx: &Ctx,
    request: DescribeConfigsRequest,
) -> DescribeConfigsResponse {
    let (synonyms, documentation) = (request.include_synonyms, request.include_documentation);
    let results = request
        .resources
        .into_iter()
        .map(|resource| {
            let described = match ResourceType::of(resource.resource_type) {
                Some(kind) => broker
                    .resource_configs
                    .describe(kind, &resource.resource_name),
                None => Err(ApiError::bare(ErrorCode::INVALID_REQUEST)),
            };
            match described {
                Ok(rows) => DescribeConfigsResult {
                    error_code: ErrorCode::NONE,
                    error_message: Some(String::new()),
                    configs: rows
                        .into_iter()
                        .filter(|row| is_wanted(&resource, row.name))
                        .map(|row| result(row, synonyms, documentation))
                        .collect(),
                    resource_type: resource.resource_type,
                    resource_name: resource.resource_name,
                },
                Err(error) => DescribeConfigsResult {
                    error_code: error.code,
                    error_message: error.message,
                    resource_type: resource.resource_type,
                    resource_name: resource.resource_name,
                    configs: Vec::new(),
                },
            }
        })
        .collect();
    DescribeConfigsResponse {
        results,
        ..Default::default()
    }
}

/// No keys, or an empty list of them, means all.
fn is_wanted(resource: &DescribeConfigsResource, name: &str) -> bool {
    match &resource.configuration_keys {
        Some(keys) if !keys.is_empty() => keys.iter().any(|key| key == name),
        _ => true,
    }
}

fn result(row: ConfigEntry, synonyms: bool, documentation: bool) -> DescribeConfigsResourceResult {
    DescribeConfigsResourceResult {
        name: row.name.to_owned(),
        value: row.value,
        read_only: row.read_only,
        config_source: row.source.code(),
        is_sensitive: false,
        synonyms: row
            .synonyms
            .into_iter()
            .filter(|_| synonyms)
            .map(|synonym| DescribeConfigsSynonym {
                name: synonym.name.to_owned(),
                value: synonym.value,
                source: synonym.source.code(),
            })
            .collect(),
        config_type: row.kind.code(),
        documentation: documentation.then(|| row.documentation.to_owned()),
    }
}
