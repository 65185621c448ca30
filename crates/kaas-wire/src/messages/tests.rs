//! Every message at every version: against the tables of another implementation, against what Kafka wrote, and against
//! bytes that mean harm.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable, Message as TheirMessage};

use super::*;
use crate::message::Layout;
use crate::message::probe::{Probe, for_seeds, hex};
use crate::{ApiKey, DecodeError, Message, Reader, Writer};

/// Arbitrary messages for each version of each message.
const CASES: u32 = 32;

const BUDGET: usize = 1 << 20;

fn layout<M: Message>(version: i16) -> Layout {
    Layout {
        version,
        flexible: version >= M::FLEXIBLE_FROM,
    }
}

fn encode<M: Message>(message: &M, version: i16) -> Bytes {
    let mut writer = Writer::with_capacity(message.size(version));
    message.encode(&mut writer, version);
    assert_eq!(
        writer.len(),
        message.size(version),
        "size of {} {version}",
        M::NAME
    );
    Bytes::from(writer.into_vec())
}

fn decode<M: Message>(bytes: &Bytes, version: i16) -> Result<M, DecodeError> {
    let mut reader = Reader::new(bytes.clone(), BUDGET);
    let message = M::decode(&mut reader, version)?;
    assert_eq!(reader.remaining(), 0, "{} {version} leaves bytes", M::NAME);
    Ok(message)
}

/// Encode and decode give back what they took.
fn round_trip<M: Message + Probe + PartialEq + std::fmt::Debug>(version: i16) {
    for_seeds(CASES, &|dice| {
        let message = M::arbitrary(dice, layout::<M>(version));
        assert_eq!(
            decode::<M>(&encode(&message, version), version).as_ref(),
            Ok(&message)
        );
    });
    let default = M::default();
    decode::<M>(&encode(&default, version), version).unwrap();
}

/// What is encoded here is decoded there, and the other way round.
fn agree<M, T>(version: i16)
where
    M: Message + Probe + PartialEq + std::fmt::Debug,
    T: Encodable + Decodable,
{
    for_seeds(CASES, &|dice| {
        let message = M::arbitrary(dice, layout::<M>(version));
        let ours = encode(&message, version);
        let mut left = ours.clone();
        let parsed = T::decode(&mut left, version)
            .unwrap_or_else(|error| panic!("{} {version}: {error}: {message:?}", M::NAME));
        assert!(
            left.is_empty(),
            "{} {version}: the other side leaves bytes",
            M::NAME
        );
        let mut theirs = BytesMut::new();
        parsed.encode(&mut theirs, version).unwrap();
        assert_eq!(
            decode::<M>(&theirs.freeze(), version).as_ref(),
            Ok(&message)
        );
    });
}

/// Bytes that mean harm end in an error or in a message that the budget covers.
fn hostile<M: Message + Probe>(version: i16) {
    for_seeds(CASES, &|dice| {
        let mut frame = match dice.below(4) {
            0 => (0..dice.below(200)).map(|_| dice.next() as u8).collect(),
            _ => encode(&M::arbitrary(dice, layout::<M>(version)), version).to_vec(),
        };
        if dice.below(2) == 0 {
            frame.truncate(dice.below(frame.len() + 1));
        }
        for _ in 0..dice.below(4) {
            if frame.is_empty() {
                break;
            }
            let at = dice.below(frame.len());
            // A huge length in the old form or in the compact one, an end of a range, or noise.
            let bytes: &[u8] = match dice.below(5) {
                0 => &[0x7f, 0xff, 0xff, 0xff],
                1 => &[0xff, 0xff, 0xff, 0xff, 0x0f],
                2 => &[0xff],
                3 => &[0x00],
                _ => &[dice.next() as u8],
            };
            for (to, from) in frame[at..].iter_mut().zip(bytes) {
                *to = *from;
            }
        }
        let budget = [0, 100, 10_000][dice.below(3)];
        let mut reader = Reader::new(Bytes::from(frame), budget);
        if let Ok(message) = M::decode(&mut reader, version) {
            assert!(message.heap() <= budget - reader.budget());
        }
    });
}

macro_rules! apis {
    (
        known to the other side: $(
            $key:literal $api:ident: $request:ident, $response:ident, $versions:expr, flexible $flexible:expr;
        )*
        known here only: $(
            $own_key:literal $own_api:ident: $own_request:ident, $own_response:ident,
            $own_versions:expr, flexible $own_flexible:expr;
        )*
    ) => {
        #[test]
        fn versions_and_the_first_flexible_one_are_those_of_kafka() {
            let mut keys = BTreeSet::new();
            $( keys.insert($key); check::<$api::$request, $api::$response>($key, $versions, $flexible); )*
            $(
                keys.insert($own_key);
                check::<$own_api::$own_request, $own_api::$own_response>($own_key, $own_versions, $own_flexible);
            )*
            assert!(ApiKey::ALL.iter().map(|key| key.0).eq(keys));
        }

        /// The other side is one release behind.
        #[test]
        fn the_other_side_lacks_only_the_newest_versions() {
            let mut lacking = Vec::new();
            $(
                lacking.extend(beyond::<$api::$request, theirs::$request>());
                lacking.extend(beyond::<$api::$response, theirs::$response>());
            )*
            assert_eq!(lacking, LACKING);
        }

        mod agreement {
            use super::*;
            $(
                #[test]
                fn $api() {
                    for version in known::<$api::$request, theirs::$request>() {
                        agree::<$api::$request, theirs::$request>(version);
                    }
                    for version in known::<$api::$response, theirs::$response>() {
                        agree::<$api::$response, theirs::$response>(version);
                    }
                }
            )*
        }

        /// Frames of the messages and versions the other side lacks. Kafka 4.4's own classes read each of them and wrote
        /// the same bytes.
        #[test]
        fn kafka_bytes() {
            let mut covered = BTreeSet::new();
            for line in include_str!("tests/kafka-4.4.txt").lines() {
                let [name, version, frame] = line.split(' ').collect::<Vec<_>>()[..] else {
                    panic!("not a frame: {line}");
                };
                let version = version.parse().unwrap();
                covered.insert((name.to_owned(), version));
                let frame = Bytes::from(hex(frame));
                match name {
                    $(
                        stringify!($request) => reads_and_writes::<$api::$request>(&frame, version),
                        stringify!($response) => reads_and_writes::<$api::$response>(&frame, version),
                    )*
                    $(
                        stringify!($own_request) => reads_and_writes::<$own_api::$own_request>(&frame, version),
                        stringify!($own_response) => reads_and_writes::<$own_api::$own_response>(&frame, version),
                    )*
                    _ => panic!("{name} has no table"),
                }
            }
            let mut wanted: BTreeSet<_> =
                LACKING.iter().map(|&(name, version)| (name.to_owned(), version)).collect();
            $(
                for version in $own_versions {
                    wanted.insert((stringify!($own_request).to_owned(), version));
                    wanted.insert((stringify!($own_response).to_owned(), version));
                }
            )*
            assert_eq!(covered, wanted);
        }

        mod round_trips {
            use super::*;
            $(
                #[test]
                fn $api() {
                    $api::$request::VERSIONS.for_each(round_trip::<$api::$request>);
                    $api::$response::VERSIONS.for_each(round_trip::<$api::$response>);
                }
            )*
            $(
                #[test]
                fn $own_api() {
                    $own_api::$own_request::VERSIONS.for_each(round_trip::<$own_api::$own_request>);
                    $own_api::$own_response::VERSIONS.for_each(round_trip::<$own_api::$own_response>);
                }
            )*
        }

        mod hostile_bytes {
            use super::*;
            $(
                #[test]
                fn $api() {
                    $api::$request::VERSIONS.for_each(hostile::<$api::$request>);
                    $api::$response::VERSIONS.for_each(hostile::<$api::$response>);
                }
            )*
            $(
                #[test]
                fn $own_api() {
                    $own_api::$own_request::VERSIONS.for_each(hostile::<$own_api::$own_request>);
                    $own_api::$own_response::VERSIONS.for_each(hostile::<$own_api::$own_response>);
                }
            )*
        }
    };
}

fn reads_and_writes<M: Message>(frame: &Bytes, version: i16) {
    let message = decode::<M>(frame, version)
        .unwrap_or_else(|error| panic!("{} {version}: {error}", M::NAME));
    assert_eq!(encode(&message, version), frame, "{} {version}", M::NAME);
}

fn check<Q: Message, A: Message>(key: i16, versions: std::ops::RangeInclusive<i16>, flexible: i16) {
    assert_eq!((Q::API_KEY, A::API_KEY), (key, key), "{}", Q::NAME);
    assert_eq!(
        (Q::VERSIONS, A::VERSIONS),
        (versions.clone(), versions.clone()),
        "{}",
        Q::NAME
    );
    assert_eq!(
        (Q::FLEXIBLE_FROM, A::FLEXIBLE_FROM),
        (flexible, flexible),
        "{}",
        Q::NAME
    );
    let name = ApiKey(key).name().unwrap();
    assert_eq!(
        (format!("{name}Request"), format!("{name}Response")),
        (Q::NAME.into(), A::NAME.into())
    );
    assert_eq!(ApiKey(key).versions(), Some(versions));
    assert_eq!(ApiKey::from_name(name), Some(ApiKey(key)));
}

fn known<M: Message, T: TheirMessage>() -> impl Iterator<Item = i16> {
    M::VERSIONS.filter(|version| (T::VERSIONS.min..=T::VERSIONS.max).contains(version))
}

fn beyond<M: Message, T: TheirMessage>() -> impl Iterator<Item = (&'static str, i16)> {
    M::VERSIONS
        .filter(|version| !(T::VERSIONS.min..=T::VERSIONS.max).contains(version))
        .map(|version| (M::NAME, version))
}

/// What the other side does not know; `kafka_bytes` below covers it.
const LACKING: &[(&str, i16)] = &[
    ("ListOffsetsRequest", 11),
    ("ListOffsetsResponse", 11),
    ("OffsetCommitRequest", 10),
    ("OffsetFetchRequest", 10),
    ("ApiVersionsRequest", 5),
    ("ApiVersionsResponse", 5),
    ("InitProducerIdRequest", 6),
    ("WriteTxnMarkersRequest", 2),
    ("WriteTxnMarkersResponse", 2),
    ("TxnOffsetCommitRequest", 6),
    ("TxnOffsetCommitResponse", 6),
    ("DescribeLogDirsRequest", 5),
    ("DescribeLogDirsResponse", 5),
    ("DeleteGroupsRequest", 3),
    ("DeleteGroupsResponse", 3),
    ("BrokerHeartbeatRequest", 2),
    ("BrokerHeartbeatResponse", 2),
    ("ShareFetchRequest", 2),
    ("ShareFetchResponse", 2),
    ("ShareAcknowledgeRequest", 2),
    ("ShareAcknowledgeResponse", 2),
    ("AddRaftVoterRequest", 1),
    ("AddRaftVoterResponse", 1),
    ("WriteShareGroupStateRequest", 1),
    ("WriteShareGroupStateResponse", 1),
    ("ReadShareGroupStateSummaryRequest", 1),
    ("ReadShareGroupStateSummaryResponse", 1),
    ("DescribeShareGroupOffsetsRequest", 1),
    ("DescribeShareGroupOffsetsResponse", 1),
];

apis! {
    known to the other side:
    0 produce: ProduceRequest, ProduceResponse, 3..=13, flexible 9;
    1 fetch: FetchRequest, FetchResponse, 4..=18, flexible 12;
    2 list_offsets: ListOffsetsRequest, ListOffsetsResponse, 1..=11, flexible 6;
    3 metadata: MetadataRequest, MetadataResponse, 0..=13, flexible 9;
    8 offset_commit: OffsetCommitRequest, OffsetCommitResponse, 2..=10, flexible 8;
    9 offset_fetch: OffsetFetchRequest, OffsetFetchResponse, 1..=10, flexible 6;
    10 find_coordinator: FindCoordinatorRequest, FindCoordinatorResponse, 0..=6, flexible 3;
    11 join_group: JoinGroupRequest, JoinGroupResponse, 0..=9, flexible 6;
    12 heartbeat: HeartbeatRequest, HeartbeatResponse, 0..=4, flexible 4;
    13 leave_group: LeaveGroupRequest, LeaveGroupResponse, 0..=5, flexible 4;
    14 sync_group: SyncGroupRequest, SyncGroupResponse, 0..=5, flexible 4;
    15 describe_groups: DescribeGroupsRequest, DescribeGroupsResponse, 0..=6, flexible 5;
    16 list_groups: ListGroupsRequest, ListGroupsResponse, 0..=5, flexible 3;
    17 sasl_handshake: SaslHandshakeRequest, SaslHandshakeResponse, 0..=1, flexible i16::MAX;
    18 api_versions: ApiVersionsRequest, ApiVersionsResponse, 0..=5, flexible 3;
    19 create_topics: CreateTopicsRequest, CreateTopicsResponse, 2..=7, flexible 5;
    20 delete_topics: DeleteTopicsRequest, DeleteTopicsResponse, 1..=6, flexible 4;
    21 delete_records: DeleteRecordsRequest, DeleteRecordsResponse, 0..=2, flexible 2;
    22 init_producer_id: InitProducerIdRequest, InitProducerIdResponse, 0..=6, flexible 2;
    23 offset_for_leader_epoch: OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, 2..=4, flexible 4;
    24 add_partitions_to_txn: AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, 0..=5, flexible 3;
    25 add_offsets_to_txn: AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, 0..=4, flexible 3;
    26 end_txn: EndTxnRequest, EndTxnResponse, 0..=5, flexible 3;
    27 write_txn_markers: WriteTxnMarkersRequest, WriteTxnMarkersResponse, 1..=2, flexible 1;
    28 txn_offset_commit: TxnOffsetCommitRequest, TxnOffsetCommitResponse, 0..=6, flexible 3;
    29 describe_acls: DescribeAclsRequest, DescribeAclsResponse, 1..=3, flexible 2;
    30 create_acls: CreateAclsRequest, CreateAclsResponse, 1..=3, flexible 2;
    31 delete_acls: DeleteAclsRequest, DeleteAclsResponse, 1..=3, flexible 2;
    32 describe_configs: DescribeConfigsRequest, DescribeConfigsResponse, 1..=4, flexible 4;
    33 alter_configs: AlterConfigsRequest, AlterConfigsResponse, 0..=2, flexible 2;
    34 alter_replica_log_dirs: AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, 1..=2, flexible 2;
    35 describe_log_dirs: DescribeLogDirsRequest, DescribeLogDirsResponse, 1..=5, flexible 2;
    36 sasl_authenticate: SaslAuthenticateRequest, SaslAuthenticateResponse, 0..=2, flexible 2;
    37 create_partitions: CreatePartitionsRequest, CreatePartitionsResponse, 0..=3, flexible 2;
    38 create_delegation_token: CreateDelegationTokenRequest, CreateDelegationTokenResponse, 1..=3, flexible 2;
    39 renew_delegation_token: RenewDelegationTokenRequest, RenewDelegationTokenResponse, 1..=2, flexible 2;
    40 expire_delegation_token: ExpireDelegationTokenRequest, ExpireDelegationTokenResponse, 1..=2, flexible 2;
    41 describe_delegation_token: DescribeDelegationTokenRequest, DescribeDelegationTokenResponse, 1..=3, flexible 2;
    42 delete_groups: DeleteGroupsRequest, DeleteGroupsResponse, 0..=3, flexible 2;
    43 elect_leaders: ElectLeadersRequest, ElectLeadersResponse, 0..=2, flexible 2;
    44 incremental_alter_configs: IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, 0..=1, flexible 1;
    45 alter_partition_reassignments: AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, 0..=1, flexible 0;
    46 list_partition_reassignments: ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse, 0..=0, flexible 0;
    47 offset_delete: OffsetDeleteRequest, OffsetDeleteResponse, 0..=0, flexible i16::MAX;
    48 describe_client_quotas: DescribeClientQuotasRequest, DescribeClientQuotasResponse, 0..=1, flexible 1;
    49 alter_client_quotas: AlterClientQuotasRequest, AlterClientQuotasResponse, 0..=1, flexible 1;
    50 describe_user_scram_credentials: DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse, 0..=0, flexible 0;
    51 alter_user_scram_credentials: AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, 0..=0, flexible 0;
    52 vote: VoteRequest, VoteResponse, 0..=2, flexible 0;
    53 begin_quorum_epoch: BeginQuorumEpochRequest, BeginQuorumEpochResponse, 0..=1, flexible 1;
    54 end_quorum_epoch: EndQuorumEpochRequest, EndQuorumEpochResponse, 0..=1, flexible 1;
    55 describe_quorum: DescribeQuorumRequest, DescribeQuorumResponse, 0..=2, flexible 0;
    56 alter_partition: AlterPartitionRequest, AlterPartitionResponse, 2..=3, flexible 0;
    57 update_features: UpdateFeaturesRequest, UpdateFeaturesResponse, 0..=2, flexible 0;
    58 envelope: EnvelopeRequest, EnvelopeResponse, 0..=0, flexible 0;
    59 fetch_snapshot: FetchSnapshotRequest, FetchSnapshotResponse, 0..=1, flexible 0;
    60 describe_cluster: DescribeClusterRequest, DescribeClusterResponse, 0..=2, flexible 0;
    61 describe_producers: DescribeProducersRequest, DescribeProducersResponse, 0..=0, flexible 0;
    62 broker_registration: BrokerRegistrationRequest, BrokerRegistrationResponse, 0..=4, flexible 0;
    63 broker_heartbeat: BrokerHeartbeatRequest, BrokerHeartbeatResponse, 0..=2, flexible 0;
    64 unregister_broker: UnregisterBrokerRequest, UnregisterBrokerResponse, 0..=0, flexible 0;
    65 describe_transactions: DescribeTransactionsRequest, DescribeTransactionsResponse, 0..=0, flexible 0;
    66 list_transactions: ListTransactionsRequest, ListTransactionsResponse, 0..=2, flexible 0;
    67 allocate_producer_ids: AllocateProducerIdsRequest, AllocateProducerIdsResponse, 0..=0, flexible 0;
    68 consumer_group_heartbeat: ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, 0..=1, flexible 0;
    69 consumer_group_describe: ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, 0..=1, flexible 0;
    70 controller_registration: ControllerRegistrationRequest, ControllerRegistrationResponse, 0..=0, flexible 0;
    71 get_telemetry_subscriptions: GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse, 0..=0, flexible 0;
    72 push_telemetry: PushTelemetryRequest, PushTelemetryResponse, 0..=0, flexible 0;
    73 assign_replicas_to_dirs: AssignReplicasToDirsRequest, AssignReplicasToDirsResponse, 0..=0, flexible 0;
    74 list_config_resources: ListConfigResourcesRequest, ListConfigResourcesResponse, 0..=1, flexible 0;
    75 describe_topic_partitions: DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, 0..=0, flexible 0;
    76 share_group_heartbeat: ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, 1..=1, flexible 0;
    77 share_group_describe: ShareGroupDescribeRequest, ShareGroupDescribeResponse, 1..=1, flexible 0;
    78 share_fetch: ShareFetchRequest, ShareFetchResponse, 1..=2, flexible 0;
    79 share_acknowledge: ShareAcknowledgeRequest, ShareAcknowledgeResponse, 1..=2, flexible 0;
    80 add_raft_voter: AddRaftVoterRequest, AddRaftVoterResponse, 0..=1, flexible 0;
    81 remove_raft_voter: RemoveRaftVoterRequest, RemoveRaftVoterResponse, 0..=0, flexible 0;
    82 update_raft_voter: UpdateRaftVoterRequest, UpdateRaftVoterResponse, 0..=0, flexible 0;
    83 initialize_share_group_state: InitializeShareGroupStateRequest, InitializeShareGroupStateResponse, 0..=0, flexible 0;
    84 read_share_group_state: ReadShareGroupStateRequest, ReadShareGroupStateResponse, 0..=0, flexible 0;
    85 write_share_group_state: WriteShareGroupStateRequest, WriteShareGroupStateResponse, 0..=1, flexible 0;
    86 delete_share_group_state: DeleteShareGroupStateRequest, DeleteShareGroupStateResponse, 0..=0, flexible 0;
    87 read_share_group_state_summary: ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse, 0..=1, flexible 0;
    90 describe_share_group_offsets: DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse, 0..=1, flexible 0;
    91 alter_share_group_offsets: AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, 0..=0, flexible 0;
    92 delete_share_group_offsets: DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse, 0..=0, flexible 0;

    known here only:
    88 streams_group_heartbeat: StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, 0..=1, flexible 0;
    89 streams_group_describe: StreamsGroupDescribeRequest, StreamsGroupDescribeResponse, 0..=1, flexible 0;
    93 streams_group_topology_description_update: StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse, 0..=0, flexible 0;
    94 unregister_controller: UnregisterControllerRequest, UnregisterControllerResponse, 0..=0, flexible 0;
}

mod data {
    use super::consumer_protocol::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};
    use super::end_txn_marker::EndTxnMarker;
    use super::*;
    use crate::message::{decode_versioned, encode_versioned};

    #[test]
    fn consumer_protocol() {
        for version in 0..=3 {
            agree::<ConsumerProtocolSubscription, theirs::ConsumerProtocolSubscription>(version);
            agree::<ConsumerProtocolAssignment, theirs::ConsumerProtocolAssignment>(version);
            hostile::<ConsumerProtocolSubscription>(version);
            hostile::<ConsumerProtocolAssignment>(version);
        }
        assert_eq!(ConsumerProtocolSubscription::VERSIONS, 0..=3);
        assert_eq!(ConsumerProtocolAssignment::VERSIONS, 0..=3);
    }

    #[test]
    fn the_version_stands_in_front_of_data_and_a_newer_one_is_read_as_the_newest() {
        let subscription = ConsumerProtocolSubscription {
            topics: vec!["t".into()],
            ..Default::default()
        };
        for version in 0..=3 {
            let data = encode_versioned(&subscription, version);
            assert_eq!(data[..2], version.to_be_bytes());
            assert_eq!(decode_versioned(&data).as_ref(), Ok(&subscription));
        }
        let mut data = encode_versioned(&subscription, 3).to_vec();
        data[1] = 9;
        data.extend(b"and more");
        assert_eq!(decode_versioned(&Bytes::from(data)), Ok(subscription));
        for harm in [&[][..], &[0], &[0, 0], &[0xff, 0xff, 0, 0, 0, 0]] {
            let harm = Bytes::copy_from_slice(harm);
            assert!(decode_versioned::<ConsumerProtocolSubscription>(&harm).is_err());
        }
    }

    #[test]
    fn end_txn_marker() {
        agree::<EndTxnMarker, theirs::EndTxnMarker>(0);
        hostile::<EndTxnMarker>(0);
    }
}

/// The wire's own rules, message by message where one shows them.
mod rules {
    use super::fetch::{FetchResponse, FetchableTopicResponse, PartitionData};
    use super::heartbeat::HeartbeatRequest;
    use super::join_group::{JoinGroupRequest, JoinGroupResponse};
    use super::metadata::MetadataRequest;
    use super::offset_commit::OffsetCommitRequest;
    use super::produce::ProduceRequest;
    use super::*;
    use crate::{Gap, Records};

    #[test]
    fn a_four_byte_body_with_a_huge_count_is_refused() {
        // The topics of Metadata 1 are the first thing in it.
        for count in [[0x7f, 0xff, 0xff, 0xff], [0, 0, 0, 1], [0x80, 0, 0, 0]] {
            let frame = Bytes::copy_from_slice(&count);
            assert!(matches!(
                decode::<MetadataRequest>(&frame, 1),
                Err(DecodeError::InvalidLength { at: 0, .. })
            ));
        }
        let frame = Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert!(decode::<MetadataRequest>(&frame, 12).is_err());
    }

    #[test]
    fn a_small_frame_does_not_swell_past_the_budget() {
        // A million topics of three bytes, each dozens of bytes as a struct.
        let mut frame = vec![0; 2 * 1_000_000 + 16];
        frame[0..4].copy_from_slice(&1_000_000i32.to_be_bytes());
        let mut reader = Reader::new(Bytes::from(frame), 4_000_000);
        assert!(matches!(
            MetadataRequest::decode(&mut reader, 1),
            Err(DecodeError::OverBudget { .. })
        ));
    }

    #[test]
    fn a_version_without_a_table_is_an_error() {
        for version in [-1, 10, i16::MAX] {
            assert_eq!(
                decode::<JoinGroupRequest>(&Bytes::from_static(&[0; 64]), version),
                Err(DecodeError::UnsupportedVersion {
                    message: "JoinGroupRequest",
                    version
                })
            );
        }
    }

    #[test]
    fn what_is_no_utf8_in_a_string_is_replaced_and_paid_for() {
        let request = |group_id: &[u8]| {
            let mut frame = (group_id.len() as i16).to_be_bytes().to_vec();
            frame.extend(group_id);
            frame.extend([0, 0, 0, 7, 0, 0]);
            Bytes::from(frame)
        };
        let decoded = decode::<HeartbeatRequest>(&request(&[0xc3, 0x28, b'x', 0xff]), 0).unwrap();
        assert_eq!(decoded.group_id, "\u{fffd}(x\u{fffd}");
        assert_eq!(decoded.generation_id, 7);

        let grown = request(&[0xff; 11_000]);
        assert!(matches!(
            decode::<HeartbeatRequest>(&grown, 0),
            Err(DecodeError::InvalidLength {
                at: 0,
                length: 33_000
            })
        ));
        let mut reader = Reader::new(request(&[0xff; 100]), 250);
        assert!(matches!(
            HeartbeatRequest::decode(&mut reader, 0),
            Err(DecodeError::OverBudget { .. })
        ));
    }

    #[test]
    fn strings_have_no_more_than_32767_bytes() {
        let mut frame = vec![0x81, 0x80, 0x02];
        frame.resize(40_000, b'a');
        assert!(matches!(
            decode::<HeartbeatRequest>(&Bytes::from(frame), 4),
            Err(DecodeError::InvalidLength {
                at: 0,
                length: 32_768
            })
        ));
    }

    #[test]
    fn a_string_that_is_too_long_is_cut_at_a_character() {
        let group_id = format!("a{}", "é".repeat(20_000));
        for version in [0, 4] {
            let request = HeartbeatRequest {
                group_id: group_id.clone(),
                ..Default::default()
            };
            let back: HeartbeatRequest = decode(&encode(&request, version), version).unwrap();
            assert_eq!(back.group_id.len(), 32_767);
            assert!(group_id.starts_with(&back.group_id));
        }
    }

    #[test]
    fn null_where_no_null_may_be_is_an_error_and_never_written() {
        let frame = Bytes::from_static(&[0xff, 0xff]);
        assert_eq!(
            decode::<HeartbeatRequest>(&frame, 0),
            Err(DecodeError::Null { at: 0 })
        );
        let frame = Bytes::from_static(&[0xff, 0xff, 0xff, 0xff]);
        assert_eq!(
            decode::<MetadataRequest>(&frame, 0),
            Err(DecodeError::Null { at: 0 })
        );
        assert_eq!(decode::<MetadataRequest>(&frame, 1).unwrap().topics, None);

        // The protocol name may be null from version 7 on.
        let response = JoinGroupResponse {
            protocol_name: None,
            ..Default::default()
        };
        let back =
            |version| decode::<JoinGroupResponse>(&encode(&response, version), version).unwrap();
        assert_eq!(back(6).protocol_name.as_deref(), Some(""));
        assert_eq!(back(7).protocol_name, None);
    }

    #[test]
    fn a_field_the_version_lacks_is_dropped() {
        let request = JoinGroupRequest {
            group_instance_id: Some("i".into()),
            rebalance_timeout_ms: 9,
            ..Default::default()
        };
        let back: JoinGroupRequest = decode(&encode(&request, 0), 0).unwrap();
        assert_eq!(back, JoinGroupRequest::default());
        assert_eq!(back.rebalance_timeout_ms, -1);
    }

    #[test]
    fn unknown_tagged_fields_are_passed_over() {
        let request = HeartbeatRequest {
            group_id: "g".into(),
            ..Default::default()
        };
        let mut frame = encode(&request, 4).to_vec();
        assert_eq!(frame.pop(), Some(0));
        frame.extend([2, 0, 3, 1, 2, 3, 0x88, 0x27, 0]);
        assert_eq!(
            decode::<HeartbeatRequest>(&Bytes::from(frame.clone()), 4),
            Ok(request)
        );
        frame.truncate(frame.len() - 5);
        assert!(matches!(
            decode::<HeartbeatRequest>(&Bytes::from(frame), 4),
            Err(DecodeError::Truncated { .. })
        ));
    }

    #[test]
    fn bytes_behind_a_request_are_left_alone() {
        let request = OffsetCommitRequest {
            group_id: "g".into(),
            ..Default::default()
        };
        let mut frame = encode(&request, 8).to_vec();
        frame.push(1);
        let mut reader = Reader::new(Bytes::from(frame), BUDGET);
        assert_eq!(OffsetCommitRequest::decode(&mut reader, 8), Ok(request));
        assert_eq!(reader.remaining(), 1);
    }

    #[test]
    fn records_of_a_request_are_a_slice_of_the_frame() {
        let mut request = ProduceRequest::default();
        request.topic_data.push(Default::default());
        request.topic_data[0]
            .partition_data
            .push(Default::default());
        request.topic_data[0].partition_data[0].records = Some(Bytes::from_static(b"records"));
        let frame = encode(&request, 9);
        let back: ProduceRequest = decode(&frame, 9).unwrap();
        let records = back.topic_data[0].partition_data[0]
            .records
            .as_ref()
            .unwrap();
        assert!(frame.as_ptr_range().contains(&records.as_ptr()));
    }

    #[test]
    fn records_in_a_file_leave_a_gap_where_they_belong() {
        let response = |records: [Records; 2]| FetchResponse {
            responses: vec![FetchableTopicResponse {
                partitions: records
                    .map(|records| PartitionData {
                        records,
                        ..Default::default()
                    })
                    .into(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let inline = response([
            Records::Inline(Bytes::from_static(b"0123456789")),
            Records::Inline(Bytes::from_static(b"abc")),
        ]);
        let external = response([
            Records::External { len: 10, id: 5 },
            Records::External { len: 3, id: 6 },
        ]);
        for version in FetchResponse::VERSIONS {
            let whole = encode(&inline, version);
            assert_eq!(external.size(version), whole.len());
            let mut writer = Writer::default();
            external.encode(&mut writer, version);
            let [first, second] = writer.gaps() else {
                panic!("two gaps")
            };
            assert_eq!((first.len, first.id, second.len, second.id), (10, 5, 3, 6));
            let mut filled = writer.as_slice()[..first.at].to_vec();
            filled.extend(b"0123456789");
            filled.extend(&writer.as_slice()[first.at..second.at]);
            filled.extend(b"abc");
            filled.extend(&writer.as_slice()[second.at..]);
            assert_eq!(filled, whole);
            assert_eq!(
                writer.gaps()[0],
                Gap {
                    at: first.at,
                    len: 10,
                    id: 5
                }
            );
        }
    }
}
