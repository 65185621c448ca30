//! Which response belongs to which request.

use kaas_wire::Message;
use kaas_wire::messages::*;

/// A request of which the response is known.
pub trait Request: Message {
    type Response: Message;
}

macro_rules! requests {
    ($($module:ident: $request:ident -> $response:ident;)*) => { $(
        impl Request for $module::$request {
            type Response = $module::$response;
        }
    )* };
}

requests! {
    alter_configs: AlterConfigsRequest -> AlterConfigsResponse;
    api_versions: ApiVersionsRequest -> ApiVersionsResponse;
    create_partitions: CreatePartitionsRequest -> CreatePartitionsResponse;
    create_topics: CreateTopicsRequest -> CreateTopicsResponse;
    delete_groups: DeleteGroupsRequest -> DeleteGroupsResponse;
    delete_records: DeleteRecordsRequest -> DeleteRecordsResponse;
    delete_topics: DeleteTopicsRequest -> DeleteTopicsResponse;
    describe_cluster: DescribeClusterRequest -> DescribeClusterResponse;
    describe_configs: DescribeConfigsRequest -> DescribeConfigsResponse;
    describe_groups: DescribeGroupsRequest -> DescribeGroupsResponse;
    describe_log_dirs: DescribeLogDirsRequest -> DescribeLogDirsResponse;
    describe_topic_partitions: DescribeTopicPartitionsRequest -> DescribeTopicPartitionsResponse;
    fetch: FetchRequest -> FetchResponse;
    find_coordinator: FindCoordinatorRequest -> FindCoordinatorResponse;
    heartbeat: HeartbeatRequest -> HeartbeatResponse;
    incremental_alter_configs: IncrementalAlterConfigsRequest -> IncrementalAlterConfigsResponse;
    init_producer_id: InitProducerIdRequest -> InitProducerIdResponse;
    join_group: JoinGroupRequest -> JoinGroupResponse;
    leave_group: LeaveGroupRequest -> LeaveGroupResponse;
    list_config_resources: ListConfigResourcesRequest -> ListConfigResourcesResponse;
    list_groups: ListGroupsRequest -> ListGroupsResponse;
    list_offsets: ListOffsetsRequest -> ListOffsetsResponse;
    metadata: MetadataRequest -> MetadataResponse;
    offset_commit: OffsetCommitRequest -> OffsetCommitResponse;
    offset_delete: OffsetDeleteRequest -> OffsetDeleteResponse;
    offset_fetch: OffsetFetchRequest -> OffsetFetchResponse;
    offset_for_leader_epoch: OffsetForLeaderEpochRequest -> OffsetForLeaderEpochResponse;
    produce: ProduceRequest -> ProduceResponse;
    sync_group: SyncGroupRequest -> SyncGroupResponse;
}
