//! CreateTopics (key 19): create topics.

use crate::message::message;
use crate::{ErrorCode, Uuid};

message! {
    CreateTopicsRequest: key 19, versions 2..=7, flexible 5..;

    struct CreateTopicsRequest {
        topics:        Vec<CreatableTopic>, 0..;
        timeout_ms:    i32,                 0.., = 60000;
        validate_only: bool,                1..;
    }

    struct CreatableTopic {
        name:               String,                          0..;
        num_partitions:     i32,                             0..;
        replication_factor: i16,                             0..;
        assignments:        Vec<CreatableReplicaAssignment>, 0..;
        configs:            Vec<CreatableTopicConfig>,       0..;
    }

    struct CreatableReplicaAssignment {
        partition_index: i32,      0..;
        broker_ids:      Vec<i32>, 0..;
    }

    struct CreatableTopicConfig {
        name:  String,         0..;
        value: Option<String>, 0.., = Some(String::new());
    }
}

message! {
    CreateTopicsResponse: key 19, versions 2..=7, flexible 5..;

    struct CreateTopicsResponse {
        throttle_time_ms: i32,                       2..;
        topics:           Vec<CreatableTopicResult>, 0..;
    }

    struct CreatableTopicResult {
        name:               String,                             0..;
        topic_id:           Uuid,                               7..;
        error_code:         ErrorCode,                          0..;
        error_message:      Option<String>,                     1.., null 0.., = Some(String::new());
        num_partitions:     i32,                                5.., = -1;
        replication_factor: i16,                                5.., = -1;
        configs:            Option<Vec<CreatableTopicConfigs>>, 5.., = Some(Vec::new());
    }
    tagged {
        0: topic_config_error_code: i16, 5..;
    }

    struct CreatableTopicConfigs {
        name:          String,         5..;
        value:         Option<String>, 5.., = Some(String::new());
        read_only:     bool,           5..;
        config_source: i8,             5.., = -1;
        is_sensitive:  bool,           5..;
    }
}
