//! InitProducerId (22): an id for an idempotent producer.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::ErrorCode;
use kaas_wire::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use tracing::warn;

use crate::{Broker, Ctx};

/// Kafka 4.4 has version 6 but keeps it to itself: it is marked unstable.
pub const SERVED: RangeInclusive<i16> = 0..=5;

pub async fn handle(
    broker: &Arc<Broker>,
    _ctx: &Ctx,
    request: InitProducerIdRequest,
) -> InitProducerIdResponse {
    match request.transactional_id.as_deref() {
        Some("") => return refuse(ErrorCode::INVALID_REQUEST),
        // There is no transaction coordinator; an error that says so for good ends the client's attempts.
        Some(_) => return refuse(ErrorCode::UNSUPPORTED_VERSION),
        None => {}
    }
    if (request.producer_id >= 0) != (request.producer_epoch >= 0) {
        return refuse(ErrorCode::INVALID_REQUEST);
    }
    let next = match broker.partitions.producer_ids.next_at_hand() {
        Some(id) => Ok(id),
        None => {
            let partitions = broker.partitions.clone();
            tokio::task::spawn_blocking(move || partitions.producer_ids.next())
                .await
                .expect("claiming a block of producer ids does not panic")
        }
    };
    match next {
        Ok(producer_id) => InitProducerIdResponse {
            producer_id,
            producer_epoch: 0,
            ..Default::default()
        },
        Err(error) => {
            warn!(%error, "no block of producer ids");
            refuse(ErrorCode::COORDINATOR_NOT_AVAILABLE)
        }
    }
}

fn refuse(error_code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse {
        error_code,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    }
}
