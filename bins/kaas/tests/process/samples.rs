//! One plausible request of every served API, in every version.

use bytes::Bytes;
use kaas_tests::connection::Connection;
use kaas_tests::member::{committed_topic, subscription};
use kaas_tests::requests::Request;
use kaas_tests::topic;
use kaas_wire::messages::alter_configs::AlterConfigsRequest;
use kaas_wire::messages::api_versions::ApiVersionsRequest;
use kaas_wire::messages::create_partitions::CreatePartitionsRequest;
use kaas_wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use kaas_wire::messages::delete_groups::DeleteGroupsRequest;
use kaas_wire::messages::delete_records::DeleteRecordsRequest;
use kaas_wire::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use kaas_wire::messages::describe_cluster::DescribeClusterRequest;
use kaas_wire::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use kaas_wire::messages::describe_groups::DescribeGroupsRequest;
use kaas_wire::messages::describe_log_dirs::DescribeLogDirsRequest;
use kaas_wire::messages::describe_topic_partitions::{
    DescribeTopicPartitionsRequest, TopicRequest,
};
use kaas_wire::messages::find_coordinator::FindCoordinatorRequest;
use kaas_wire::messages::heartbeat::HeartbeatRequest;
use kaas_wire::messages::incremental_alter_configs::IncrementalAlterConfigsRequest;
use kaas_wire::messages::init_producer_id::InitProducerIdRequest;
use kaas_wire::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use kaas_wire::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use kaas_wire::messages::list_config_resources::ListConfigResourcesRequest;
use kaas_wire::messages::list_groups::ListGroupsRequest;
use kaas_wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use kaas_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use kaas_wire::messages::offset_commit::OffsetCommitRequest;
use kaas_wire::messages::offset_delete::OffsetDeleteRequest;
use kaas_wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kaas_wire::messages::offset_for_leader_epoch::OffsetForLeaderEpochRequest;
use kaas_wire::messages::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};
use kaas_wire::{ApiKey, Uuid};

/// The frame of a request at a version.
type Frame = dyn Fn(&Connection, i16) -> Vec<u8> + Send + Sync;

/// Sends a request at a version and decodes the answer.
type Roundtrip = dyn Fn(&mut Connection, i16) + Send + Sync;

/// A request with its types forgotten.
pub struct Sample {
    pub key: ApiKey,
    frame: Box<Frame>,
    call: Box<Roundtrip>,
}

impl Sample {
    fn of<Q: Request + Clone + Send + Sync + 'static>(request: Q) -> Sample {
        let sent = request.clone();
        Sample {
            key: ApiKey(Q::API_KEY),
            frame: Box::new(move |connection, version| connection.frame(version, 7, &request)),
            call: Box::new(move |connection, version| {
                connection.call(version, &sent);
            }),
        }
    }

    /// The whole frame.
    pub fn frame(&self, connection: &Connection, version: i16) -> Vec<u8> {
        (self.frame)(connection, version)
    }

    /// Asks, and decodes the answer to its last byte.
    pub fn call(&self, connection: &mut Connection, version: i16) {
        (self.call)(connection, version);
    }
}

/// Requests about the topic `t`, whose id is `topic_id`, and the group `sample`; none of them changes much.
pub fn samples(topic_id: Uuid) -> Vec<Sample> {
    let name = || "t".to_owned();
    let group_id = || "sample".to_owned();
    let records = topic::batch(&[b"value".to_vec()]);
    let mut produce = topic::produce_request("t", 0, records);
    produce.topic_data[0].topic_id = topic_id;
    let mut fetch = topic::fetch_request("t", 0, 0);
    fetch.topics[0].topic_id = topic_id;
    let mut committed = committed_topic("t", &[(0, 5), (1, 6)]);
    committed.topic_id = topic_id;
    vec![
        Sample::of(produce),
        Sample::of(fetch),
        Sample::of(ListOffsetsRequest {
            replica_id: -1,
            topics: vec![ListOffsetsTopic {
                name: name(),
                partitions: vec![ListOffsetsPartition {
                    timestamp: -1,
                    ..ListOffsetsPartition::default()
                }],
            }],
            ..ListOffsetsRequest::default()
        }),
        Sample::of(MetadataRequest {
            topics: Some(vec![MetadataRequestTopic {
                name: Some(name()),
                ..MetadataRequestTopic::default()
            }]),
            ..MetadataRequest::default()
        }),
        Sample::of(OffsetCommitRequest {
            group_id: group_id(),
            topics: vec![committed],
            ..OffsetCommitRequest::default()
        }),
        Sample::of(OffsetFetchRequest {
            group_id: group_id(),
            topics: Some(vec![OffsetFetchRequestTopic {
                name: name(),
                partition_indexes: vec![0, 1, 2],
            }]),
            groups: vec![OffsetFetchRequestGroup {
                group_id: group_id(),
                topics: Some(vec![OffsetFetchRequestTopics {
                    name: name(),
                    topic_id,
                    partition_indexes: vec![0, 1, 2],
                }]),
                ..OffsetFetchRequestGroup::default()
            }],
            ..OffsetFetchRequest::default()
        }),
        Sample::of(FindCoordinatorRequest {
            key: group_id(),
            coordinator_keys: vec![group_id(), "other".to_owned()],
            ..FindCoordinatorRequest::default()
        }),
        // An unknown id, so that it is answered at once.
        Sample::of(JoinGroupRequest {
            group_id: group_id(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 10_000,
            member_id: "nobody".to_owned(),
            group_instance_id: Some("instance".to_owned()),
            protocol_type: "consumer".to_owned(),
            protocols: vec![JoinGroupRequestProtocol {
                name: "range".to_owned(),
                metadata: subscription(&["t"]),
            }],
            ..JoinGroupRequest::default()
        }),
        Sample::of(HeartbeatRequest {
            group_id: group_id(),
            member_id: "nobody".to_owned(),
            ..HeartbeatRequest::default()
        }),
        Sample::of(LeaveGroupRequest {
            group_id: group_id(),
            member_id: "nobody".to_owned(),
            members: vec![MemberIdentity {
                member_id: "nobody".to_owned(),
                ..MemberIdentity::default()
            }],
        }),
        Sample::of(SyncGroupRequest {
            group_id: group_id(),
            member_id: "nobody".to_owned(),
            assignments: vec![SyncGroupRequestAssignment {
                member_id: "nobody".to_owned(),
                assignment: Bytes::from_static(b"assignment"),
            }],
            ..SyncGroupRequest::default()
        }),
        Sample::of(DescribeGroupsRequest {
            groups: vec![group_id(), "other".to_owned()],
            include_authorized_operations: true,
        }),
        Sample::of(ListGroupsRequest::default()),
        Sample::of(ApiVersionsRequest {
            client_software_name: "sample".to_owned(),
            client_software_version: "1".to_owned(),
            ..ApiVersionsRequest::default()
        }),
        Sample::of(CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name: "new".to_owned(),
                num_partitions: 1,
                replication_factor: 1,
                ..CreatableTopic::default()
            }],
            validate_only: true,
            ..CreateTopicsRequest::default()
        }),
        Sample::of(DeleteTopicsRequest {
            topics: vec![DeleteTopicState {
                name: Some("missing".to_owned()),
                ..DeleteTopicState::default()
            }],
            topic_names: vec!["missing".to_owned()],
            timeout_ms: 1_000,
        }),
        Sample::of(DeleteRecordsRequest::default()),
        Sample::of(InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: 1_000,
            ..InitProducerIdRequest::default()
        }),
        Sample::of(OffsetForLeaderEpochRequest::default()),
        Sample::of(DescribeConfigsRequest {
            resources: vec![DescribeConfigsResource {
                resource_type: 2,
                resource_name: name(),
                configuration_keys: None,
            }],
            ..DescribeConfigsRequest::default()
        }),
        Sample::of(AlterConfigsRequest::default()),
        Sample::of(DescribeLogDirsRequest { topics: None }),
        Sample::of(CreatePartitionsRequest {
            validate_only: true,
            ..CreatePartitionsRequest::default()
        }),
        Sample::of(DeleteGroupsRequest {
            groups_names: vec!["missing".to_owned()],
        }),
        Sample::of(IncrementalAlterConfigsRequest::default()),
        Sample::of(OffsetDeleteRequest {
            group_id: "missing".to_owned(),
            ..OffsetDeleteRequest::default()
        }),
        Sample::of(DescribeClusterRequest {
            endpoint_type: 1,
            ..DescribeClusterRequest::default()
        }),
        Sample::of(ListConfigResourcesRequest::default()),
        Sample::of(DescribeTopicPartitionsRequest {
            topics: vec![TopicRequest { name: name() }],
            response_partition_limit: 100,
            ..DescribeTopicPartitionsRequest::default()
        }),
    ]
}
