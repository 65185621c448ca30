//! ListGroups: every group this broker coordinates, in memory or only a file so far (CG-136 to CG-139).

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::messages::list_groups::ListGroupsRequest;

use crate::connection::ReplySlot;
use crate::coordinator::actor::Work;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=5;

pub fn handle(broker: &Arc<Broker>, _ctx: &Ctx, request: ListGroupsRequest, reply: ReplySlot) {
    broker.groups.submit(Work::List { request, reply });
}
