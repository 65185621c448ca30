//! What can go wrong with the volume, by what to do about it.

use std::io;
use std::sync::Arc;

use rustix::io::Errno;

/// A failed operation on the volume. Cheap to clone, so that everyone who waited for one write can be told.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// This session can publish nothing any more: stop acknowledging and register again with a new session.
    #[error(
        "session {session} is fenced, another broker or controller has taken over; register again with a new session"
    )]
    Fenced { session: String },
    /// Nothing was lost; the same operation succeeds once there is room.
    #[error("no space left on the volume to {op} {path}; free space or raise the quota")]
    Full {
        op: &'static str,
        path: String,
        source: Arc<io::Error>,
    },
    #[error("cannot {op} {path}: {source}")]
    Io {
        op: &'static str,
        path: String,
        source: Arc<io::Error>,
    },
    /// What lies on the volume is not what was written there; an operator has to decide.
    #[error("{path}: {why}; {remedy}")]
    Corrupt {
        path: String,
        why: String,
        remedy: String,
    },
    /// The mount breaks the volume contract, so the broker must not start.
    #[error("the volume at {root} cannot be used: {why}; {remedy}")]
    Mount {
        root: String,
        why: String,
        remedy: String,
    },
}

impl StorageError {
    /// Sorts a failed system call: no room is `Full`, everything else `Io`.
    pub fn from_io(op: &'static str, path: &str, source: io::Error) -> StorageError {
        let path = path.to_owned();
        let full = is_full(&source);
        let source = Arc::new(source);
        if full {
            StorageError::Full { op, path, source }
        } else {
            StorageError::Io { op, path, source }
        }
    }

    pub fn is_fenced(&self) -> bool {
        matches!(self, StorageError::Fenced { .. })
    }

    pub fn is_full(&self) -> bool {
        matches!(self, StorageError::Full { .. })
    }

    /// Whether the operation failed because the name does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, StorageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOSPC | Errno::DQUOT)
    )
}

/// Whether an operation on a *name* inside the own session directory failed in a way that means the directory is no
/// longer ours: somebody drained it, its handle is stale, or the outcome cannot be known.
pub(crate) fn is_fence(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::STALE | Errno::IO)
    )
}

/// Whether an operation on an open *file* of the own session failed because the file is gone. An `EIO` here is a failed
/// write, which seals the file and does not end the session.
pub(crate) fn is_stale(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::STALE))
}
