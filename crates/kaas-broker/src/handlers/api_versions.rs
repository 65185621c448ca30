//! ApiVersions: what is served, so that clients ask for nothing else.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::api_key::ApiKey;
use kaas_wire::messages::api_versions::{ApiVersion, ApiVersionsRequest, ApiVersionsResponse};

use crate::connection::ReplySlot;
use crate::{Broker, Ctx, api};

pub const SERVED: RangeInclusive<i16> = 0..=5;

/// librdkafka before 2.11 takes a broker without Produce v0 for one that cannot compress. Kafka says 0 for its sake too,
/// and serves from 3.
const PRODUCE_ADVERTISED_FROM: i16 = 0;

pub fn handle(broker: &Arc<Broker>, ctx: &Ctx, request: ApiVersionsRequest) -> ApiVersionsResponse {
    let view = broker.cluster.load();
    if let Err(error_code) = check(ctx.version, &request, &view.cluster_id, broker.node_id) {
        return ApiVersionsResponse {
            error_code,
            ..ApiVersionsResponse::default()
        };
    }
    if ctx.version >= 3 {
        // Only the first of several is kept: a client does not change under way.
        let _ = ctx.connection.client_software.set((
            request.client_software_name,
            request.client_software_version,
        ));
    }
    ApiVersionsResponse {
        api_keys: api::all().into_iter().map(advertise).collect(),
        finalized_features_epoch: view.version as i64,
        ..ApiVersionsResponse::default()
    }
}

fn check(
    version: i16,
    request: &ApiVersionsRequest,
    cluster_id: &str,
    node_id: i32,
) -> Result<(), ErrorCode> {
    if version >= 3
        && !(is_software_name(&request.client_software_name)
            && is_software_name(&request.client_software_version))
    {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    // KIP-1242: a client says whom it believes to be talking to, so that one led astray by an address that changed
    // hands finds its cluster anew.
    match (&request.cluster_id, request.node_id) {
        (None, -1) => Ok(()),
        (None, _) | (_, -1) => Err(ErrorCode::INVALID_REQUEST),
        (Some(cluster), node) if cluster == cluster_id && node == node_id => Ok(()),
        _ => Err(ErrorCode::REBOOTSTRAP_REQUIRED),
    }
}

/// Answers a version that is not served, in the layout that every client reads (KIP-511).
pub fn refuse_version(reply: ReplySlot) {
    reply.at_version(0).send(&ApiVersionsResponse {
        error_code: ErrorCode::UNSUPPORTED_VERSION,
        api_keys: vec![ApiVersion {
            api_key: ApiKey::API_VERSIONS.0,
            min_version: *SERVED.start(),
            max_version: *SERVED.end(),
        }],
        ..ApiVersionsResponse::default()
    });
}

fn advertise(api: &api::Api) -> ApiVersion {
    let from = if api.key == ApiKey::PRODUCE {
        PRODUCE_ADVERTISED_FROM
    } else {
        *api.served.start()
    };
    ApiVersion {
        api_key: api.key.0,
        min_version: from,
        max_version: *api.served.end(),
    }
}

/// Kafka's pattern: letters, digits, `-` and `.`, the last two not at the ends, at least one character.
fn is_software_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let ends = (text.bytes().next(), text.bytes().next_back());
    matches!(ends, (Some(first), Some(last)) if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && text.bytes().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_means_another_broker_is_told_to_bootstrap_anew() {
        let asked = |cluster_id: Option<&str>, node_id| {
            let request = ApiVersionsRequest {
                client_software_name: "a".to_owned(),
                client_software_version: "1".to_owned(),
                cluster_id: cluster_id.map(str::to_owned),
                node_id,
            };
            check(5, &request, "here", 3)
        };
        assert_eq!(asked(None, -1), Ok(()));
        assert_eq!(asked(Some("here"), 3), Ok(()));
        assert_eq!(asked(Some("here"), -1), Err(ErrorCode::INVALID_REQUEST));
        assert_eq!(asked(None, 3), Err(ErrorCode::INVALID_REQUEST));
        assert_eq!(asked(Some("here"), 4), Err(ErrorCode::REBOOTSTRAP_REQUIRED));
        assert_eq!(
            asked(Some("there"), 3),
            Err(ErrorCode::REBOOTSTRAP_REQUIRED)
        );
    }

    #[test]
    fn a_client_software_name_is_what_kafka_takes_for_one() {
        for name in ["apache-kafka-java", "4.4.0", "a", "7", "a--b..c"] {
            assert!(is_software_name(name), "{name}");
        }
        for name in ["", "-a", "a.", "a b", "a_b", "é", "."] {
            assert!(!is_software_name(name), "{name}");
        }
    }
}
