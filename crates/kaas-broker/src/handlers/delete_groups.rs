//! DeleteGroups: each group on its own, duplicates once (CG-140, CG-141).

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::messages::delete_groups::DeleteGroupsRequest;

use crate::connection::ReplySlot;
use crate::coordinator::actor::Work;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=3;

pub fn handle(broker: &Arc<Broker>, _ctx: &Ctx, request: DeleteGroupsRequest, reply: ReplySlot) {
    broker.groups.submit(Work::Delete { request, reply });
}
