//! DescribeDelegationToken (key 41): the delegation tokens of some owners.

use bytes::Bytes;

use crate::ErrorCode;
use crate::message::message;

message! {
    DescribeDelegationTokenRequest: key 41, versions 1..=3, flexible 2..;

    struct DescribeDelegationTokenRequest {
        owners: Option<Vec<DescribeDelegationTokenOwner>>, 0.., = Some(Vec::new());
    }

    struct DescribeDelegationTokenOwner {
        principal_type: String, 0..;
        principal_name: String, 0..;
    }
}

message! {
    DescribeDelegationTokenResponse: key 41, versions 1..=3, flexible 2..;

    struct DescribeDelegationTokenResponse {
        error_code:       ErrorCode,                     0..;
        tokens:           Vec<DescribedDelegationToken>, 0..;
        throttle_time_ms: i32,                           0..;
    }

    struct DescribedDelegationToken {
        principal_type:                 String,                               0..;
        principal_name:                 String,                               0..;
        token_requester_principal_type: String,                               3..;
        token_requester_principal_name: String,                               3..;
        issue_timestamp:                i64,                                  0..;
        expiry_timestamp:               i64,                                  0..;
        max_timestamp:                  i64,                                  0..;
        token_id:                       String,                               0..;
        hmac:                           Bytes,                                0..;
        renewers:                       Vec<DescribedDelegationTokenRenewer>, 0..;
    }

    struct DescribedDelegationTokenRenewer {
        principal_type: String, 0..;
        principal_name: String, 0..;
    }
}
