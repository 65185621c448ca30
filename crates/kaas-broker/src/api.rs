//! The table of served APIs: which handler takes which key, in which versions, and how it answers.
//!
//! Decoding and the choice of the handler exist here once. A handler is one of
//!
//! - `answers`: `fn handle(&Arc<Broker>, &Ctx, Request) -> Response`, for what is known at once;
//! - `awaited`: `async fn handle(&Arc<Broker>, &Ctx, Request) -> Response`, run by the connection, and ended early if the
//!   client goes away;
//! - `awaited_with_slot`: the same, but it fills its `ReplySlot` itself, because it answers with parts of files;
//! - `deferred`: `fn handle(&Arc<Broker>, &Ctx, Request, ReplySlot)`; the slot is filled later from any thread;
//! - `pipelined`: as `deferred`, for what is asked often and answered briefly.
//!
//! Only behind a `pipelined` request does its connection take the next one before the answer is out; all others have
//! the connection to themselves, as in Kafka (CG-68). So a client that asks and does not read costs little.

pub mod docs;

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use kaas_wire::api_key::ApiKey;
use kaas_wire::messages::alter_configs::AlterConfigsRequest;
use kaas_wire::messages::api_versions::ApiVersionsRequest;
use kaas_wire::messages::create_partitions::CreatePartitionsRequest;
use kaas_wire::messages::create_topics::CreateTopicsRequest;
use kaas_wire::messages::delete_groups::DeleteGroupsRequest;
use kaas_wire::messages::delete_records::DeleteRecordsRequest;
use kaas_wire::messages::delete_topics::DeleteTopicsRequest;
use kaas_wire::messages::describe_cluster::DescribeClusterRequest;
use kaas_wire::messages::describe_configs::DescribeConfigsRequest;
use kaas_wire::messages::describe_groups::DescribeGroupsRequest;
use kaas_wire::messages::describe_log_dirs::DescribeLogDirsRequest;
use kaas_wire::messages::describe_topic_partitions::DescribeTopicPartitionsRequest;
use kaas_wire::messages::fetch::FetchRequest;
use kaas_wire::messages::find_coordinator::FindCoordinatorRequest;
use kaas_wire::messages::heartbeat::HeartbeatRequest;
use kaas_wire::messages::incremental_alter_configs::IncrementalAlterConfigsRequest;
use kaas_wire::messages::init_producer_id::InitProducerIdRequest;
use kaas_wire::messages::join_group::JoinGroupRequest;
use kaas_wire::messages::leave_group::LeaveGroupRequest;
use kaas_wire::messages::list_config_resources::ListConfigResourcesRequest;
use kaas_wire::messages::list_groups::ListGroupsRequest;
use kaas_wire::messages::list_offsets::ListOffsetsRequest;
use kaas_wire::messages::metadata::MetadataRequest;
use kaas_wire::messages::offset_commit::OffsetCommitRequest;
use kaas_wire::messages::offset_delete::OffsetDeleteRequest;
use kaas_wire::messages::offset_fetch::OffsetFetchRequest;
use kaas_wire::messages::offset_for_leader_epoch::OffsetForLeaderEpochRequest;
use kaas_wire::messages::produce::ProduceRequest;
use kaas_wire::messages::sync_group::SyncGroupRequest;
use kaas_wire::{DecodeError, Message, Reader};

use crate::connection::{Progress, ReplySlot, Service, Turn};
use crate::handlers;
use crate::{Broker, Ctx};

/// A served API.
pub struct Api {
    pub key: ApiKey,
    pub served: RangeInclusive<i16>,
    pub turn: Turn,
    call: fn(&Arc<Broker>, &Ctx, Reader, ReplySlot) -> Result<Progress, DecodeError>,
}

macro_rules! apis {
    ($($module:ident: $request:ty, $kind:ident;)*) => {
        /// The API of a key, if it is served in any version.
        pub fn api(key: i16) -> Option<&'static Api> {
            match key {
                $( <$request as Message>::API_KEY => {
                    static API: Api = Api {
                        key: ApiKey(<$request as Message>::API_KEY),
                        served: handlers::$module::SERVED,
                        turn: turn!($kind),
                        call: |broker, ctx, mut body, reply| {
                            let request: $request = match decode(&mut body, ctx.version, &reply) {
                                Ok(request) => request,
                                Err(error) => {
                                    reply.withdraw();
                                    return Err(error);
                                }
                            };
                            // What the request keeps of the frame is in its records.
                            drop(body);
                            call!($kind, handlers::$module::handle, broker, ctx, request, reply)
                        },
                    };
                    Some(&API)
                } )*
                _ => None,
            }
        }

        /// All served APIs, in the order of their keys.
        pub fn all() -> Vec<&'static Api> {
            let mut keys = [$( <$request as Message>::API_KEY ),*];
            keys.sort_unstable();
            keys.into_iter().filter_map(api).collect()
        }
    };
}

macro_rules! turn {
    (pipelined) => {
        Turn::Pipelined
    };
    ($other:ident) => {
        Turn::Alone
    };
}

macro_rules! call {
    (answers, $handle:path, $broker:ident, $ctx:ident, $request:ident, $reply:ident) => {{
        $reply.send(&$handle($broker, $ctx, $request));
        Ok(Progress::Taken)
    }};
    (awaited, $handle:path, $broker:ident, $ctx:ident, $request:ident, $reply:ident) => {{
        let (broker, ctx) = ($broker.clone(), $ctx.clone());
        Ok(Progress::Running(Box::pin(async move {
            let response = $handle(&broker, &ctx, $request).await;
            $reply.send(&response);
        })))
    }};
    (awaited_with_slot, $handle:path, $broker:ident, $ctx:ident, $request:ident, $reply:ident) => {{
        let (broker, ctx) = ($broker.clone(), $ctx.clone());
        Ok(Progress::Running(Box::pin(async move {
            $handle(&broker, &ctx, $request, $reply).await;
        })))
    }};
    ($deferred_or_pipelined:ident, $handle:path, $broker:ident, $ctx:ident, $request:ident, $reply:ident) => {{
        $handle($broker, $ctx, $request, $reply);
        Ok(Progress::Taken)
    }};
}

apis! {
    produce: ProduceRequest, pipelined;
    fetch: FetchRequest, awaited_with_slot;
    list_offsets: ListOffsetsRequest, answers;
    metadata: MetadataRequest, awaited;
    offset_commit: OffsetCommitRequest, pipelined;
    offset_fetch: OffsetFetchRequest, deferred;
    find_coordinator: FindCoordinatorRequest, answers;
    join_group: JoinGroupRequest, deferred;
    heartbeat: HeartbeatRequest, pipelined;
    leave_group: LeaveGroupRequest, deferred;
    sync_group: SyncGroupRequest, deferred;
    describe_groups: DescribeGroupsRequest, deferred;
    list_groups: ListGroupsRequest, deferred;
    api_versions: ApiVersionsRequest, answers;
    create_topics: CreateTopicsRequest, awaited;
    delete_topics: DeleteTopicsRequest, awaited;
    delete_records: DeleteRecordsRequest, awaited;
    init_producer_id: InitProducerIdRequest, awaited;
    offset_for_leader_epoch: OffsetForLeaderEpochRequest, answers;
    describe_log_dirs: DescribeLogDirsRequest, awaited;
    alter_configs: AlterConfigsRequest, awaited;
    describe_configs: DescribeConfigsRequest, answers;
    create_partitions: CreatePartitionsRequest, awaited;
    delete_groups: DeleteGroupsRequest, deferred;
    offset_delete: OffsetDeleteRequest, deferred;
    incremental_alter_configs: IncrementalAlterConfigsRequest, awaited;
    describe_cluster: DescribeClusterRequest, answers;
    describe_topic_partitions: DescribeTopicPartitionsRequest, answers;
    list_config_resources: ListConfigResourcesRequest, answers;
}

fn decode<M: Message>(
    body: &mut Reader,
    version: i16,
    reply: &ReplySlot,
) -> Result<M, DecodeError> {
    let budget = body.budget();
    let request = M::decode(body, version)?;
    reply.charge(budget - body.budget());
    Ok(request)
}

impl Service for Broker {
    fn max_connections(&self) -> usize {
        usize::try_from(self.config.load().max_connections).unwrap_or(0)
    }

    fn max_connections_from(&self, ip: IpAddr) -> usize {
        usize::try_from(self.config.load().connection_limit(ip)).unwrap_or(0)
    }

    fn turn(&self, api_key: i16, version: i16) -> Option<Turn> {
        let api = api(api_key)?;
        // ApiVersions is answered in every version, if only with the versions it is served in.
        let is_served = api.served.contains(&version) || api.key == ApiKey::API_VERSIONS;
        is_served.then_some(api.turn)
    }

    fn call(
        self: &Arc<Self>,
        ctx: &Ctx,
        body: Reader,
        reply: ReplySlot,
    ) -> Result<Progress, DecodeError> {
        let api = api(reply.api_key()).expect("only requests whose turn was told are handed on");
        if !api.served.contains(&ctx.version) {
            handlers::api_versions::refuse_version(reply);
            return Ok(Progress::Taken);
        }
        (api.call)(self, ctx, body, reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_is_served_in_versions_that_decode() {
        for api in all() {
            let known = api.key.versions().expect("a served key is known");
            assert!(known.contains(api.served.start()), "{}", api.key);
            assert!(known.contains(api.served.end()), "{}", api.key);
        }
    }
}
