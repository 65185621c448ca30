//! Sessions: one process's life on the volume, with its own directory S under `__cluster/sessions/`.
//!
//! Shared names change only by renames out of S or into S, so whoever drains S and removes it (`fence`) has ended
//! everything its owner might still be about to publish, without clocks and however long the owner was paused. Names
//! inside S are used once. The journal and the log build on `create_in`, `publish_file` and `verify`.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use crate::error::{StorageError, is_fence, is_stale};
use crate::layout::{EPOCHS, JOURNALS, SESSIONS, TRASH};
use crate::volume::{Volume, VolumeFile, parent};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionKind {
    Broker,
    Controller,
}

/// `b<node id>.<uuid>` or `ctl.<node id>.<uuid>`: the name of a session's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionName {
    pub kind: SessionKind,
    pub node_id: i32,
    pub uuid: Uuid,
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.kind {
            SessionKind::Broker => "b",
            SessionKind::Controller => "ctl.",
        };
        write!(f, "{prefix}{}.{}", self.node_id, self.uuid.as_hyphenated())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a session")]
pub struct NotASession;

impl FromStr for SessionName {
    type Err = NotASession;

    fn from_str(name: &str) -> Result<SessionName, NotASession> {
        let (kind, rest) = if let Some(rest) = name.strip_prefix("ctl.") {
            (SessionKind::Controller, rest)
        } else {
            (
                SessionKind::Broker,
                name.strip_prefix('b').ok_or(NotASession)?,
            )
        };
        let (node_id, uuid) = rest.split_once('.').ok_or(NotASession)?;
        Ok(SessionName {
            kind,
            node_id: node_id.parse().map_err(|_| NotASession)?,
            uuid: Uuid::try_parse(uuid).map_err(|_| NotASession)?,
        })
    }
}

/// The own session. All methods may be called from any thread.
///
/// Every operation on the own directory that fails in a way a fence would make it fail (`ENOENT`, `ESTALE`, `EIO`) ends
/// the session for good: the error is `Fenced`, and so is every later call's, without another system call.
pub struct Session {
    volume: Arc<dyn Volume>,
    name: SessionName,
    dir: String,
    next_name: AtomicU64,
    fenced: AtomicBool,
    token: Mutex<Token>,
    token_moved: Condvar,
}

/// The token file `tok.<current>`; its rename proves that nobody had fenced the session when the rename started.
struct Token {
    /// The number it has on disk.
    current: u64,
    /// The number the last rename that was begun gives it; numbers are never used twice.
    started: u64,
    renaming: bool,
}

impl Session {
    /// Makes the session's directory, durably. A broker fences the other sessions of its node id first
    /// (`fence_others_of_node` with this name), a controller those of all controllers.
    pub fn create(
        volume: Arc<dyn Volume>,
        kind: SessionKind,
        node_id: i32,
        uuid: Uuid,
    ) -> Result<Session, StorageError> {
        let name = SessionName {
            kind,
            node_id,
            uuid,
        };
        let dir = format!("{SESSIONS}/{name}");
        let fail = |error| StorageError::from_io("create the session", &dir, error);
        volume.create_dir(&dir).map_err(fail)?;
        volume.create(&token_path(&dir, 0)).map_err(fail)?;
        volume.sync_dir(&dir).map_err(fail)?;
        volume.sync_dir(SESSIONS).map_err(fail)?;
        Ok(Session {
            volume,
            name,
            dir,
            next_name: AtomicU64::new(1),
            fenced: AtomicBool::new(false),
            token: Mutex::new(Token {
                current: 0,
                started: 0,
                renaming: false,
            }),
            token_moved: Condvar::new(),
        })
    }

    pub fn name(&self) -> SessionName {
        self.name
    }

    pub fn volume(&self) -> &Arc<dyn Volume> {
        &self.volume
    }

    /// The path of a name inside the session's directory.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.dir)
    }

    pub fn is_fenced(&self) -> bool {
        self.fenced.load(Ordering::Acquire)
    }

    /// Ends the session from inside: for an owner that cannot tell whether its last write happened.
    pub fn give_up(&self) {
        self.fenced.store(true, Ordering::Release);
        self.token_moved.notify_all();
    }

    fn check(&self) -> Result<(), StorageError> {
        if self.is_fenced() {
            Err(self.fenced_error())
        } else {
            Ok(())
        }
    }

    fn fenced_error(&self) -> StorageError {
        StorageError::Fenced {
            session: self.name.to_string(),
        }
    }

    /// What a failed operation on a name in the own directory means.
    fn own_name_failed(&self, op: &'static str, path: &str, error: io::Error) -> StorageError {
        if is_fence(&error) {
            tracing::warn!(session = %self.name, op, path, %error, "this session is fenced");
            self.give_up();
            return self.fenced_error();
        }
        StorageError::from_io(op, path, error)
    }

    /// What a failed operation on an open file of this session means: gone (`ESTALE`) is a fence, a failed write is not.
    pub fn own_file_failed(&self, op: &'static str, path: &str, error: io::Error) -> StorageError {
        if is_stale(&error) {
            return self.own_name_failed(op, path, error);
        }
        StorageError::from_io(op, path, error)
    }

    /// A new file `<n>.<suffix>` in the own directory, with its path: a shared file is born here and renamed out with
    /// `publish_file`, an own file stays.
    pub fn create_in(&self, suffix: &str) -> Result<(String, Arc<dyn VolumeFile>), StorageError> {
        self.create_named(&format!("{}.{suffix}", self.unused()))
    }

    /// As `create_in`, under a name the caller never uses again.
    pub(crate) fn create_named(
        &self,
        name: &str,
    ) -> Result<(String, Arc<dyn VolumeFile>), StorageError> {
        self.check()?;
        let path = self.path(name);
        match self.volume.create(&path) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(self.own_name_failed("create", &path, error)),
        }
    }

    fn unused(&self) -> u64 {
        self.next_name.fetch_add(1, Ordering::Relaxed)
    }

    /// Replaces a shared file by `bytes`, durably: when this returns, nobody had fenced the session before the rename.
    /// After a failure other than `Fenced` the file holds the old or the new content; try again with a new `publish`.
    pub fn publish(&self, path: &str, bytes: &[u8]) -> Result<(), StorageError> {
        let (draft, file) = self.create_in("tmp")?;
        let written = file.write_at(bytes, 0).and_then(|()| file.sync());
        if let Err(error) = written {
            // Only to give room back; what cannot be removed here goes with the session.
            let _ = self.volume.remove_file(&draft);
            return Err(self.own_file_failed("write", path, error));
        }
        self.publish_file(&draft, path)
    }

    /// Moves a file of the own directory, whose content is already durable, to a shared name, durably.
    pub fn publish_file(&self, draft: &str, path: &str) -> Result<(), StorageError> {
        self.check()?;
        if let Err(error) = self.volume.rename(draft, path) {
            if error.kind() == io::ErrorKind::NotFound && self.still_has(draft) {
                return Err(StorageError::from_io("publish", path, error));
            }
            return Err(self.own_name_failed("publish", path, error));
        }
        self.sync_shared(parent(path))
    }

    /// Whether a draft whose rename said `ENOENT` is still there, so that the *target's* directory is what is missing.
    /// Names are used once: a draft that was drained does not come back, so what is seen now was true then.
    fn still_has(&self, draft: &str) -> bool {
        self.volume.exists_fresh(draft).unwrap_or(false)
    }

    /// Deletes a shared file or directory, durably, and says whether it was there. It is moved into the own directory
    /// and removed there, so that a fenced session deletes nothing.
    pub fn retire(&self, path: &str) -> Result<bool, StorageError> {
        self.check()?;
        let grave = self.path(&format!("{}.del", self.unused()));
        let was_there = match self.volume.rename(path, &grave) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Either the name or our directory is gone; only the token can tell.
                self.verify()?;
                false
            }
            Err(error) => return Err(self.own_name_failed("retire", path, error)),
        };
        self.sync_shared(parent(path))?;
        if was_there {
            // Only room is at stake: what stays here goes to the trash with the session.
            if let Err(error) = remove_tree(&*self.volume, &grave) {
                tracing::debug!(path = grave, %error, "a retired file could not be removed yet");
            }
        }
        Ok(was_there)
    }

    fn sync_shared(&self, dir: &str) -> Result<(), StorageError> {
        self.volume
            .sync_dir(dir)
            .map_err(|error| StorageError::from_io("sync the directory", dir, error))
    }

    /// Makes the names in the own directory durable.
    pub(crate) fn sync_own_names(&self) -> Result<(), StorageError> {
        self.check()?;
        self.volume
            .sync_dir(&self.dir)
            .map_err(|error| self.own_name_failed("sync the directory", &self.dir, error))
    }

    /// Removes a file of the own directory; not durable before `sync_own_names`.
    pub(crate) fn remove_own(&self, path: &str) -> Result<(), StorageError> {
        self.check()?;
        self.volume
            .remove_file(path)
            .map_err(|error| self.own_name_failed("remove", path, error))
    }

    /// Proves that nobody had fenced this session when the call began: the second half of every acknowledgement, after
    /// the sync. One rename answers all callers that came before it started.
    pub fn verify(&self) -> Result<(), StorageError> {
        let mut token = self.token.lock();
        let wanted = token.started + 1;
        loop {
            self.check()?;
            if token.current >= wanted {
                return Ok(());
            }
            if token.renaming {
                self.token_moved.wait(&mut token);
                continue;
            }
            token.renaming = true;
            token.started += 1;
            let (old, new) = (token.current, token.started);
            let (from, to) = (token_path(&self.dir, old), token_path(&self.dir, new));
            let renamed =
                parking_lot::MutexGuard::unlocked(&mut token, || self.volume.rename(&from, &to));
            token.renaming = false;
            self.token_moved.notify_all();
            match renamed {
                Ok(()) => token.current = new,
                Err(error) => return Err(self.own_name_failed("move the token", &to, error)),
            }
        }
    }
}

fn token_path(dir: &str, number: u64) -> String {
    format!("{dir}/tok.{number}")
}

/// All sessions there are, as the volume has them now.
pub fn list_sessions(volume: &dyn Volume) -> Result<Vec<SessionName>, StorageError> {
    let entries = volume
        .list_fresh(SESSIONS)
        .map_err(|error| StorageError::from_io("list", SESSIONS, error))?;
    let mut sessions: Vec<SessionName> = entries
        .iter()
        .filter_map(|entry| entry.name.parse().ok())
        .collect();
    sessions.sort_by_key(|session| (session.node_id, session.uuid));
    Ok(sessions)
}

/// Ends another session: when this returns, no rename out of it can succeed ever again, and its journal's segments lie
/// in `journals/`. Any number of fencers may run at once, and a fence cut short is finished by calling it again.
pub fn fence(volume: &dyn Volume, session: SessionName) -> Result<(), StorageError> {
    let dir = format!("{SESSIONS}/{session}");
    loop {
        let entries = match volume.list_fresh(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(StorageError::from_io("list", &dir, error)),
        };
        for entry in entries {
            let from = format!("{dir}/{}", entry.name);
            let to = match segment_number(&entry.name) {
                Some(number) => format!("{JOURNALS}/{session}.{number}"),
                None => format!("{TRASH}/{session}.{}", entry.name),
            };
            match volume.rename(&from, &to) {
                Ok(()) => {}
                // Its owner renamed it, or another fencer was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StorageError::from_io("fence", &from, error)),
            }
        }
        // Before the directory goes, so that no crash keeps its removal and forgets where its journal went.
        sync(volume, JOURNALS)?;
        match volume.remove_dir(&dir) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            // Its owner made another name since.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) => return Err(StorageError::from_io("fence", &dir, error)),
        }
    }
    sync(volume, SESSIONS)
}

fn sync(volume: &dyn Volume, dir: &str) -> Result<(), StorageError> {
    volume
        .sync_dir(dir)
        .map_err(|error| StorageError::from_io("sync the directory", dir, error))
}

/// The number of a journal segment `j.<n>`.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    name.strip_prefix("j.")?.parse().ok()
}

/// Ends every other session of a broker's node id (rule 10: before it serves under a new one). Says which there were.
pub fn fence_others_of_node(
    volume: &dyn Volume,
    mine: SessionName,
) -> Result<Vec<SessionName>, StorageError> {
    fence_until_alone(volume, mine, |other| {
        other.kind == mine.kind && other.node_id == mine.node_id
    })
}

/// Ends every other controller's session (rule 9: before it reads the assignment). Says which there were.
pub fn fence_other_controllers(
    volume: &dyn Volume,
    mine: SessionName,
) -> Result<Vec<SessionName>, StorageError> {
    fence_until_alone(volume, mine, |other| other.kind == SessionKind::Controller)
}

fn fence_until_alone(
    volume: &dyn Volume,
    mine: SessionName,
    rival: impl Fn(&SessionName) -> bool,
) -> Result<Vec<SessionName>, StorageError> {
    let mut fenced = Vec::new();
    loop {
        let sessions = list_sessions(volume)?;
        if !sessions.contains(&mine) {
            return Err(StorageError::Fenced {
                session: mine.to_string(),
            });
        }
        let rivals: Vec<SessionName> = sessions
            .into_iter()
            .filter(|other| *other != mine && rival(other))
            .collect();
        if rivals.is_empty() {
            return Ok(fenced);
        }
        for other in rivals {
            fence(volume, other)?;
            fenced.push(other);
        }
    }
}

/// Claims the next controller epoch: above `seen` (the assignment's) and above every one claimed before.
pub fn claim_epoch(volume: &dyn Volume, seen: u64) -> Result<u64, StorageError> {
    loop {
        let entries = volume
            .list_fresh(EPOCHS)
            .map_err(|error| StorageError::from_io("list", EPOCHS, error))?;
        let highest = entries
            .iter()
            .filter_map(|entry| entry.name.parse().ok())
            .fold(seen, u64::max);
        let epoch = highest + 1;
        let path = format!("{EPOCHS}/{epoch}");
        match volume.create_dir(&path) {
            Ok(()) => {
                sync(volume, EPOCHS)?;
                return Ok(epoch);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StorageError::from_io("claim the epoch", &path, error)),
        }
    }
}

/// Removes what fencing left behind, and says how many names. Others may empty the trash at the same time.
pub fn empty_trash(volume: &dyn Volume) -> Result<usize, StorageError> {
    let entries = volume
        .list(TRASH)
        .map_err(|error| StorageError::from_io("list", TRASH, error))?;
    for entry in &entries {
        let path = format!("{TRASH}/{}", entry.name);
        remove_tree(volume, &path)
            .map_err(|error| StorageError::from_io("remove", &path, error))?;
    }
    Ok(entries.len())
}

/// Removes a file, or a directory with all that is in it. What is gone already counts as removed.
fn remove_tree(volume: &dyn Volume, path: &str) -> io::Result<()> {
    let gone_is_fine = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let entries = match volume.list(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return gone_is_fine(volume.remove_file(path));
        }
        Err(error) => return gone_is_fine(Err(error)),
    };
    for entry in entries {
        remove_tree(volume, &format!("{path}/{}", entry.name))?;
    }
    gone_is_fine(volume.remove_dir(path))
}
