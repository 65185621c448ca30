//! CreateDelegationToken (key 38): issue a delegation token.

use bytes::Bytes;

use crate::ErrorCode;
use crate::message::message;

message! {
    CreateDelegationTokenRequest: key 38, versions 1..=3, flexible 2..;

    struct CreateDelegationTokenRequest {
        owner_principal_type: Option<String>,         3.., = Some(String::new());
        owner_principal_name: Option<String>,         3.., = Some(String::new());
        renewers:             Vec<CreatableRenewers>, 0..;
        max_lifetime_ms:      i64,                    0..;
    }

    struct CreatableRenewers {
        principal_type: String, 0..;
        principal_name: String, 0..;
    }
}

message! {
    CreateDelegationTokenResponse: key 38, versions 1..=3, flexible 2..;

    struct CreateDelegationTokenResponse {
        error_code:                     ErrorCode, 0..;
        principal_type:                 String,    0..;
        principal_name:                 String,    0..;
        token_requester_principal_type: String,    3..;
        token_requester_principal_name: String,    3..;
        issue_timestamp_ms:             i64,       0..;
        expiry_timestamp_ms:            i64,       0..;
        max_timestamp_ms:               i64,       0..;
        token_id:                       String,    0..;
        hmac:                           Bytes,     0..;
        throttle_time_ms:               i32,       0..;
    }
}
