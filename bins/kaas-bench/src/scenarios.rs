//! One scenario, one file. Each takes its settings, sets up what it needs, measures, and checks.

pub mod commit;
pub mod produce_fetch;
pub mod steady;
