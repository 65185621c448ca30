//! The groups' files: `__cluster/__consumer_offsets/<group>.json`, read whole and published whole. Blocks.

use std::io;

use kaas_coordinator::GroupDocument;
use kaas_storage::StorageError;
use kaas_storage::layout::{GROUPS, file_name};
use kaas_storage::session::Session;
use kaas_storage::volume::Volume;

/// The ending of a group's file.
const JSON: &str = ".json";

pub fn path_of(group: &str) -> String {
    format!("{GROUPS}/{}{JSON}", file_name(group))
}

/// The group's document as the volume has it now; `None` when there is no file. A file that cannot be read or that is
/// another group's is an error, never an empty group.
pub fn read(volume: &dyn Volume, group: &str) -> Result<Option<GroupDocument>, StorageError> {
    let path = path_of(group);
    let Some(document) = read_path(volume, &path)? else {
        return Ok(None);
    };
    if document.group_id != group {
        return Err(corrupt(
            &path,
            format!("it is the document of group {:?}", document.group_id),
        ));
    }
    Ok(Some(document))
}

/// Every group's file name there is, in order.
pub fn list(volume: &dyn Volume) -> Result<Vec<String>, StorageError> {
    let entries = volume
        .list_fresh(GROUPS)
        .map_err(|error| StorageError::from_io("list", GROUPS, error))?;
    let mut names: Vec<String> = entries
        .into_iter()
        .filter(|entry| !entry.is_dir && entry.name.ends_with(JSON))
        .map(|entry| entry.name)
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// The document in a file that `list` named; `None` when it is gone since.
pub fn read_listed(volume: &dyn Volume, name: &str) -> Result<Option<GroupDocument>, StorageError> {
    let path = format!("{GROUPS}/{name}");
    let Some(document) = read_path(volume, &path)? else {
        return Ok(None);
    };
    if path_of(&document.group_id) != path {
        return Err(corrupt(
            &path,
            format!(
                "it is the document of group {:?}, whose file is {}",
                document.group_id,
                path_of(&document.group_id)
            ),
        ));
    }
    Ok(Some(document))
}

fn read_path(volume: &dyn Volume, path: &str) -> Result<Option<GroupDocument>, StorageError> {
    let bytes = match volume.read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StorageError::from_io("read", path, error)),
    };
    match GroupDocument::from_json(&bytes) {
        Ok(document) => Ok(Some(document)),
        Err(error) => Err(corrupt(path, error.to_string())),
    }
}

fn corrupt(path: &str, why: String) -> StorageError {
    StorageError::Corrupt {
        path: path.to_owned(),
        why,
        remedy: "restore it from a backup, or move it aside to start the group empty".to_owned(),
    }
}

/// One operation on a group's file.
pub enum Operation {
    Publish(Vec<u8>),
    Remove,
}

pub fn perform(session: &Session, group: &str, operation: &Operation) -> Result<(), StorageError> {
    let path = path_of(group);
    match operation {
        Operation::Publish(json) => session.publish(&path, json),
        Operation::Remove => session.retire(&path).map(drop),
    }
}
