//! The api keys of Kafka, by number and by name.

use std::fmt;
use std::ops::RangeInclusive;

use crate::message::Message;
use crate::messages;

/// The number that says which request a frame holds. Unknown numbers pass through unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiKey(pub i16);

impl ApiKey {
    /// The key Kafka calls `name`, as in `JoinGroup`.
    pub fn from_name(name: &str) -> Option<ApiKey> {
        ApiKey::ALL
            .iter()
            .copied()
            .find(|key| key.name() == Some(name))
    }

    /// Whether the headers of this request and of its response carry tagged fields. `None` if the key is unknown.
    ///
    /// Above the known versions it says what Kafka says: as in the newest.
    pub fn is_flexible(self, version: i16) -> Option<bool> {
        self.flexible_from().map(|from| version >= from)
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "ApiKey({})", self.0),
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! api_keys {
    ($($name:ident $key:literal $text:literal $request:ty,)*) => {
        impl ApiKey {
            $( pub const $name: ApiKey = ApiKey($key); )*

            /// Every key whose messages have a table.
            pub const ALL: &[ApiKey] = &[$( ApiKey::$name, )*];

            /// Kafka's name of the key, as in `JoinGroup`; `None` if it has none.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $key => Some($text), )*
                    _ => None,
                }
            }

            /// The versions that can be decoded; `None` if the key is unknown.
            pub fn versions(self) -> Option<RangeInclusive<i16>> {
                match self.0 {
                    $( $key => Some(<$request>::VERSIONS), )*
                    _ => None,
                }
            }

            fn flexible_from(self) -> Option<i16> {
                match self.0 {
                    $( $key => Some(<$request>::FLEXIBLE_FROM), )*
                    _ => None,
                }
            }
        }
    };
}

api_keys! {
    PRODUCE 0 "Produce" messages::produce::ProduceRequest,
    FETCH 1 "Fetch" messages::fetch::FetchRequest,
    LIST_OFFSETS 2 "ListOffsets" messages::list_offsets::ListOffsetsRequest,
    METADATA 3 "Metadata" messages::metadata::MetadataRequest,
    OFFSET_COMMIT 8 "OffsetCommit" messages::offset_commit::OffsetCommitRequest,
    OFFSET_FETCH 9 "OffsetFetch" messages::offset_fetch::OffsetFetchRequest,
    FIND_COORDINATOR 10 "FindCoordinator" messages::find_coordinator::FindCoordinatorRequest,
    JOIN_GROUP 11 "JoinGroup" messages::join_group::JoinGroupRequest,
    HEARTBEAT 12 "Heartbeat" messages::heartbeat::HeartbeatRequest,
    LEAVE_GROUP 13 "LeaveGroup" messages::leave_group::LeaveGroupRequest,
    SYNC_GROUP 14 "SyncGroup" messages::sync_group::SyncGroupRequest,
    DESCRIBE_GROUPS 15 "DescribeGroups" messages::describe_groups::DescribeGroupsRequest,
    LIST_GROUPS 16 "ListGroups" messages::list_groups::ListGroupsRequest,
    SASL_HANDSHAKE 17 "SaslHandshake" messages::sasl_handshake::SaslHandshakeRequest,
    API_VERSIONS 18 "ApiVersions" messages::api_versions::ApiVersionsRequest,
    CREATE_TOPICS 19 "CreateTopics" messages::create_topics::CreateTopicsRequest,
    DELETE_TOPICS 20 "DeleteTopics" messages::delete_topics::DeleteTopicsRequest,
    DELETE_RECORDS 21 "DeleteRecords" messages::delete_records::DeleteRecordsRequest,
    INIT_PRODUCER_ID 22 "InitProducerId" messages::init_producer_id::InitProducerIdRequest,
    OFFSET_FOR_LEADER_EPOCH 23 "OffsetForLeaderEpoch" messages::offset_for_leader_epoch::OffsetForLeaderEpochRequest,
    ADD_PARTITIONS_TO_TXN 24 "AddPartitionsToTxn" messages::add_partitions_to_txn::AddPartitionsToTxnRequest,
    ADD_OFFSETS_TO_TXN 25 "AddOffsetsToTxn" messages::add_offsets_to_txn::AddOffsetsToTxnRequest,
    END_TXN 26 "EndTxn" messages::end_txn::EndTxnRequest,
    WRITE_TXN_MARKERS 27 "WriteTxnMarkers" messages::write_txn_markers::WriteTxnMarkersRequest,
    TXN_OFFSET_COMMIT 28 "TxnOffsetCommit" messages::txn_offset_commit::TxnOffsetCommitRequest,
    DESCRIBE_ACLS 29 "DescribeAcls" messages::describe_acls::DescribeAclsRequest,
    CREATE_ACLS 30 "CreateAcls" messages::create_acls::CreateAclsRequest,
    DELETE_ACLS 31 "DeleteAcls" messages::delete_acls::DeleteAclsRequest,
    DESCRIBE_CONFIGS 32 "DescribeConfigs" messages::describe_configs::DescribeConfigsRequest,
    ALTER_CONFIGS 33 "AlterConfigs" messages::alter_configs::AlterConfigsRequest,
    ALTER_REPLICA_LOG_DIRS 34 "AlterReplicaLogDirs" messages::alter_replica_log_dirs::AlterReplicaLogDirsRequest,
    DESCRIBE_LOG_DIRS 35 "DescribeLogDirs" messages::describe_log_dirs::DescribeLogDirsRequest,
    SASL_AUTHENTICATE 36 "SaslAuthenticate" messages::sasl_authenticate::SaslAuthenticateRequest,
    CREATE_PARTITIONS 37 "CreatePartitions" messages::create_partitions::CreatePartitionsRequest,
    CREATE_DELEGATION_TOKEN 38 "CreateDelegationToken" messages::create_delegation_token::CreateDelegationTokenRequest,
    RENEW_DELEGATION_TOKEN 39 "RenewDelegationToken" messages::renew_delegation_token::RenewDelegationTokenRequest,
    EXPIRE_DELEGATION_TOKEN 40 "ExpireDelegationToken" messages::expire_delegation_token::ExpireDelegationTokenRequest,
    DESCRIBE_DELEGATION_TOKEN 41 "DescribeDelegationToken" messages::describe_delegation_token::DescribeDelegationTokenRequest,
    DELETE_GROUPS 42 "DeleteGroups" messages::delete_groups::DeleteGroupsRequest,
    ELECT_LEADERS 43 "ElectLeaders" messages::elect_leaders::ElectLeadersRequest,
    INCREMENTAL_ALTER_CONFIGS 44 "IncrementalAlterConfigs" messages::incremental_alter_configs::IncrementalAlterConfigsRequest,
    ALTER_PARTITION_REASSIGNMENTS 45 "AlterPartitionReassignments" messages::alter_partition_reassignments::AlterPartitionReassignmentsRequest,
    LIST_PARTITION_REASSIGNMENTS 46 "ListPartitionReassignments" messages::list_partition_reassignments::ListPartitionReassignmentsRequest,
    OFFSET_DELETE 47 "OffsetDelete" messages::offset_delete::OffsetDeleteRequest,
    DESCRIBE_CLIENT_QUOTAS 48 "DescribeClientQuotas" messages::describe_client_quotas::DescribeClientQuotasRequest,
    ALTER_CLIENT_QUOTAS 49 "AlterClientQuotas" messages::alter_client_quotas::AlterClientQuotasRequest,
    DESCRIBE_USER_SCRAM_CREDENTIALS 50 "DescribeUserScramCredentials" messages::describe_user_scram_credentials::DescribeUserScramCredentialsRequest,
    ALTER_USER_SCRAM_CREDENTIALS 51 "AlterUserScramCredentials" messages::alter_user_scram_credentials::AlterUserScramCredentialsRequest,
    VOTE 52 "Vote" messages::vote::VoteRequest,
    BEGIN_QUORUM_EPOCH 53 "BeginQuorumEpoch" messages::begin_quorum_epoch::BeginQuorumEpochRequest,
    END_QUORUM_EPOCH 54 "EndQuorumEpoch" messages::end_quorum_epoch::EndQuorumEpochRequest,
    DESCRIBE_QUORUM 55 "DescribeQuorum" messages::describe_quorum::DescribeQuorumRequest,
    ALTER_PARTITION 56 "AlterPartition" messages::alter_partition::AlterPartitionRequest,
    UPDATE_FEATURES 57 "UpdateFeatures" messages::update_features::UpdateFeaturesRequest,
    ENVELOPE 58 "Envelope" messages::envelope::EnvelopeRequest,
    FETCH_SNAPSHOT 59 "FetchSnapshot" messages::fetch_snapshot::FetchSnapshotRequest,
    DESCRIBE_CLUSTER 60 "DescribeCluster" messages::describe_cluster::DescribeClusterRequest,
    DESCRIBE_PRODUCERS 61 "DescribeProducers" messages::describe_producers::DescribeProducersRequest,
    BROKER_REGISTRATION 62 "BrokerRegistration" messages::broker_registration::BrokerRegistrationRequest,
    BROKER_HEARTBEAT 63 "BrokerHeartbeat" messages::broker_heartbeat::BrokerHeartbeatRequest,
    UNREGISTER_BROKER 64 "UnregisterBroker" messages::unregister_broker::UnregisterBrokerRequest,
    DESCRIBE_TRANSACTIONS 65 "DescribeTransactions" messages::describe_transactions::DescribeTransactionsRequest,
    LIST_TRANSACTIONS 66 "ListTransactions" messages::list_transactions::ListTransactionsRequest,
    ALLOCATE_PRODUCER_IDS 67 "AllocateProducerIds" messages::allocate_producer_ids::AllocateProducerIdsRequest,
    CONSUMER_GROUP_HEARTBEAT 68 "ConsumerGroupHeartbeat" messages::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
    CONSUMER_GROUP_DESCRIBE 69 "ConsumerGroupDescribe" messages::consumer_group_describe::ConsumerGroupDescribeRequest,
    CONTROLLER_REGISTRATION 70 "ControllerRegistration" messages::controller_registration::ControllerRegistrationRequest,
    GET_TELEMETRY_SUBSCRIPTIONS 71 "GetTelemetrySubscriptions" messages::get_telemetry_subscriptions::GetTelemetrySubscriptionsRequest,
    PUSH_TELEMETRY 72 "PushTelemetry" messages::push_telemetry::PushTelemetryRequest,
    ASSIGN_REPLICAS_TO_DIRS 73 "AssignReplicasToDirs" messages::assign_replicas_to_dirs::AssignReplicasToDirsRequest,
    LIST_CONFIG_RESOURCES 74 "ListConfigResources" messages::list_config_resources::ListConfigResourcesRequest,
    DESCRIBE_TOPIC_PARTITIONS 75 "DescribeTopicPartitions" messages::describe_topic_partitions::DescribeTopicPartitionsRequest,
    SHARE_GROUP_HEARTBEAT 76 "ShareGroupHeartbeat" messages::share_group_heartbeat::ShareGroupHeartbeatRequest,
    SHARE_GROUP_DESCRIBE 77 "ShareGroupDescribe" messages::share_group_describe::ShareGroupDescribeRequest,
    SHARE_FETCH 78 "ShareFetch" messages::share_fetch::ShareFetchRequest,
    SHARE_ACKNOWLEDGE 79 "ShareAcknowledge" messages::share_acknowledge::ShareAcknowledgeRequest,
    ADD_RAFT_VOTER 80 "AddRaftVoter" messages::add_raft_voter::AddRaftVoterRequest,
    REMOVE_RAFT_VOTER 81 "RemoveRaftVoter" messages::remove_raft_voter::RemoveRaftVoterRequest,
    UPDATE_RAFT_VOTER 82 "UpdateRaftVoter" messages::update_raft_voter::UpdateRaftVoterRequest,
    INITIALIZE_SHARE_GROUP_STATE 83 "InitializeShareGroupState" messages::initialize_share_group_state::InitializeShareGroupStateRequest,
    READ_SHARE_GROUP_STATE 84 "ReadShareGroupState" messages::read_share_group_state::ReadShareGroupStateRequest,
    WRITE_SHARE_GROUP_STATE 85 "WriteShareGroupState" messages::write_share_group_state::WriteShareGroupStateRequest,
    DELETE_SHARE_GROUP_STATE 86 "DeleteShareGroupState" messages::delete_share_group_state::DeleteShareGroupStateRequest,
    READ_SHARE_GROUP_STATE_SUMMARY 87 "ReadShareGroupStateSummary" messages::read_share_group_state_summary::ReadShareGroupStateSummaryRequest,
    STREAMS_GROUP_HEARTBEAT 88 "StreamsGroupHeartbeat" messages::streams_group_heartbeat::StreamsGroupHeartbeatRequest,
    STREAMS_GROUP_DESCRIBE 89 "StreamsGroupDescribe" messages::streams_group_describe::StreamsGroupDescribeRequest,
    DESCRIBE_SHARE_GROUP_OFFSETS 90 "DescribeShareGroupOffsets" messages::describe_share_group_offsets::DescribeShareGroupOffsetsRequest,
    ALTER_SHARE_GROUP_OFFSETS 91 "AlterShareGroupOffsets" messages::alter_share_group_offsets::AlterShareGroupOffsetsRequest,
    DELETE_SHARE_GROUP_OFFSETS 92 "DeleteShareGroupOffsets" messages::delete_share_group_offsets::DeleteShareGroupOffsetsRequest,
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE 93 "StreamsGroupTopologyDescriptionUpdate" messages::streams_group_topology_description_update::StreamsGroupTopologyDescriptionUpdateRequest,
    UNREGISTER_CONTROLLER 94 "UnregisterController" messages::unregister_controller::UnregisterControllerRequest,
}
