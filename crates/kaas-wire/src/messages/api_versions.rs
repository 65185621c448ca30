//! ApiVersions (key 18): the apis and versions a broker serves, and its features.

use crate::ErrorCode;
use crate::message::message;

message! {
    ApiVersionsRequest: key 18, versions 0..=5, flexible 3..;

    struct ApiVersionsRequest {
        client_software_name:    String,         3..;
        client_software_version: String,         3..;
        cluster_id:              Option<String>, 5..;
        node_id:                 i32,            5.., = -1;
    }
}

message! {
    ApiVersionsResponse: key 18, versions 0..=5, flexible 3..;

    struct ApiVersionsResponse {
        error_code:       ErrorCode,       0..;
        api_keys:         Vec<ApiVersion>, 0..;
        throttle_time_ms: i32,             1..;
    }
    tagged {
        0: supported_features:       Vec<SupportedFeatureKey>, 3..;
        1: finalized_features_epoch: i64,                      3.., = -1;
        2: finalized_features:       Vec<FinalizedFeatureKey>, 3..;
        3: zk_migration_ready:       bool,                     3..;
    }

    struct ApiVersion {
        api_key:     i16, 0..;
        min_version: i16, 0..;
        max_version: i16, 0..;
    }

    struct SupportedFeatureKey {
        name:        String, 3..;
        min_version: i16,    3..;
        max_version: i16,    3..;
    }

    struct FinalizedFeatureKey {
        name:              String, 3..;
        max_version_level: i16,    3..;
        min_version_level: i16,    3..;
    }
}
