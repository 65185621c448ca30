//! SyncGroup: the coordination core decides (CG-88 to CG-99); the answer may be parked until the leader has synced.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_coordinator::Request;
use kaas_wire::messages::sync_group::SyncGroupRequest;

use crate::connection::ReplySlot;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=5;

pub fn handle(broker: &Arc<Broker>, ctx: &Ctx, request: SyncGroupRequest, reply: ReplySlot) {
    broker.groups.call(ctx, Request::SyncGroup(request), reply);
}
