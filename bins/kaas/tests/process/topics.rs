//! Topics and configurations as clients see them: made, described, altered, deleted, and there again after a restart.
//! The texts are Kafka 4.4's own, read off a running one.

use kaas_tests::broker::Broker;
use kaas_tests::connection::Connection;
use kaas_tests::topic;
use kaas_wire::messages::alter_configs::{self, AlterConfigsRequest};
use kaas_wire::messages::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic,
};
use kaas_wire::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreatableTopicResult,
    CreateTopicsRequest,
};
use kaas_wire::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use kaas_wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResult,
};
use kaas_wire::messages::describe_log_dirs::{DescribableLogDirTopic, DescribeLogDirsRequest};
use kaas_wire::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, TopicRequest,
};
use kaas_wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use kaas_wire::messages::list_config_resources::ListConfigResourcesRequest;
use kaas_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use kaas_wire::{ErrorCode, Uuid};

use crate::{kaas, shared};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const GROUP: i8 = 32;

fn creatable(name: &str, num_partitions: i32, replication_factor: i16) -> CreatableTopic {
    CreatableTopic {
        name: name.to_owned(),
        num_partitions,
        replication_factor,
        ..Default::default()
    }
}

fn create(
    connection: &mut Connection,
    topics: Vec<CreatableTopic>,
    validate_only: bool,
) -> Vec<CreatableTopicResult> {
    connection
        .call(
            7,
            &CreateTopicsRequest {
                topics,
                timeout_ms: 10_000,
                validate_only,
            },
        )
        .topics
}

fn refusal(connection: &mut Connection, topic: CreatableTopic) -> (ErrorCode, String) {
    let result = create(connection, vec![topic], true).remove(0);
    (result.error_code, result.error_message.unwrap_or_default())
}

fn metadata(
    connection: &mut Connection,
    names: &[&str],
    allow_auto_topic_creation: bool,
) -> MetadataResponse {
    let topics = names
        .iter()
        .map(|name| MetadataRequestTopic {
            name: Some((*name).to_owned()),
            ..Default::default()
        })
        .collect();
    connection.call(
        12,
        &MetadataRequest {
            topics: Some(topics),
            allow_auto_topic_creation,
            ..Default::default()
        },
    )
}

fn topic_error(connection: &mut Connection, name: &str) -> ErrorCode {
    metadata(connection, &[name], false).topics[0].error_code
}

#[test]
fn topics_that_cannot_be_created_are_refused_in_kafkas_words() {
    let broker = shared();
    let connection = &mut broker.connect();
    let invalid = ErrorCode::INVALID_TOPIC_EXCEPTION;
    for (topic, code, why) in [
        (
            creatable("t", 1, 1),
            ErrorCode::TOPIC_ALREADY_EXISTS,
            "Topic 't' already exists.",
        ),
        (
            creatable("", 1, 1),
            invalid,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (
            creatable("..", 1, 1),
            invalid,
            "Topic name is invalid: '..' is not allowed",
        ),
        (
            creatable("a b", 1, 1),
            invalid,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            creatable("__cluster_metadata", 1, 1),
            ErrorCode::INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (
            creatable("n", 0, 1),
            ErrorCode::INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            creatable("n", 1, 0),
            ErrorCode::INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            creatable("n", 1, 2),
            ErrorCode::INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (
            creatable("n", 10_001, 1),
            ErrorCode::POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
    ] {
        assert_eq!(refusal(connection, topic), (code, why.to_owned()));
    }
}

#[test]
fn assignments_made_by_hand_are_checked_in_kafkas_words() {
    let broker = shared();
    let connection = &mut broker.connect();
    let by_hand = |replicas: &[(i32, &[i32])], partitions, factor| CreatableTopic {
        assignments: replicas
            .iter()
            .map(|(partition_index, broker_ids)| CreatableReplicaAssignment {
                partition_index: *partition_index,
                broker_ids: broker_ids.to_vec(),
            })
            .collect(),
        ..creatable("n", partitions, factor)
    };
    let invalid = ErrorCode::INVALID_REPLICA_ASSIGNMENT;
    for (topic, code, why) in [
        (
            by_hand(&[(0, &[0]), (1, &[0])], -1, -1),
            ErrorCode::NONE,
            "",
        ),
        (
            by_hand(&[(0, &[0])], 1, -1),
            ErrorCode::INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            by_hand(&[(0, &[0])], -1, 1),
            ErrorCode::INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            by_hand(&[(1, &[0])], -1, -1),
            invalid,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            by_hand(&[(0, &[0]), (0, &[0])], -1, -1),
            invalid,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            by_hand(&[(0, &[])], -1, -1),
            invalid,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            by_hand(&[(0, &[0, 0])], -1, -1),
            invalid,
            "The manual partition assignment includes the broker 0 more than once.",
        ),
        (
            by_hand(&[(0, &[7])], -1, -1),
            invalid,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
    ] {
        assert_eq!(refusal(connection, topic), (code, why.to_owned()));
    }
}

#[test]
fn a_topic_named_twice_in_a_request_is_refused_and_the_others_are_made() {
    let broker = shared();
    let connection = &mut broker.connect();
    let asked = vec![
        creatable("twice", 1, 1),
        creatable("once", 3, -1),
        creatable("twice", 1, 1),
    ];
    let results = create(connection, asked, false);
    let told: Vec<(&str, ErrorCode, i32)> = results
        .iter()
        .map(|result| {
            (
                result.name.as_str(),
                result.error_code,
                result.num_partitions,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("once", ErrorCode::NONE, 3),
            ("twice", ErrorCode::INVALID_REQUEST, -1)
        ]
    );
    assert!(!results[0].topic_id.is_zero());
    assert_eq!(results[0].configs.as_ref().unwrap().len(), 37);
    assert_eq!(
        topic_error(connection, "twice"),
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
}

#[test]
fn validating_creates_nothing() {
    let broker = shared();
    let connection = &mut broker.connect();
    assert_eq!(
        create(connection, vec![creatable("valid", 1, 1)], true)[0].error_code,
        ErrorCode::NONE
    );
    assert_eq!(
        topic_error(connection, "valid"),
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
}

#[test]
fn metadata_finds_a_topic_by_name_and_by_id_and_names_the_listener_the_client_came_in_on() {
    let broker = shared();
    let connection = &mut broker.connect();
    let id = topic::create(connection, "found", 2);
    let by_id = MetadataRequest {
        topics: Some(vec![
            MetadataRequestTopic {
                topic_id: id,
                name: None,
            },
            MetadataRequestTopic {
                topic_id: Uuid::from_bytes([9; 16]),
                name: None,
            },
        ]),
        ..Default::default()
    };
    let response = connection.call(12, &by_id);
    let [found, unknown] = &response.topics[..] else {
        panic!("{response:?}")
    };
    assert_eq!((found.name.as_deref(), found.topic_id), (Some("found"), id));
    let leaders: Vec<(i32, i32, &[i32])> = found
        .partitions
        .iter()
        .map(|partition| {
            (
                partition.leader_id,
                partition.leader_epoch,
                &partition.replica_nodes[..],
            )
        })
        .collect();
    assert_eq!(leaders, [(0, 0, &[0][..]), (0, 0, &[0][..])]);
    assert_eq!(
        (unknown.error_code, unknown.name.as_deref()),
        (ErrorCode::UNKNOWN_TOPIC_ID, None)
    );
    let address = connection.stream().peer_addr().unwrap();
    let told = &response.brokers[0];
    assert_eq!(
        (told.host.as_str(), told.port),
        ("127.0.0.1", i32::from(address.port()))
    );
}

#[test]
fn asking_for_a_topic_creates_it_only_where_client_and_broker_allow_it() {
    let broker = shared();
    let connection = &mut broker.connect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(
        metadata(connection, &["wished"], false).topics[0].error_code,
        unknown
    );
    assert_eq!(
        metadata(connection, &["wished"], false).topics[0].error_code,
        unknown
    );
    // As with Kafka the answer that creates it does not know it yet.
    assert_eq!(
        metadata(connection, &["wished"], true).topics[0].error_code,
        unknown
    );
    assert_eq!(
        metadata(connection, &["wished"], true).topics[0].error_code,
        ErrorCode::NONE
    );
    for _ in 0..2 {
        let internal = metadata(connection, &["__consumer_offsets"], true);
        assert_eq!(internal.topics[0].error_code, unknown);
        let odd = metadata(connection, &["a b"], true);
        assert_eq!(odd.topics[0].error_code, ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
    let strict = kaas().set("auto.create.topics.enable", false).start();
    let connection = &mut strict.connect();
    for _ in 0..2 {
        assert_eq!(
            metadata(connection, &["wished"], true).topics[0].error_code,
            unknown
        );
    }
}

#[test]
fn a_topic_made_again_inherits_nothing() {
    let mut broker = kaas().start();
    let connection = &mut broker.connect();
    let old = topic::create(connection, "again", 1);
    topic::produce(connection, "again", 0, &[b"old".to_vec()]);
    topic::delete(connection, "again");
    let new = topic::create(connection, "again", 1);
    assert_ne!(old, new);
    assert_eq!(topic::read_all(connection, "again", 0), []);
    topic::produce(connection, "again", 0, &[b"new".to_vec()]);
    broker.kill();
    broker.start_again();
    let connection = &mut broker.connect();
    assert_eq!(
        topic::read_all(connection, "again", 0),
        [(0, b"new".to_vec())]
    );
    let data = broker.volume().join("topics");
    let kept: Vec<String> = kaas_tests::files::list(&data);
    assert_eq!(kept, [new.to_string()]);
}

#[test]
fn what_deletes_topics_is_refused_where_it_is_ambiguous() {
    let broker = shared();
    let connection = &mut broker.connect();
    let by_both = topic::create(connection, "by-both", 1);
    let gone = topic::create(connection, "gone-by-id", 1);
    let name = |name: &str| DeleteTopicState {
        name: Some(name.to_owned()),
        topic_id: Uuid::ZERO,
    };
    let id = |topic_id| DeleteTopicState {
        name: None,
        topic_id,
    };
    let asked = vec![
        id(Uuid::ZERO),
        DeleteTopicState {
            name: Some("t".to_owned()),
            topic_id: by_both,
        },
        id(Uuid::from_bytes([9; 16])),
        name("by-both"),
        id(by_both),
        id(gone),
        name("nowhere"),
        name("dup"),
        name("dup"),
    ];
    let request = DeleteTopicsRequest {
        topics: asked,
        timeout_ms: 10_000,
        ..Default::default()
    };
    let responses = connection.call(6, &request).responses;
    let told: Vec<(Option<&str>, ErrorCode, &str)> = responses
        .iter()
        .map(|one| {
            (
                one.name.as_deref(),
                one.error_code,
                one.error_message.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    let invalid = ErrorCode::INVALID_REQUEST;
    for expected in [
        (None, invalid, "Neither topic name nor id were specified."),
        (
            Some("t"),
            invalid,
            "You may not specify both topic name and topic id.",
        ),
        (
            None,
            ErrorCode::UNKNOWN_TOPIC_ID,
            "This server does not host this topic ID.",
        ),
        (
            Some("by-both"),
            invalid,
            "The provided topic name maps to an ID that was already supplied.",
        ),
        (Some("gone-by-id"), ErrorCode::NONE, ""),
        (
            Some("nowhere"),
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
        (Some("dup"), invalid, "Duplicate topic name."),
    ] {
        assert!(told.contains(&expected), "{expected:?} is not in {told:?}");
    }
    assert_eq!(told.len(), 7);
    assert_eq!(topic_error(connection, "by-both"), ErrorCode::NONE);
    assert_eq!(
        topic_error(connection, "gone-by-id"),
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
}

#[test]
fn partitions_are_added_and_never_taken_away() {
    let broker = shared();
    let connection = &mut broker.connect();
    topic::create(connection, "grows", 2);
    let mut grow = |name: &str, count: i32, replicas: Option<&[&[i32]]>| {
        let assignments = replicas.map(|all| {
            all.iter()
                .map(|one| CreatePartitionsAssignment {
                    broker_ids: one.to_vec(),
                })
                .collect()
        });
        let topics = vec![CreatePartitionsTopic {
            name: name.to_owned(),
            count,
            assignments,
        }];
        let request = CreatePartitionsRequest {
            topics,
            timeout_ms: 10_000,
            validate_only: false,
        };
        let result = connection.call(3, &request).results.remove(0);
        (result.error_code, result.error_message.unwrap_or_default())
    };
    let invalid = ErrorCode::INVALID_PARTITIONS;
    for (count, why) in [
        (2, "Topic already has 2 partition(s)."),
        (
            1,
            "The topic grows currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            -1,
            "The topic grows currently has 2 partition(s); -1 would not be an increase.",
        ),
    ] {
        assert_eq!(grow("grows", count, None), (invalid, why.to_owned()));
    }
    assert_eq!(
        grow("nowhere", 2, None).0,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
    assert_eq!(
        grow("grows", 4, Some(&[&[0]])),
        (
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."
                .to_owned()
        )
    );
    assert_eq!(grow("grows", 4, Some(&[&[0], &[0]])).0, ErrorCode::NONE);
    for partition in 0..4 {
        let answer = topic::produce(connection, "grows", partition, &[b"x".to_vec()]);
        assert_eq!(answer.error_code, ErrorCode::NONE);
    }
    let beyond = topic::produce(connection, "grows", 4, &[b"x".to_vec()]);
    assert_eq!(beyond.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn topics_are_described_page_by_page() {
    let broker = kaas().start();
    let connection = &mut broker.connect();
    for (name, partitions) in [("a", 2), ("b", 3), ("c", 1)] {
        topic::create(connection, name, partitions);
    }
    let mut cursor: Option<Cursor> = None;
    let mut seen = Vec::new();
    for page in 0.. {
        assert!(page < 10, "the pages do not end");
        let request = DescribeTopicPartitionsRequest {
            topics: Vec::new(),
            response_partition_limit: 2,
            cursor: cursor.take(),
        };
        let response = connection.call(0, &request);
        for topic in &response.topics {
            let name = topic.name.clone().unwrap();
            seen.extend(
                topic
                    .partitions
                    .iter()
                    .map(|partition| (name.clone(), partition.partition_index)),
            );
        }
        match response.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    let expected: Vec<(String, i32)> = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]
        .map(|(name, at)| (name.to_owned(), at))
        .into();
    assert_eq!(seen, expected);
    let unasked = DescribeTopicPartitionsRequest {
        topics: vec![TopicRequest {
            name: "a".to_owned(),
        }],
        response_partition_limit: 2,
        cursor: Some(Cursor {
            topic_name: "b".to_owned(),
            partition_index: 0,
        }),
    };
    assert_eq!(
        connection.call(0, &unasked).topics[0].error_code,
        ErrorCode::INVALID_REQUEST
    );
}

fn described(connection: &mut Connection, kind: i8, name: &str, key: &str) -> (Option<String>, i8) {
    let result = describe(connection, kind, name);
    assert_eq!(result.error_code, ErrorCode::NONE);
    let row = result
        .configs
        .into_iter()
        .find(|row| row.name == key)
        .expect("the key is described");
    (row.value, row.config_source)
}

fn describe(connection: &mut Connection, kind: i8, name: &str) -> DescribeConfigsResult {
    let resources = vec![DescribeConfigsResource {
        resource_type: kind,
        resource_name: name.to_owned(),
        configuration_keys: None,
    }];
    connection
        .call(
            4,
            &DescribeConfigsRequest {
                resources,
                ..Default::default()
            },
        )
        .results
        .remove(0)
}

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

fn alter(
    connection: &mut Connection,
    kind: i8,
    name: &str,
    changes: &[(&str, i8, Option<&str>)],
    validate_only: bool,
) -> (ErrorCode, String) {
    let configs = changes
        .iter()
        .map(|(name, config_operation, value)| AlterableConfig {
            name: (*name).to_owned(),
            config_operation: *config_operation,
            value: value.map(str::to_owned),
        })
        .collect();
    let resources = vec![AlterConfigsResource {
        resource_type: kind,
        resource_name: name.to_owned(),
        configs,
    }];
    let response = connection
        .call(
            1,
            &IncrementalAlterConfigsRequest {
                resources,
                validate_only,
            },
        )
        .responses
        .remove(0);
    (
        response.error_code,
        response.error_message.unwrap_or_default(),
    )
}

fn value(text: &str, source: i8) -> (Option<String>, i8) {
    (Some(text.to_owned()), source)
}

#[test]
fn a_topics_config_is_set_listed_deleted_and_kept_over_a_restart() {
    let mut broker = kaas().start();
    let connection = &mut broker.connect();
    let configs = vec![CreatableTopicConfig {
        name: "retention.ms".to_owned(),
        value: Some("12345".to_owned()),
    }];
    create(
        connection,
        vec![CreatableTopic {
            configs,
            ..creatable("cfg", 1, 1)
        }],
        false,
    );
    assert_eq!(
        described(connection, TOPIC, "cfg", "retention.ms"),
        value("12345", 1)
    );
    assert_eq!(
        described(connection, TOPIC, "cfg", "segment.bytes"),
        value("1073741824", 5)
    );
    let ok = (ErrorCode::NONE, String::new());
    let changes = [
        ("retention.ms", SET, Some("777")),
        ("cleanup.policy", APPEND, Some("compact")),
    ];
    assert_eq!(alter(connection, TOPIC, "cfg", &changes, true), ok);
    assert_eq!(
        described(connection, TOPIC, "cfg", "retention.ms"),
        value("12345", 1)
    );
    assert_eq!(alter(connection, TOPIC, "cfg", &changes, false), ok);
    assert_eq!(
        described(connection, TOPIC, "cfg", "cleanup.policy"),
        value("delete,compact", 1)
    );
    assert_eq!(
        alter(
            connection,
            TOPIC,
            "cfg",
            &[("cleanup.policy", SUBTRACT, Some("delete"))],
            false
        ),
        ok
    );
    broker.kill();
    broker.start_again();
    let connection = &mut broker.connect();
    assert_eq!(
        described(connection, TOPIC, "cfg", "retention.ms"),
        value("777", 1)
    );
    assert_eq!(
        described(connection, TOPIC, "cfg", "cleanup.policy"),
        value("compact", 1)
    );
    assert_eq!(
        alter(
            connection,
            TOPIC,
            "cfg",
            &[("retention.ms", DELETE, None)],
            false
        ),
        ok
    );
    assert_eq!(
        described(connection, TOPIC, "cfg", "retention.ms"),
        value("604800000", 5)
    );

    let replace = AlterConfigsRequest {
        resources: vec![alter_configs::AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: "cfg".to_owned(),
            configs: vec![alter_configs::AlterableConfig {
                name: "flush.ms".to_owned(),
                value: Some("9".to_owned()),
            }],
        }],
        validate_only: false,
    };
    assert_eq!(
        connection.call(2, &replace).responses[0].error_code,
        ErrorCode::NONE
    );
    assert_eq!(
        described(connection, TOPIC, "cfg", "flush.ms"),
        value("9", 1)
    );
    assert_eq!(
        described(connection, TOPIC, "cfg", "cleanup.policy"),
        value("delete", 5)
    );
}

#[test]
fn configs_that_cannot_be_altered_are_refused_in_kafkas_words() {
    let broker = shared();
    let connection = &mut broker.connect();
    let (config, request) = (ErrorCode::INVALID_CONFIG, ErrorCode::INVALID_REQUEST);
    for (kind, name, change, code, why) in [
        (
            TOPIC,
            "t",
            ("nope", SET, Some("1")),
            config,
            "Unknown topic config name: nope",
        ),
        (
            TOPIC,
            "t",
            ("retention.ms", SET, Some("x")),
            config,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (
            TOPIC,
            "t",
            ("retention.ms", APPEND, Some("1")),
            config,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            TOPIC,
            "t",
            ("retention.ms", SET, None),
            request,
            "Null value not supported for : retention.ms",
        ),
        (
            TOPIC,
            "t",
            ("retention.ms", 9, Some("1")),
            ErrorCode::UNKNOWN_SERVER_ERROR,
            "",
        ),
        (
            TOPIC,
            "nowhere",
            ("retention.ms", SET, Some("1")),
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'nowhere' does not exist.",
        ),
        (
            TOPIC,
            "",
            ("retention.ms", SET, Some("1")),
            request,
            "Default topic resources are not allowed.",
        ),
        (
            BROKER,
            "7",
            ("message.max.bytes", SET, Some("1")),
            request,
            "Unexpected broker id, expected 0, but received 7",
        ),
        (
            BROKER,
            "x",
            ("message.max.bytes", SET, Some("1")),
            request,
            "Node id must be an integer, but it is: x",
        ),
        (
            BROKER,
            "0",
            ("node.id", SET, Some("4")),
            request,
            "Cannot update these configs dynamically: [node.id]",
        ),
        (
            GROUP,
            "",
            ("consumer.session.timeout.ms", SET, Some("50000")),
            request,
            "Default group resources are not allowed.",
        ),
        (
            GROUP,
            "g",
            ("consumer.session.timeout.ms", SET, Some("1")),
            config,
            "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        (
            99,
            "q",
            ("a", SET, Some("1")),
            request,
            "Unknown resource type 99",
        ),
    ] {
        assert_eq!(
            alter(connection, kind, name, &[change], false),
            (code, why.to_owned()),
            "{name} {change:?}"
        );
    }
}

#[test]
fn a_brokers_config_reaches_its_logs_at_once_and_again_after_a_restart() {
    let mut broker = kaas().start();
    let connection = &mut broker.connect();
    topic::create(connection, "small", 1);
    let large = vec![vec![b'x'; 4000]];
    assert_eq!(
        topic::produce(connection, "small", 0, &large).error_code,
        ErrorCode::NONE
    );
    let set = [("message.max.bytes", SET, Some("1000"))];
    assert_eq!(
        alter(connection, BROKER, "", &set, false).0,
        ErrorCode::NONE
    );
    assert_eq!(
        topic::produce(connection, "small", 0, &large).error_code,
        ErrorCode::MESSAGE_TOO_LARGE
    );
    assert_eq!(
        described(connection, BROKER, "0", "message.max.bytes"),
        value("1000", 3)
    );
    assert_eq!(
        described(connection, TOPIC, "small", "max.message.bytes"),
        value("1000", 3)
    );
    broker.kill();
    broker.start_again();
    let connection = &mut broker.connect();
    assert_eq!(
        topic::produce(connection, "small", 0, &large).error_code,
        ErrorCode::MESSAGE_TOO_LARGE
    );
    assert_eq!(
        alter(
            connection,
            BROKER,
            "",
            &[("message.max.bytes", DELETE, None)],
            false
        )
        .0,
        ErrorCode::NONE
    );
    assert_eq!(
        topic::produce(connection, "small", 0, &large).error_code,
        ErrorCode::NONE
    );
}

#[test]
fn resources_with_configs_are_listed() {
    let broker = kaas().start();
    let connection = &mut broker.connect();
    topic::create(connection, "listed", 1);
    let set = [("consumer.session.timeout.ms", SET, Some("50000"))];
    assert_eq!(
        alter(connection, GROUP, "g", &set, false).0,
        ErrorCode::NONE
    );
    assert_eq!(
        described(connection, GROUP, "g", "consumer.session.timeout.ms"),
        value("50000", 8)
    );
    let mut list = |resource_types: Vec<i8>| {
        let response = connection.call(1, &ListConfigResourcesRequest { resource_types });
        let resources = response.config_resources.into_iter();
        (
            response.error_code,
            resources
                .map(|one| (one.resource_type, one.resource_name))
                .collect::<Vec<_>>(),
        )
    };
    let all = [(2, "listed"), (4, "0"), (8, "0"), (32, "g")]
        .map(|(kind, name)| (kind, name.to_owned()))
        .to_vec();
    assert_eq!(list(Vec::new()), (ErrorCode::NONE, all));
    assert_eq!(
        list(vec![GROUP]),
        (ErrorCode::NONE, vec![(32, "g".to_owned())])
    );
    assert_eq!(list(vec![99]), (ErrorCode::UNSUPPORTED_VERSION, Vec::new()));
}

#[test]
fn the_log_directory_tells_what_partitions_take_of_it() {
    let broker = shared();
    let connection = &mut broker.connect();
    topic::create(connection, "sized", 2);
    topic::produce(connection, "sized", 1, &[vec![b'x'; 100]]);
    let topics = Some(vec![
        DescribableLogDirTopic {
            topic: "sized".to_owned(),
            partitions: vec![0, 1, 7],
        },
        DescribableLogDirTopic {
            topic: "nowhere".to_owned(),
            partitions: vec![0],
        },
    ]);
    let result = connection
        .call(4, &DescribeLogDirsRequest { topics })
        .results
        .remove(0);
    assert_eq!(result.topics.len(), 1);
    let sizes: Vec<(i32, bool)> = result.topics[0]
        .partitions
        .iter()
        .map(|partition| (partition.partition_index, partition.partition_size > 100))
        .collect();
    assert_eq!(sizes, [(0, false), (1, true)]);
    assert!(result.usable_bytes > 0 && result.total_bytes > result.usable_bytes);
}

#[test]
fn a_topic_whose_file_is_torn_is_refused_and_the_others_are_served() {
    let mut broker = kaas().start();
    let connection = &mut broker.connect();
    topic::create(connection, "good", 1);
    topic::create(connection, "torn", 1);
    topic::produce(connection, "torn", 0, &[b"kept".to_vec()]);
    broker.kill();
    let file = broker.volume().join("__cluster/topics/torn.json");
    let whole = kaas_tests::files::read(&file).expect("a topic has a file");
    kaas_tests::files::write(&file, &whole[..whole.len() / 2]);
    broker.start_again();
    assert!(said(
        &broker,
        "topic file __cluster/topics/torn.json does not parse at line"
    ));
    let connection = &mut broker.connect();
    assert_eq!(
        topic::produce(connection, "good", 0, &[b"x".to_vec()]).error_code,
        ErrorCode::NONE
    );
    assert_eq!(
        metadata(connection, &["torn"], true).topics[0].error_code,
        ErrorCode::KAFKA_STORAGE_ERROR
    );
    let (code, why) = refusal(connection, creatable("torn", 1, 1));
    assert_eq!(code, ErrorCode::KAFKA_STORAGE_ERROR);
    assert!(why.contains("torn.json does not parse"), "{why}");
    // Mended, it has all it had.
    broker.kill();
    kaas_tests::files::write(&file, &whole);
    broker.start_again();
    assert_eq!(
        topic::read_all(&mut broker.connect(), "torn", 0),
        [(0, b"kept".to_vec())]
    );
}

fn said(broker: &Broker, text: &str) -> bool {
    broker
        .log()
        .wait_for(text, kaas_tests::time::SOON)
        .is_some()
}
