//! UpdateFeatures (key 57): raise or lower finalized feature levels.

use crate::ErrorCode;
use crate::message::message;

message! {
    UpdateFeaturesRequest: key 57, versions 0..=2, flexible 0..;

    struct UpdateFeaturesRequest {
        timeout_ms:      i32,                   0.., = 60000;
        feature_updates: Vec<FeatureUpdateKey>, 0..;
        validate_only:   bool,                  1..;
    }

    struct FeatureUpdateKey {
        feature:           String, 0..;
        max_version_level: i16,    0..;
        allow_downgrade:   bool,   0..=0;
        upgrade_type:      i8,     1.., = 1;
    }
}

message! {
    UpdateFeaturesResponse: key 57, versions 0..=2, flexible 0..;

    struct UpdateFeaturesResponse {
        throttle_time_ms: i32,                         0..;
        error_code:       ErrorCode,                   0..;
        error_message:    Option<String>,              0.., = Some(String::new());
        results:          Vec<UpdatableFeatureResult>, 0..=1;
    }

    struct UpdatableFeatureResult {
        feature:       String,         0..;
        error_code:    ErrorCode,      0..;
        error_message: Option<String>, 0.., = Some(String::new());
    }
}
