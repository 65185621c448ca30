//! DescribeCluster: the brokers, and which of them is the controller.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::describe_cluster::{
    DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse,
};

use crate::assignment::BrokerState;
use crate::handlers::metadata::CLUSTER_OPERATIONS;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=2;

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub fn handle(
    broker: &Arc<Broker>,
    ctx: &Ctx,
    request: DescribeClusterRequest,
) -> DescribeClusterResponse {
    if request.endpoint_type != BROKERS {
        let (error_code, text) = match request.endpoint_type {
            CONTROLLERS => (
                ErrorCode::MISMATCHED_ENDPOINT_TYPE,
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
                    .to_owned(),
            ),
            other => (
                ErrorCode::UNSUPPORTED_ENDPOINT_TYPE,
                format!("Unsupported endpoint type {other}"),
            ),
        };
        return DescribeClusterResponse {
            error_code,
            error_message: Some(text),
            ..DescribeClusterResponse::default()
        };
    }
    let view = broker.cluster.load();
    let brokers = view
        .brokers
        .iter()
        .filter(|entry| entry.state != BrokerState::Dead || request.include_fenced_brokers)
        .map(|entry| {
            let (host, port) = broker.address_of(&ctx.connection, entry);
            DescribeClusterBroker {
                broker_id: entry.id,
                host,
                port,
                rack: None,
                is_fenced: entry.state == BrokerState::Dead,
            }
        })
        .collect();
    let mut response = DescribeClusterResponse {
        cluster_id: view.cluster_id.clone(),
        controller_id: view.controller_id,
        brokers,
        ..DescribeClusterResponse::default()
    };
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = CLUSTER_OPERATIONS;
    }
    response
}
