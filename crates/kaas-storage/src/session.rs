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
        self.move_out(draft, path)?;
        self.sync_shared(parent(path))
    }

    /// The rename of `publish_file` alone: nobody had fenced the session before it, but the name is not durable before
    /// `sync_dir` of its directory.
    pub(crate) fn move_out(&self, draft: &str, path: &str) -> Result<(), StorageError> {
        self.check()?;
        if let Err(error) = self.volume.rename(draft, path) {
            if error.kind() == io::ErrorKind::NotFound && self.still_has(draft) {
                return Err(StorageError::from_io("publish", path, error));
            }
            return Err(self.own_name_failed("publish", path, error));
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::layout;
    use crate::volume::DiskVolume;
    use crate::volume::faulty::{Fault, FaultyVolume};
    use crate::volume::memory::MemoryVolume;

    const FILE: &str = "__cluster/__consumer_offsets/orders.json";

    fn memory() -> MemoryVolume {
        let volume = MemoryVolume::new();
        layout::create(&volume).unwrap();
        volume
    }

    fn broker(volume: &(impl Volume + Clone + 'static), node_id: i32, uuid: u128) -> Session {
        let volume = Arc::new(volume.clone());
        Session::create(volume, SessionKind::Broker, node_id, Uuid::from_u128(uuid)).unwrap()
    }

    fn names(volume: &dyn Volume, dir: &str) -> BTreeSet<String> {
        let entries = volume.list(dir).unwrap();
        entries.into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn a_session_name_reads_as_it_is_written() {
        for (kind, written) in [
            (
                SessionKind::Broker,
                "b3.00000000-0000-0000-0000-000000000007",
            ),
            (
                SessionKind::Controller,
                "ctl.3.00000000-0000-0000-0000-000000000007",
            ),
        ] {
            let name = SessionName {
                kind,
                node_id: 3,
                uuid: Uuid::from_u128(7),
            };
            assert_eq!(name.to_string(), written);
            assert_eq!(written.parse(), Ok(name));
        }
        for wrong in [
            "",
            "b",
            "b1",
            "bx.00000000-0000-0000-0000-000000000007",
            "b1.xyz",
            "lost+found",
        ] {
            assert_eq!(wrong.parse::<SessionName>(), Err(NotASession), "{wrong}");
        }
    }

    #[test]
    fn everything_works_on_a_disk() {
        let dir = tempfile::tempdir().unwrap();
        let volume = Arc::new(DiskVolume::open(&dir.path().join("data")).unwrap());
        layout::create(&*volume).unwrap();
        volume.check_mount().unwrap();
        let session = Session::create(
            Arc::clone(&volume) as _,
            SessionKind::Broker,
            0,
            Uuid::from_u128(1),
        )
        .unwrap();
        session.publish(FILE, b"one").unwrap();
        session.publish(FILE, b"two").unwrap();
        assert_eq!(volume.read_fresh(FILE).unwrap(), b"two");
        session.verify().unwrap();
        assert!(session.retire(FILE).unwrap());
        assert!(!session.retire(FILE).unwrap());
        assert!(!volume.exists(FILE).unwrap());
        assert!(volume.lock("__cluster/lock").unwrap().is_some());
        fence(&*volume, session.name()).unwrap();
        assert!(session.verify().unwrap_err().is_fenced());
        assert_eq!(list_sessions(&*volume).unwrap(), []);
        assert!(empty_trash(&*volume).unwrap() > 0);
        assert_eq!(volume.list(TRASH).unwrap(), []);
    }

    #[test]
    fn one_of_two_brokers_on_a_disk_holds_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let volume = DiskVolume::open(dir.path()).unwrap();
        let held = volume.lock("lock").unwrap();
        assert!(held.is_some() && volume.lock("lock").unwrap().is_none());
        drop(held);
        assert!(volume.lock("lock").unwrap().is_some());
    }

    #[test]
    fn a_published_file_survives_any_power_cut() {
        for seed in 0..200 {
            let volume = memory();
            let session = broker(&volume, 0, 1);
            session.publish(FILE, b"old").unwrap();
            session.publish(FILE, b"new").unwrap();
            assert_eq!(volume.power_cut(seed).read(FILE).unwrap(), b"new");
        }
    }

    #[test]
    fn a_cut_or_a_fault_anywhere_in_a_publish_leaves_the_old_file_or_the_new_one() {
        for fault in [
            Fault::Io,
            Fault::LostAnswer,
            Fault::Full,
            Fault::ShortWrite,
            Fault::FailedSync,
            Fault::FailedDirSync,
        ] {
            for nth in 1..20 {
                let disk = memory();
                let volume = FaultyVolume::new(Arc::new(disk.clone()));
                let session = broker(&volume, 0, 1);
                session.publish(FILE, b"old").unwrap();
                volume.fail_at(nth, fault);
                let outcome = session.publish(FILE, b"new");
                let found = disk.power_cut(nth).read(FILE).unwrap();
                match outcome {
                    Ok(()) => assert_eq!(found, b"new"),
                    Err(_) => assert!(found == b"old" || found == b"new", "{fault:?} at {nth}"),
                }
            }
        }
    }

    #[test]
    fn a_full_volume_is_its_own_error_and_no_fence() {
        let volume = FaultyVolume::new(Arc::new(memory()));
        let session = broker(&volume, 0, 1);
        volume.fail_from(1, Fault::Full);
        assert!(session.publish(FILE, b"x").unwrap_err().is_full());
        assert!(session.verify().unwrap_err().is_full());
        volume.heal();
        session.publish(FILE, b"x").unwrap();
        session.verify().unwrap();
    }

    #[test]
    fn an_unknown_outcome_on_the_own_directory_ends_the_session_for_good() {
        let volume = FaultyVolume::new(Arc::new(memory()));
        let session = broker(&volume, 0, 1);
        volume.fail_at(1, Fault::LostAnswer);
        assert!(session.verify().unwrap_err().is_fenced());
        let calls = volume.calls();
        assert!(session.publish(FILE, b"x").unwrap_err().is_fenced());
        assert!(session.retire(FILE).unwrap_err().is_fenced());
        assert!(session.create_in("log").is_err() && session.verify().is_err());
        assert_eq!(
            volume.calls(),
            calls,
            "a session that knows it is fenced asks the volume nothing"
        );
    }

    #[test]
    fn a_failed_write_of_a_draft_is_an_error_and_no_fence() {
        let volume = FaultyVolume::new(Arc::new(memory()));
        let session = broker(&volume, 0, 1);
        volume.fail_at(1, Fault::ShortWrite);
        assert!(!session.publish(FILE, b"x").unwrap_err().is_fenced());
        session.publish(FILE, b"x").unwrap();
        // The draft that failed was given back.
        assert_eq!(
            names(&volume, &session.dir),
            BTreeSet::from(["tok.0".to_owned()])
        );
    }

    #[test]
    fn publishing_into_a_missing_directory_is_no_fence() {
        let volume = memory();
        let session = broker(&volume, 0, 1);
        assert!(
            session
                .publish("topics/none/0/x.log", b"x")
                .unwrap_err()
                .is_not_found()
        );
        session.verify().unwrap();
        assert!(
            session
                .retire("topics/none/0/x.log")
                .unwrap_err()
                .is_not_found()
        );
        session.verify().unwrap();
    }

    #[test]
    fn a_directory_is_retired_with_all_that_is_in_it() {
        let volume = memory();
        let session = broker(&volume, 0, 1);
        volume.create_dir_all("topics/t/0").unwrap();
        session.publish("topics/t/0/x.log", b"x").unwrap();
        assert!(session.retire("topics/t").unwrap());
        assert!(!volume.exists("topics/t").unwrap());
        assert_eq!(names(&volume, &session.dir).len(), 1);
    }

    #[test]
    fn a_retired_file_stays_away_after_any_power_cut() {
        for seed in 0..200 {
            let volume = memory();
            let session = broker(&volume, 0, 1);
            session.publish(FILE, b"x").unwrap();
            session.retire(FILE).unwrap();
            assert!(!volume.power_cut(seed).exists(FILE).unwrap());
        }
    }

    #[test]
    fn fencing_keeps_the_journal_and_trashes_the_rest() {
        let volume = memory();
        let session = broker(&volume, 3, 1);
        for name in ["j.1", "j.2", "9.tmp"] {
            session.create_named(name).unwrap();
        }
        session.verify().unwrap();
        fence(&volume, session.name()).unwrap();
        let name = session.name();
        assert_eq!(names(&volume, SESSIONS), BTreeSet::new());
        assert_eq!(
            names(&volume, JOURNALS),
            BTreeSet::from([format!("{name}.1"), format!("{name}.2")])
        );
        assert_eq!(
            names(&volume, TRASH),
            BTreeSet::from([format!("{name}.9.tmp"), format!("{name}.tok.1")])
        );
        // A second fencer finds it done.
        fence(&volume, name).unwrap();
    }

    #[test]
    fn a_fence_survives_any_power_cut_with_its_journal() {
        for seed in 0..200 {
            let volume = memory();
            let session = broker(&volume, 3, 1);
            let (_, file) = session.create_named("j.1").unwrap();
            session.sync_own_names().unwrap();
            file.write_at(b"acknowledged", 0).unwrap();
            file.sync().unwrap();
            fence(&volume, session.name()).unwrap();
            let volume = volume.power_cut(seed);
            assert_eq!(names(&volume, SESSIONS), BTreeSet::new());
            assert_eq!(
                volume
                    .read(&format!("{JOURNALS}/{}.1", session.name()))
                    .unwrap(),
                b"acknowledged"
            );
        }
    }

    #[test]
    fn a_fence_cut_anywhere_loses_no_journal_and_is_finished_by_the_next() {
        for nth in 1..20 {
            for seed in 0..20 {
                let disk = memory();
                let volume = FaultyVolume::new(Arc::new(disk.clone()));
                let session = broker(&disk, 3, 1);
                for name in ["j.1", "j.2"] {
                    session.create_named(name).unwrap();
                }
                session.sync_own_names().unwrap();
                volume.fail_from(nth, Fault::Io);
                let _ = fence(&volume, session.name());
                let disk = disk.power_cut(seed);
                fence(&disk, session.name()).unwrap();
                assert_eq!(
                    names(&disk, JOURNALS).len(),
                    2,
                    "cut at call {nth}, seed {seed}"
                );
            }
        }
    }

    /// Lets a fence happen before each call of an operation in turn, until it is done without being interrupted.
    fn fenced_at_every_call(operation: impl Fn(&Session) -> Result<(), StorageError>) {
        for nth in 1.. {
            let disk = memory();
            let volume = FaultyVolume::new(Arc::new(disk.clone()));
            let session = broker(&volume, 3, 1);
            session.publish(FILE, b"old").unwrap();
            let calls = volume.calls();
            let (fencer, name) = (disk.clone(), session.name());
            volume.interrupt_at(nth, move || {
                fence(&fencer, name).unwrap();
                // What the new owner does once the fence is through.
                let heir = broker(&fencer, 4, 2);
                let seen = fencer.read(FILE).unwrap_or_default();
                heir.publish(FILE, &[&seen, b"+heir".as_slice()].concat())
                    .unwrap();
            });
            let outcome = operation(&session);
            let found = disk.read(FILE).unwrap_or_default();
            if volume.calls() < calls + nth {
                assert_eq!(outcome.map_err(|error| error.to_string()), Ok(()));
                return;
            }
            assert!(
                found.ends_with(b"+heir"),
                "nothing of the fenced session lands after its fence (call {nth})"
            );
            if outcome.is_ok() {
                assert_eq!(
                    found, b"new+heir",
                    "what was acknowledged was there when the heir looked (call {nth})"
                );
            }
        }
    }

    #[test]
    fn a_publish_that_is_fenced_at_any_call_is_seen_by_the_heir_or_fails() {
        fenced_at_every_call(|session| session.publish(FILE, b"new"));
    }

    #[test]
    fn a_deletion_that_is_fenced_at_any_call_deletes_nothing_of_the_heir() {
        fenced_at_every_call(|session| {
            session.retire(FILE)?;
            session.publish(FILE, b"new")
        });
    }

    #[test]
    fn many_threads_share_token_renames_and_all_are_answered() {
        let volume = memory();
        let session = broker(&volume, 0, 1);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..100).for_each(|_| session.verify().unwrap()));
            }
        });
        let token = names(&volume, &session.dir).into_iter().next().unwrap();
        let renames: u64 = token.strip_prefix("tok.").unwrap().parse().unwrap();
        assert!((100..=800).contains(&renames), "{renames}");
    }

    #[test]
    fn a_new_session_ends_all_others_of_its_node_and_no_others() {
        let volume = memory();
        let (old, older, other) = (
            broker(&volume, 1, 1),
            broker(&volume, 1, 2),
            broker(&volume, 2, 3),
        );
        let controller = Session::create(
            Arc::new(volume.clone()),
            SessionKind::Controller,
            1,
            Uuid::from_u128(4),
        );
        let mine = broker(&volume, 1, 5);
        let fenced = fence_others_of_node(&volume, mine.name()).unwrap();
        assert_eq!(fenced, [old.name(), older.name()]);
        assert!(old.verify().is_err() && older.verify().is_err());
        other.verify().unwrap();
        controller.unwrap().verify().unwrap();
        mine.verify().unwrap();
    }

    #[test]
    fn of_two_controllers_that_fence_each_other_at_most_one_goes_on() {
        let volume = memory();
        let controller = |node_id, uuid| {
            let volume = Arc::new(volume.clone());
            Session::create(
                volume,
                SessionKind::Controller,
                node_id,
                Uuid::from_u128(uuid),
            )
            .unwrap()
        };
        let (old, new) = (controller(1, 1), controller(2, 2));
        assert_eq!(
            fence_other_controllers(&volume, new.name()).unwrap(),
            [old.name()]
        );
        assert!(
            fence_other_controllers(&volume, old.name())
                .unwrap_err()
                .is_fenced()
        );
        new.verify().unwrap();
    }

    #[test]
    fn epochs_are_unique_rise_and_stay_above_what_was_seen() {
        let volume = memory();
        assert_eq!(claim_epoch(&volume, 0).unwrap(), 1);
        assert_eq!(claim_epoch(&volume, 41).unwrap(), 42);
        let claimed: Vec<u64> = std::thread::scope(|scope| {
            let claims: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| claim_epoch(&volume, 7).unwrap()))
                .collect();
            claims
                .into_iter()
                .map(|claim| claim.join().unwrap())
                .collect()
        });
        assert_eq!(
            claimed.into_iter().collect::<BTreeSet<_>>(),
            (43..51).collect()
        );
        assert_eq!(claim_epoch(&volume.power_cut(1), 0).unwrap(), 51);
    }
}
