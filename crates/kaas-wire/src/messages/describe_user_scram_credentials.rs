//! DescribeUserScramCredentials (key 50): the SCRAM mechanisms users have credentials for.

use crate::ErrorCode;
use crate::message::message;

message! {
    DescribeUserScramCredentialsRequest: key 50, versions 0..=0, flexible 0..;

    struct DescribeUserScramCredentialsRequest {
        users: Option<Vec<UserName>>, 0.., = Some(Vec::new());
    }

    struct UserName {
        name: String, 0..;
    }
}

message! {
    DescribeUserScramCredentialsResponse: key 50, versions 0..=0, flexible 0..;

    struct DescribeUserScramCredentialsResponse {
        throttle_time_ms: i32,                                     0..;
        error_code:       ErrorCode,                               0..;
        error_message:    Option<String>,                          0.., = Some(String::new());
        results:          Vec<DescribeUserScramCredentialsResult>, 0..;
    }

    struct DescribeUserScramCredentialsResult {
        user:             String,              0..;
        error_code:       ErrorCode,           0..;
        error_message:    Option<String>,      0.., = Some(String::new());
        credential_infos: Vec<CredentialInfo>, 0..;
    }

    struct CredentialInfo {
        mechanism:  i8,  0..;
        iterations: i32, 0..;
    }
}
