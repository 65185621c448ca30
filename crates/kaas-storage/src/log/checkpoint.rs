//! `checkpoint.json` in a partition's directory: what the log knew at a durable offset, so that opening it reads only
//! what came later. Losing it costs a scan. `log-start-offset.json` is what DeleteRecords left, and must not be lost.

use serde::{Deserialize, Serialize};

use super::producers::{AbortedTransaction, Producer};
use super::segment::Facts;
use crate::error::StorageError;
use crate::session::Session;
use crate::volume::Volume;

const CHECKPOINT: &str = "checkpoint.json";
const LOG_START_OFFSET: &str = "log-start-offset.json";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// All batches below it are on the disk, valid, and taken into account here.
    pub offset: i64,
    /// Oldest first; the last is the one that `offset` lies in or ends.
    pub segments: Vec<CheckpointedSegment>,
    pub producers: Vec<Producer>,
    pub aborted: Vec<AbortedTransaction>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckpointedSegment {
    pub name: String,
    #[serde(flatten)]
    pub facts: Facts,
}

#[derive(Serialize, Deserialize)]
struct LogStartOffset {
    log_start_offset: i64,
}

/// `None` if there is none that can be used.
pub(crate) fn read_checkpoint(
    volume: &dyn Volume,
    dir: &str,
) -> Result<Option<Checkpoint>, StorageError> {
    let Some(bytes) = read(volume, dir, CHECKPOINT)? else {
        return Ok(None);
    };
    match serde_json::from_slice(&bytes) {
        Ok(checkpoint) => Ok(Some(checkpoint)),
        Err(error) => {
            tracing::warn!(dir, %error, "the checkpoint does not parse, so the whole log is read");
            Ok(None)
        }
    }
}

pub(crate) fn publish_checkpoint(
    session: &Session,
    dir: &str,
    checkpoint: &Checkpoint,
) -> Result<(), StorageError> {
    let bytes =
        serde_json::to_vec(checkpoint).expect("a checkpoint holds nothing that JSON cannot");
    session.publish(&format!("{dir}/{CHECKPOINT}"), &bytes)
}

pub(crate) fn read_log_start(volume: &dyn Volume, dir: &str) -> Result<i64, StorageError> {
    let Some(bytes) = read(volume, dir, LOG_START_OFFSET)? else {
        return Ok(0);
    };
    match serde_json::from_slice(&bytes) {
        Ok(LogStartOffset { log_start_offset }) => Ok(log_start_offset),
        Err(error) => Err(StorageError::Corrupt {
            path: format!("{dir}/{LOG_START_OFFSET}"),
            why: format!("it does not parse: {error}"),
            remedy: "move it aside to make deleted records readable again".to_owned(),
        }),
    }
}

pub(crate) fn publish_log_start(
    session: &Session,
    dir: &str,
    log_start_offset: i64,
) -> Result<(), StorageError> {
    let bytes =
        serde_json::to_vec(&LogStartOffset { log_start_offset }).expect("an integer is JSON");
    session.publish(&format!("{dir}/{LOG_START_OFFSET}"), &bytes)
}

fn read(volume: &dyn Volume, dir: &str, name: &str) -> Result<Option<Vec<u8>>, StorageError> {
    let path = format!("{dir}/{name}");
    match volume.read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StorageError::from_io("read", &path, error)),
    }
}
