//! Heartbeat: the coordination core decides (CG-114 to CG-118).

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_coordinator::Request;
use kaas_wire::messages::heartbeat::HeartbeatRequest;

use crate::connection::ReplySlot;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=4;

pub fn handle(broker: &Arc<Broker>, ctx: &Ctx, request: HeartbeatRequest, reply: ReplySlot) {
    broker.groups.call(ctx, Request::Heartbeat(request), reply);
}
