//! The value of a transaction marker, behind its version.

use crate::message::message;

message! {
    EndTxnMarker: versions 0..=0;

    struct EndTxnMarker {
        coordinator_epoch: i32, 0..;
    }
}
