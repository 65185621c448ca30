//! An answer that is complete but may not leave before what it rests on is durable.

use kaas_coordinator::{Reply, coordinator_error};
use kaas_wire::ErrorCode;
use kaas_wire::messages::delete_groups::DeleteGroupsResponse;
use kaas_wire::messages::describe_groups::DescribeGroupsResponse;
use kaas_wire::messages::list_groups::ListGroupsResponse;
use kaas_wire::messages::offset_commit::OffsetCommitResponseTopic;
use kaas_wire::messages::offset_delete::OffsetDeleteResponseTopic;
use kaas_wire::messages::offset_fetch::OffsetFetchResponse;

use crate::connection::ReplySlot;
use crate::handlers::{offset_commit, offset_delete};

/// What a handler had refused before the core was asked; it is merged into the core's answer.
pub enum Refused {
    Nothing,
    Commit(Vec<OffsetCommitResponseTopic>),
    Delete(Vec<OffsetDeleteResponseTopic>),
}

/// The core's handle of a reply.
pub struct ReplyTo {
    pub slot: ReplySlot,
    pub refused: Refused,
}

pub struct Waiter {
    pub slot: ReplySlot,
    pub body: Body,
}

pub enum Body {
    Core(Reply, Refused),
    Describe(DescribeGroupsResponse),
    List(ListGroupsResponse),
    Delete(DeleteGroupsResponse),
    Fetch(OffsetFetchResponse),
}

impl Waiter {
    pub fn core(to: ReplyTo, reply: Reply) -> Waiter {
        Waiter {
            slot: to.slot,
            body: Body::Core(reply, to.refused),
        }
    }

    /// How many partitions' offsets this answers as committed.
    pub fn committed(&self) -> usize {
        match &self.body {
            Body::Core(Reply::OffsetCommit(response), _) => response
                .topics
                .iter()
                .flat_map(|topic| &topic.partitions)
                .filter(|partition| partition.error_code.is_ok())
                .count(),
            _ => 0,
        }
    }

    pub fn send(self) {
        let slot = self.slot;
        match self.body {
            Body::Core(reply, refused) => send_core(slot, reply, refused),
            Body::Describe(response) => slot.send(&response),
            Body::List(response) => slot.send(&response),
            Body::Delete(response) => slot.send(&response),
            Body::Fetch(response) => slot.send(&response),
        }
    }

    /// Answers with the failure of the write that the answer rested on.
    pub fn fail(mut self, cause: ErrorCode) {
        let error = coordinator_error(cause);
        let version = self.slot.version();
        match &mut self.body {
            Body::Core(reply, _) => reply.fail(version, cause),
            Body::Describe(response) => {
                for group in &mut response.groups {
                    if group.error_code.is_ok() {
                        group.error_code = error;
                        group.group_state.clear();
                        group.protocol_type.clear();
                        group.protocol_data.clear();
                        group.members.clear();
                    }
                }
            }
            Body::List(response) => {
                response.error_code = error;
                response.groups.clear();
            }
            Body::Delete(response) => {
                for result in &mut response.results {
                    if result.error_code.is_ok() {
                        result.error_code = error;
                    }
                }
            }
            Body::Fetch(response) => fail_fetch(response, version, error),
        }
        self.send();
    }
}

fn send_core(slot: ReplySlot, reply: Reply, refused: Refused) {
    match reply {
        Reply::JoinGroup(response) => slot.send(&response),
        Reply::SyncGroup(response) => slot.send(&response),
        Reply::Heartbeat(response) => slot.send(&response),
        Reply::LeaveGroup(response) => slot.send(&response),
        Reply::OffsetCommit(mut response) => {
            if let Refused::Commit(refused) = refused {
                offset_commit::merge(refused, &mut response);
            }
            slot.send(&response);
        }
        Reply::OffsetDelete(mut response) => {
            if let Refused::Delete(refused) = refused {
                offset_delete::merge(refused, &mut response);
            }
            slot.send(&response);
        }
    }
}

fn fail_fetch(response: &mut OffsetFetchResponse, version: i16, error: ErrorCode) {
    for group in &mut response.groups {
        if group.error_code.is_ok() {
            group.error_code = error;
            group.topics.clear();
        }
    }
    if version < 2 {
        for partition in response
            .topics
            .iter_mut()
            .flat_map(|topic| &mut topic.partitions)
        {
            partition.committed_offset = -1;
            partition.metadata = Some(String::new());
            partition.error_code = error;
        }
    } else if version < 8 {
        response.error_code = error;
        response.topics.clear();
    }
}
