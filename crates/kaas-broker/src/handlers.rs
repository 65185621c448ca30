//! One API, one file: the versions served and the handler, which reads top to bottom as the order of validation.

pub mod api_versions;
pub mod delete_groups;
pub mod describe_groups;
pub mod heartbeat;
pub mod join_group;
pub mod leave_group;
pub mod list_groups;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod sync_group;
