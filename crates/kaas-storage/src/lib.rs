//! The shared volume, sessions on it, the journal, and the partition log.
