//! Suites against the real process, over raw connections. Tests share a process where they do not disturb each other;
//! it goes away with the last of them.

mod crash;
mod full_disk;
mod groups;
mod operation;
mod records;
mod samples;
mod topics;
mod wire;

use std::sync::{Arc, Mutex, Weak};

use kaas_tests::broker::{Broker, Setup};
use kaas_tests::topic;

/// A broker of the program under test.
fn kaas() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_kaas"))
}

/// Where tests of groups have short timeouts and rounds begin at once.
fn quick() -> Setup {
    kaas()
        .set("group.initial.rebalance.delay.ms", 0)
        .set("group.min.session.timeout.ms", 1)
        .set("kaas.offsets.file.interval.ms", 50)
}

/// The `quick` broker that tests share, with a topic `t` of four partitions.
fn shared() -> Arc<Broker> {
    static SHARED: Mutex<Weak<Broker>> = Mutex::new(Weak::new());
    let mut shared = SHARED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(broker) = shared.upgrade() {
        return broker;
    }
    let broker = Arc::new(quick().start());
    topic::create(&mut broker.connect(), "t", 4);
    *shared = Arc::downgrade(&broker);
    broker
}
