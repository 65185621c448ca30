//! LeaveGroup: the coordination core decides (CG-119 to CG-125).

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_coordinator::Request;
use kaas_wire::messages::leave_group::LeaveGroupRequest;

use crate::connection::ReplySlot;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=5;

pub fn handle(broker: &Arc<Broker>, ctx: &Ctx, request: LeaveGroupRequest, reply: ReplySlot) {
    broker.groups.call(ctx, Request::LeaveGroup(request), reply);
}
