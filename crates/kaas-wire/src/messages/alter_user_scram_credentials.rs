//! AlterUserScramCredentials (key 51): set or delete SCRAM credentials.

use bytes::Bytes;

use crate::ErrorCode;
use crate::message::message;

message! {
    AlterUserScramCredentialsRequest: key 51, versions 0..=0, flexible 0..;

    struct AlterUserScramCredentialsRequest {
        deletions:  Vec<ScramCredentialDeletion>,  0..;
        upsertions: Vec<ScramCredentialUpsertion>, 0..;
    }

    struct ScramCredentialDeletion {
        name:      String, 0..;
        mechanism: i8,     0..;
    }

    struct ScramCredentialUpsertion {
        name:            String, 0..;
        mechanism:       i8,     0..;
        iterations:      i32,    0..;
        salt:            Bytes,  0..;
        salted_password: Bytes,  0..;
    }
}

message! {
    AlterUserScramCredentialsResponse: key 51, versions 0..=0, flexible 0..;

    struct AlterUserScramCredentialsResponse {
        throttle_time_ms: i32,                                  0..;
        results:          Vec<AlterUserScramCredentialsResult>, 0..;
    }

    struct AlterUserScramCredentialsResult {
        user:          String,         0..;
        error_code:    ErrorCode,      0..;
        error_message: Option<String>, 0.., = Some(String::new());
    }
}
