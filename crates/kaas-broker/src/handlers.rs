//! One API, one file: the versions served and the handler, which reads top to bottom as the order of validation.

pub mod api_versions;
