//! DescribeGroups: each group on its own (CG-131 to CG-135).

use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::messages::describe_groups::DescribeGroupsRequest;

use crate::connection::ReplySlot;
use crate::coordinator::actor::Work;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 0..=6;

pub fn handle(broker: &Arc<Broker>, ctx: &Ctx, request: DescribeGroupsRequest, reply: ReplySlot) {
    broker.groups.submit(Work::Describe {
        version: ctx.version,
        request,
        reply,
    });
}
