//! The shared volume, sessions on it, the journal, and the partition log.
//!
//! Everything a broker knows lies on one POSIX file system that all brokers mount. `volume` is the only module that
//! talks to it; `session` makes a paused or dead broker's late writes harmless; `journal` makes changes durable at the
//! price of one fsync a batch. Nothing here knows about networks, clocks or who owns what.

pub mod error;
pub mod journal;
pub mod layout;
pub mod log;
pub mod session;
pub mod volume;

pub use error::StorageError;
