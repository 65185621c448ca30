//! A volume in memory that loses power.
//!
//! It keeps two worlds: what running processes see, and what would be found after a power cut. A write reaches the
//! second by `sync`, a change of names by `sync_dir` of a directory it touched; `power_cut` adds a random part of the
//! rest, as a disk's cache and a kernel's write-back would. A rename is atomic, changes of one name keep their order, a
//! directory's removal comes after everything that emptied it; nothing else is ordered, and of a write any sectors may be
//! missing. Handles from before the cut fail, as their machine is off.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

use super::{Entry, Lock, Volume, VolumeFile};
use crate::error::StorageError;

/// Of a write, each sector survives or is lost by itself.
const SECTOR: usize = 512;
/// So many unsynced changes of names, or writes to one file, may gather before the older half reaches the disk by itself.
const MAX_UNSYNCED: usize = 4_096;

/// Clones share the volume, like processes on one machine (or on machines that lose power together).
#[derive(Clone)]
pub struct MemoryVolume {
    disk: Arc<Mutex<Disk>>,
    /// The boot this handle belongs to.
    boot: u64,
}

struct Disk {
    boot: u64,
    root: Arc<Node>,
    next_id: u64,
    /// Changes of names that no `sync_dir` covered yet, oldest first.
    unsynced: Vec<NameChange>,
    locked: HashSet<u64>,
}

struct Node {
    id: u64,
    body: Mutex<Body>,
}

enum Body {
    Dir {
        names: BTreeMap<String, Arc<Node>>,
        durable: BTreeMap<String, Arc<Node>>,
    },
    File {
        bytes: Vec<u8>,
        durable: Vec<u8>,
        /// Writes no `sync` covered yet, oldest first.
        unsynced: Vec<(usize, Vec<u8>)>,
    },
}

/// One atomic change: what each touched name means afterwards.
struct NameChange {
    names: Vec<NewMeaning>,
    /// The directory this change removes, which must have been emptied before.
    removes: Option<u64>,
}

struct NewMeaning {
    dir: Arc<Node>,
    name: String,
    node: Option<Arc<Node>>,
}

impl NameChange {
    fn touches(&self, dir: u64) -> bool {
        self.names.iter().any(|new| new.dir.id == dir)
    }

    fn make_durable(self) {
        for NewMeaning { dir, name, node } in self.names {
            if let Body::Dir { durable, .. } = &mut *dir.body.lock() {
                match node {
                    Some(node) => durable.insert(name, node),
                    None => durable.remove(&name),
                };
            }
        }
    }
}

impl Default for MemoryVolume {
    fn default() -> MemoryVolume {
        MemoryVolume::new()
    }
}

impl MemoryVolume {
    pub fn new() -> MemoryVolume {
        let disk = Disk {
            boot: 0,
            root: Arc::new(Node {
                id: 0,
                body: Mutex::new(Body::empty_dir()),
            }),
            next_id: 1,
            unsynced: Vec::new(),
            locked: HashSet::new(),
        };
        MemoryVolume {
            disk: Arc::new(Mutex::new(disk)),
            boot: 0,
        }
    }

    /// Cuts the power and boots again: what was synced is there, of the rest what `seed` says. Handles to the volume and
    /// its files from before fail from now on.
    pub fn power_cut(&self, seed: u64) -> MemoryVolume {
        let mut disk = self.disk.lock();
        let mut dice = Dice(seed);
        // Whole ranges of outcomes, from "nothing else survived" to "everything did", must be likely.
        let survival = [0, 50, 90, 100][dice.below(4)];

        let mut lost_names: HashSet<(u64, String)> = HashSet::new();
        let mut lost_dirs: HashSet<u64> = HashSet::new();
        for change in std::mem::take(&mut disk.unsynced) {
            let orphaned = change
                .names
                .iter()
                .any(|new| lost_names.contains(&(new.dir.id, new.name.clone())))
                || change.removes.is_some_and(|dir| lost_dirs.contains(&dir));
            if !orphaned && dice.percent(survival) {
                change.make_durable();
            } else {
                for new in change.names {
                    lost_dirs.insert(new.dir.id);
                    lost_names.insert((new.dir.id, new.name));
                }
            }
        }
        disk.root.boot_from_disk(&mut dice, survival);
        disk.locked.clear();
        disk.boot += 1;
        MemoryVolume {
            disk: Arc::clone(&self.disk),
            boot: disk.boot,
        }
    }

    /// Runs an operation on the volume, unless this handle's machine is off.
    fn on<T>(&self, operation: impl FnOnce(&mut Disk) -> io::Result<T>) -> io::Result<T> {
        let mut disk = self.disk.lock();
        if disk.boot != self.boot {
            return Err(Errno::IO.into());
        }
        operation(&mut disk)
    }

    fn file(&self, node: Arc<Node>) -> Arc<dyn VolumeFile> {
        Arc::new(MemoryFile {
            volume: self.clone(),
            node,
        })
    }
}

impl Disk {
    fn find(&self, path: &str) -> io::Result<Arc<Node>> {
        let mut node = Arc::clone(&self.root);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let next = match &*node.body.lock() {
                Body::Dir { names, .. } => names.get(name).cloned().ok_or(Errno::NOENT)?,
                Body::File { .. } => return Err(Errno::NOTDIR.into()),
            };
            node = next;
        }
        Ok(node)
    }

    /// The directory a path's last name lies in, and that name.
    fn place<'a>(&self, path: &'a str) -> io::Result<(Arc<Node>, &'a str)> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let dir = self.find(parent)?;
        if !dir.is_dir() {
            return Err(Errno::NOTDIR.into());
        }
        Ok((dir, name))
    }

    fn add(&mut self, path: &str, body: Body) -> io::Result<Arc<Node>> {
        let (dir, name) = self.place(path)?;
        if dir.child(name).is_some() {
            return Err(Errno::EXIST.into());
        }
        let node = Arc::new(Node {
            id: self.next_id,
            body: Mutex::new(body),
        });
        self.next_id += 1;
        let new = NewMeaning {
            dir,
            name: name.to_owned(),
            node: Some(Arc::clone(&node)),
        };
        self.change(NameChange {
            names: vec![new],
            removes: None,
        });
        Ok(node)
    }

    fn remove(&mut self, path: &str, removes: Option<u64>) -> io::Result<()> {
        let (dir, name) = self.place(path)?;
        let new = NewMeaning {
            dir,
            name: name.to_owned(),
            node: None,
        };
        self.change(NameChange {
            names: vec![new],
            removes,
        });
        Ok(())
    }

    /// Carries out a change of names for the running processes and notes it for the disk.
    fn change(&mut self, change: NameChange) {
        for NewMeaning { dir, name, node } in &change.names {
            if let Body::Dir { names, .. } = &mut *dir.body.lock() {
                match node {
                    Some(node) => names.insert(name.clone(), Arc::clone(node)),
                    None => names.remove(name),
                };
            }
        }
        self.unsynced.push(change);
        if self.unsynced.len() > MAX_UNSYNCED {
            self.unsynced
                .drain(..MAX_UNSYNCED / 2)
                .for_each(NameChange::make_durable);
        }
    }

    /// Makes durable what touched the directory, and what that depends on.
    fn sync_dir(&mut self, dir: u64) {
        let mut needed_names: HashSet<(u64, &str)> = HashSet::new();
        let mut needed_dirs: HashSet<u64> = HashSet::from([dir]);
        let mut needed = vec![false; self.unsynced.len()];
        for (at, change) in self.unsynced.iter().enumerate().rev() {
            needed[at] = change.names.iter().any(|new| {
                needed_dirs.contains(&new.dir.id)
                    || needed_names.contains(&(new.dir.id, new.name.as_str()))
            });
            if needed[at] {
                needed_names.extend(
                    change
                        .names
                        .iter()
                        .map(|new| (new.dir.id, new.name.as_str())),
                );
                needed_dirs.extend(change.removes);
            }
        }
        let mut needed = needed.into_iter();
        for change in self
            .unsynced
            .extract_if(.., |_| needed.next().expect("one answer for each change"))
        {
            change.make_durable();
        }
        debug_assert!(
            !self.unsynced.iter().any(|change| change.touches(dir)),
            "a synced directory has no unsynced name"
        );
    }
}

impl Node {
    fn is_dir(&self) -> bool {
        matches!(&*self.body.lock(), Body::Dir { .. })
    }

    fn is_empty_dir(&self) -> bool {
        matches!(&*self.body.lock(), Body::Dir { names, .. } if names.is_empty())
    }

    fn child(&self, name: &str) -> Option<Arc<Node>> {
        match &*self.body.lock() {
            Body::Dir { names, .. } => names.get(name).cloned(),
            Body::File { .. } => None,
        }
    }

    fn len(&self) -> u64 {
        match &*self.body.lock() {
            Body::Dir { .. } => 0,
            Body::File { bytes, .. } => bytes.len() as u64,
        }
    }

    /// Makes what is on the disk what processes see, all the way down.
    fn boot_from_disk(&self, dice: &mut Dice, survival: usize) {
        let children: Vec<Arc<Node>> = match &mut *self.body.lock() {
            Body::Dir { names, durable } => {
                names.clone_from(durable);
                names.values().cloned().collect()
            }
            Body::File {
                bytes,
                durable,
                unsynced,
            } => {
                for (offset, written) in unsynced.drain(..) {
                    for (at, sector) in sectors(offset, &written) {
                        if dice.percent(survival) {
                            put(durable, at, sector);
                        }
                    }
                }
                bytes.clone_from(durable);
                Vec::new()
            }
        };
        for child in children {
            child.boot_from_disk(dice, survival);
        }
    }
}

impl Body {
    fn empty_dir() -> Body {
        Body::Dir {
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
        }
    }

    fn empty_file() -> Body {
        Body::File {
            bytes: Vec::new(),
            durable: Vec::new(),
            unsynced: Vec::new(),
        }
    }
}

/// A write cut at the sector boundaries of its file.
fn sectors(offset: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let head = (SECTOR - offset % SECTOR).min(bytes.len());
    let (head, rest) = bytes.split_at(head);
    let rest_at = offset + head.len();
    std::iter::once((offset, head)).chain(
        rest.chunks(SECTOR)
            .enumerate()
            .map(move |(i, sector)| (rest_at + i * SECTOR, sector)),
    )
}

fn put(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset..end].copy_from_slice(bytes);
}

/// SplitMix64: all the chance that a power cut, or a history in a test, needs.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }
}

impl Volume for MemoryVolume {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.on(|disk| disk.add(path, Body::empty_dir()).map(|_| ()))
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.on(|disk| {
            let node = disk.find(path)?;
            if !node.is_dir() {
                return Err(Errno::NOTDIR.into());
            }
            if !node.is_empty_dir() {
                return Err(Errno::NOTEMPTY.into());
            }
            disk.remove(path, Some(node.id))
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.on(|disk| {
            let node = disk.find(from)?;
            let (old_dir, old_name) = disk.place(from)?;
            let (new_dir, new_name) = disk.place(to)?;
            let replaced = new_dir.child(new_name);
            let removes = match &replaced {
                Some(replaced) if replaced.id == node.id => return Ok(()),
                Some(replaced) => match (node.is_dir(), replaced.is_dir()) {
                    (true, false) => return Err(Errno::NOTDIR.into()),
                    (false, true) => return Err(Errno::ISDIR.into()),
                    (true, true) if !replaced.is_empty_dir() => return Err(Errno::NOTEMPTY.into()),
                    (true, true) => Some(replaced.id),
                    (false, false) => None,
                },
                None => None,
            };
            let names = vec![
                NewMeaning {
                    dir: old_dir,
                    name: old_name.to_owned(),
                    node: None,
                },
                NewMeaning {
                    dir: new_dir,
                    name: new_name.to_owned(),
                    node: Some(node),
                },
            ];
            disk.change(NameChange { names, removes });
            Ok(())
        })
    }

    fn list(&self, dir: &str) -> io::Result<Vec<Entry>> {
        self.on(|disk| match &*disk.find(dir)?.body.lock() {
            Body::Dir { names, .. } => Ok(names
                .iter()
                .map(|(name, node)| Entry {
                    name: name.clone(),
                    is_dir: node.is_dir(),
                    len: node.len(),
                })
                .collect()),
            Body::File { .. } => Err(Errno::NOTDIR.into()),
        })
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn VolumeFile>> {
        self.on(|disk| Ok(self.file(disk.add(path, Body::empty_file())?)))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn VolumeFile>> {
        self.on(|disk| {
            let node = disk.find(path)?;
            if node.is_dir() {
                return Err(Errno::ISDIR.into());
            }
            Ok(self.file(node))
        })
    }

    fn remove_file(&self, path: &str) -> io::Result<()> {
        self.on(|disk| {
            if disk.find(path)?.is_dir() {
                return Err(Errno::ISDIR.into());
            }
            disk.remove(path, None)
        })
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.on(|disk| {
            let dir = disk.find(path)?;
            if !dir.is_dir() {
                return Err(Errno::NOTDIR.into());
            }
            disk.sync_dir(dir.id);
            Ok(())
        })
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        self.on(|disk| Ok(disk.find(path).is_ok()))
    }

    fn refresh(&self, dir: &str) -> io::Result<()> {
        self.on(|disk| disk.find(dir).map(|_| ()))
    }

    fn lock(&self, path: &str) -> io::Result<Option<Lock>> {
        let node = self.on(|disk| {
            disk.find(path)
                .or_else(|_| disk.add(path, Body::empty_file()))
        })?;
        self.on(|disk| {
            let free = disk.locked.insert(node.id);
            Ok(free.then(|| {
                Lock::holding(HeldLock {
                    volume: self.clone(),
                    node: node.id,
                })
            }))
        })
    }

    fn check_mount(&self) -> Result<(), StorageError> {
        Ok(())
    }
}

struct HeldLock {
    volume: MemoryVolume,
    node: u64,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // After a power cut there is nothing left to release.
        let _ = self.volume.on(|disk| {
            disk.locked.remove(&self.node);
            Ok(())
        });
    }
}

struct MemoryFile {
    volume: MemoryVolume,
    node: Arc<Node>,
}

impl MemoryFile {
    fn on<T>(
        &self,
        operation: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>, &mut Vec<(usize, Vec<u8>)>) -> T,
    ) -> io::Result<T> {
        self.volume.on(|_| match &mut *self.node.body.lock() {
            Body::File {
                bytes,
                durable,
                unsynced,
            } => Ok(operation(bytes, durable, unsynced)),
            Body::Dir { .. } => Err(Errno::ISDIR.into()),
        })
    }
}

impl VolumeFile for MemoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.on(|bytes, _, _| {
            let rest = bytes.get(offset as usize..).unwrap_or(&[]);
            let got = rest.len().min(buf.len());
            buf[..got].copy_from_slice(&rest[..got]);
            got
        })
    }

    fn write_at(&self, written: &[u8], offset: u64) -> io::Result<()> {
        self.on(|bytes, durable, unsynced| {
            let offset = offset as usize;
            put(bytes, offset, written);
            unsynced.push((offset, written.to_vec()));
            if unsynced.len() > MAX_UNSYNCED {
                for (offset, written) in unsynced.drain(..MAX_UNSYNCED / 2) {
                    put(durable, offset, &written);
                }
            }
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.on(|_, durable, unsynced| {
            for (offset, written) in unsynced.drain(..) {
                put(durable, offset, &written);
            }
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.on(|bytes, _, _| bytes.len() as u64)
    }

    fn allocate(&self, _offset: u64, _len: u64) -> io::Result<()> {
        self.on(|_, _, _| ())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(volume: &MemoryVolume, dir: &str) -> Vec<String> {
        volume
            .list(dir)
            .unwrap()
            .into_iter()
            .map(|entry| entry.name)
            .collect()
    }

    /// What may be found over many cuts of the same history.
    fn outcomes<T: Ord>(
        history: impl Fn(&MemoryVolume),
        look: impl Fn(&MemoryVolume) -> T,
    ) -> Vec<T> {
        let mut found: Vec<T> = (0..200)
            .map(|seed| {
                let volume = MemoryVolume::new();
                history(&volume);
                look(&volume.power_cut(seed))
            })
            .collect();
        found.sort();
        found.dedup();
        found
    }

    #[test]
    fn a_synced_file_in_a_synced_directory_survives() {
        let found = outcomes(
            |volume| {
                volume.create_dir_all("a/b").unwrap();
                let file = volume.create("a/b/f").unwrap();
                file.write_at(b"kept", 0).unwrap();
                file.sync().unwrap();
                volume.sync_dir("a/b").unwrap();
            },
            |volume| volume.read("a/b/f").ok(),
        );
        assert_eq!(found, [Some(b"kept".to_vec())]);
    }

    #[test]
    fn a_synced_file_whose_name_was_not_synced_may_be_gone() {
        let found = outcomes(
            |volume| volume.create("f").unwrap().sync().unwrap(),
            |volume| names(volume, ""),
        );
        assert_eq!(found, [vec![], vec!["f".to_owned()]]);
    }

    #[test]
    fn of_an_unsynced_write_any_sectors_may_be_missing() {
        let found = outcomes(
            |volume| {
                let file = volume.create("f").unwrap();
                volume.sync_dir("").unwrap();
                file.write_at(&[1; 2 * SECTOR], 0).unwrap();
            },
            |volume| {
                let bytes = volume.read("f").unwrap();
                (bytes.first().copied(), bytes.get(SECTOR).copied())
            },
        );
        assert_eq!(
            found,
            [
                (None, None),
                (Some(0), Some(1)),
                (Some(1), None),
                (Some(1), Some(1))
            ]
        );
    }

    #[test]
    fn a_rename_is_atomic_and_durable_through_either_directory() {
        for synced in ["old", "new"] {
            let found = outcomes(
                |volume| {
                    volume.create_dir_all("old").unwrap();
                    volume.create_dir_all("new").unwrap();
                    volume.create("old/f").unwrap();
                    volume.rename("old/f", "new/f").unwrap();
                    volume.sync_dir(synced).unwrap();
                },
                |volume| (names(volume, "old"), names(volume, "new")),
            );
            assert_eq!(found, [(vec![], vec!["f".to_owned()])]);
        }
        let found = outcomes(
            |volume| {
                volume.create_dir_all("old").unwrap();
                volume.create_dir_all("new").unwrap();
                volume.create("old/f").unwrap();
                volume.sync_dir("old").unwrap();
                volume.rename("old/f", "new/f").unwrap();
            },
            |volume| names(volume, "old").len() + names(volume, "new").len(),
        );
        assert_eq!(found, [1]);
    }

    #[test]
    fn a_directory_never_goes_before_what_was_moved_out_of_it() {
        let found = outcomes(
            |volume| {
                volume.create_dir_all("s").unwrap();
                volume.create_dir_all("j").unwrap();
                volume.create("s/f").unwrap();
                volume.sync_dir("s").unwrap();
                volume.rename("s/f", "j/f").unwrap();
                volume.remove_dir("s").unwrap();
                volume.sync_dir("").unwrap();
            },
            |volume| (names(volume, ""), names(volume, "j")),
        );
        assert_eq!(found, [(vec!["j".to_owned()], vec!["f".to_owned()])]);
    }

    #[test]
    fn handles_from_before_the_cut_fail_and_locks_are_free() {
        let old = MemoryVolume::new();
        let file = old.create("f").unwrap();
        let _lock = old.lock("lock").unwrap().unwrap();
        assert!(old.lock("lock").unwrap().is_none());
        let new = old.power_cut(1);
        assert!(
            old.exists("f").is_err() && file.write_at(b"x", 0).is_err() && file.sync().is_err()
        );
        assert!(new.lock("lock").unwrap().is_some());
    }

    #[test]
    fn names_behave_as_posix_says() {
        let volume = MemoryVolume::new();
        let errno = |result: io::Result<()>| Errno::from_io_error(&result.unwrap_err());
        volume.create_dir("d").unwrap();
        assert_eq!(errno(volume.create_dir("d")), Some(Errno::EXIST));
        let file = volume.create("d/f").unwrap();
        assert_eq!(errno(volume.create("d/f").map(|_| ())), Some(Errno::EXIST));
        assert_eq!(errno(volume.remove_dir("d")), Some(Errno::NOTEMPTY));
        assert_eq!(errno(volume.remove_file("d")), Some(Errno::ISDIR));
        assert_eq!(errno(volume.rename("none", "d/g")), Some(Errno::NOENT));
        assert_eq!(errno(volume.rename("d/f", "none/g")), Some(Errno::NOENT));
        assert_eq!(errno(volume.rename("d/f", "d/f/g")), Some(Errno::NOTDIR));
        volume.create("d/g").unwrap();
        volume.rename("d/f", "d/g").unwrap();
        assert_eq!(names(&volume, "d"), ["g"]);
        volume.remove_file("d/g").unwrap();
        // An open file outlives its name.
        file.write_at(b"late", 0).unwrap();
        assert_eq!(file.read_all().unwrap(), b"late");
        volume.remove_dir("d").unwrap();
    }
}
