//! The value of a transaction marker: a version in 16 bits, then this.

use crate::message::message;

message! {
    EndTxnMarker: versions 0..=0;

    struct EndTxnMarker {
        coordinator_epoch: i32, 0..;
    }
}
