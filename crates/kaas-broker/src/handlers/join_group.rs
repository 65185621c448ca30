//! JoinGroup: the coordination core decides (CG-38 to CG-66); the answer may be parked until the join phase completes.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_coordinator::Request;
use kaas_wire::messages::join_group::JoinGroupRequest;

use crate::connection::ReplySlot;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=9;

pub fn handle(broker: &Arc<Broker>, ctx: &Ctx, request: JoinGroupRequest, reply: ReplySlot) {
    broker.groups.call(ctx, Request::JoinGroup(request), reply);
}
