//! DescribeConfigs (key 32): the configuration of topics, brokers and groups.

use crate::ErrorCode;
use crate::message::message;

message! {
    DescribeConfigsRequest: key 32, versions 1..=4, flexible 4..;

    struct DescribeConfigsRequest {
        resources:             Vec<DescribeConfigsResource>, 0..;
        include_synonyms:      bool,                         1..;
        include_documentation: bool,                         3..;
    }

    struct DescribeConfigsResource {
        resource_type:      i8,                  0..;
        resource_name:      String,              0..;
        configuration_keys: Option<Vec<String>>, 0.., = Some(Vec::new());
    }
}

message! {
    DescribeConfigsResponse: key 32, versions 1..=4, flexible 4..;

    struct DescribeConfigsResponse {
        throttle_time_ms: i32,                        0..;
        results:          Vec<DescribeConfigsResult>, 0..;
    }

    struct DescribeConfigsResult {
        error_code:    ErrorCode,                          0..;
        error_message: Option<String>,                     0.., = Some(String::new());
        resource_type: i8,                                 0..;
        resource_name: String,                             0..;
        configs:       Vec<DescribeConfigsResourceResult>, 0..;
    }

    struct DescribeConfigsResourceResult {
        name:          String,                      0..;
        value:         Option<String>,              0.., = Some(String::new());
        read_only:     bool,                        0..;
        config_source: i8,                          1.., = -1;
        is_sensitive:  bool,                        0..;
        synonyms:      Vec<DescribeConfigsSynonym>, 1..;
        config_type:   i8,                          3..;
        documentation: Option<String>,              3.., null 0.., = Some(String::new());
    }

    struct DescribeConfigsSynonym {
        name:   String,         1..;
        value:  Option<String>, 1.., null 0.., = Some(String::new());
        source: i8,             1..;
    }
}
