//! What the suites of the real process share: a broker process of one's own, raw connections to it, members of groups,
//! and the waiting that they need. The suites themselves are in `bins/kaas/tests/`, because only there cargo builds the
//! program before the tests and tells them where it is.

pub mod admin;
pub mod broker;
pub mod connection;
pub mod dice;
pub mod disk;
pub mod files;
pub mod log;
pub mod member;
pub mod requests;
pub mod time;
pub mod topic;
