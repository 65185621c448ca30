#![expect(
    clippy::disallowed_methods,
    reason = "the volume is where files are touched"
)]

//! The shared volume: the few file operations everything else is built from.
//!
//! `DiskVolume` is a directory on a real mount; `memory` holds one that forgets what was not fsynced and one that
//! injects faults. Paths are relative to the root, `/`-separated, without `.` or `..`. Errors are plain `io::Error`s:
//! what an `ENOENT` means depends on whose directory it was, which `session` knows. Who may use which operation on
//! which name is the volume contract, kept by `session` and the log, not here.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, FlockOperation, Mode, OFlags, StatxFlags, fallocate,
    fdatasync, flock, fstatvfs, fsync, mkdirat, openat, renameat, statx, unlinkat,
};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};

use crate::error::StorageError;

pub mod faulty;
pub mod memory;
mod mount;

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub is_dir: bool,
    /// Bytes; 0 for a directory.
    pub len: u64,
}

/// The room on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub total_bytes: u64,
    /// What an ordinary user may still write.
    pub usable_bytes: u64,
}

/// A held advisory lock, released when dropped and, by the kernel, when the process dies.
pub struct Lock(Box<dyn Send + Sync>);

impl Lock {
    pub(crate) fn holding(guard: impl Send + Sync + 'static) -> Lock {
        Lock(Box::new(guard))
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The guard is only ever dropped; its address tells two locks apart in a log.
        write!(f, "Lock({:p})", self.0)
    }
}

pub trait Volume: Send + Sync {
    /// `mkdir`: exactly one of several callers wins, the others get `AlreadyExists`. Not durable before `sync_dir` of
    /// the parent.
    fn create_dir(&self, path: &str) -> io::Result<()>;

    /// `rmdir`: fails unless the directory is empty.
    fn remove_dir(&self, path: &str) -> io::Result<()>;

    /// Replaces what `to` names, atomically. Not durable before `sync_dir` of both parents.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// All names in a directory, in no order.
    fn list(&self, dir: &str) -> io::Result<Vec<Entry>>;

    /// A new empty file (`O_CREAT|O_EXCL`), readable and writable. Its name is not durable before `sync_dir`.
    fn create(&self, path: &str) -> io::Result<Arc<dyn VolumeFile>>;

    /// An existing file, read-only.
    fn open(&self, path: &str) -> io::Result<Arc<dyn VolumeFile>>;

    fn remove_file(&self, path: &str) -> io::Result<()>;

    /// Makes the names in a directory durable. A failed one proves nothing and must not be repeated in hope.
    fn sync_dir(&self, path: &str) -> io::Result<()>;

    fn exists(&self, path: &str) -> io::Result<bool>;

    /// Asks the server, not a cache, about a directory, so that what is listed, looked up or opened in it next is true
    /// as of now (`statx` with `AT_STATX_FORCE_SYNC`).
    fn refresh(&self, dir: &str) -> io::Result<()>;

    /// Takes the exclusive lock on a file, made if missing, or says that another process holds it.
    fn lock(&self, path: &str) -> io::Result<Option<Lock>>;

    /// Refuses a mount on which the volume contract does not hold. Call it after `layout::create`.
    fn check_mount(&self) -> Result<(), StorageError>;

    /// How large the file system is and how much of it may still be written, if it says.
    fn space(&self) -> io::Result<Option<Space>> {
        Ok(None)
    }

    /// Makes every missing directory along the path and makes the whole path durable.
    fn create_dir_all(&self, path: &str) -> io::Result<()> {
        for (end, _) in path.match_indices('/').chain([(path.len(), "")]) {
            let directory = &path[..end];
            match self.create_dir(directory) {
                Ok(()) => {}
                // Somebody else may have made it without having synced it yet.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            self.sync_dir(parent(directory))?;
        }
        Ok(())
    }

    /// A whole file.
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.open(path)?.read_all()
    }

    /// A whole file as the server has it now: what a new owner reads after its grant.
    fn read_fresh(&self, path: &str) -> io::Result<Vec<u8>> {
        self.refresh(parent(path))?;
        self.read(path)
    }

    fn list_fresh(&self, dir: &str) -> io::Result<Vec<Entry>> {
        self.refresh(dir)?;
        self.list(dir)
    }

    fn exists_fresh(&self, path: &str) -> io::Result<bool> {
        self.refresh(parent(path))?;
        self.exists(path)
    }
}

/// An open file. Several threads may use it at once; there is no cursor.
pub trait VolumeFile: Send + Sync {
    /// Fills `buf` from `offset` on and says how many bytes there were: fewer only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes`, or fails with any part of them written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes everything written, and the length, durable (`fdatasync`). A failed one must never be repeated: the kernel
    /// may have dropped the pages and call the next one a success.
    fn sync(&self) -> io::Result<()>;

    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reserves room without changing the length. Only speeds up what follows; it may fail where a write would not.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;

    /// The descriptor for `sendfile`, if there is one.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    fn read_all(&self) -> io::Result<Vec<u8>> {
        let len = usize::try_from(self.len()?).expect("a file's length fits the address space");
        let mut bytes = vec![0; len];
        let got = self.read_at(&mut bytes, 0)?;
        bytes.truncate(got);
        Ok(bytes)
    }
}

/// The directory a path lies in; `""` is the root.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// A directory on a real mount.
pub struct DiskVolume {
    path: PathBuf,
    root: OwnedFd,
    client: mount::ClientClaim,
}

impl DiskVolume {
    /// Opens the directory, which is made if it is missing.
    pub fn open(path: &Path) -> Result<DiskVolume, StorageError> {
        let fail =
            |error| StorageError::from_io("open the volume at", &path.to_string_lossy(), error);
        std::fs::create_dir_all(path).map_err(fail)?;
        let path = path.canonicalize().map_err(fail)?;
        let root = std::fs::File::open(&path).map_err(fail)?.into();
        Ok(DiskVolume {
            path,
            root,
            client: mount::ClientClaim::default(),
        })
    }

    /// The root, absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_dir(&self, dir: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(retry_on_intr(|| {
            openat(&self.root, at(dir), flags, Mode::empty())
        })?)
    }

    fn open_file(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let mode = Mode::from_raw_mode(0o644);
        Ok(retry_on_intr(|| {
            openat(&self.root, at(path), flags | OFlags::CLOEXEC, mode)
        })?)
    }
}

/// A text of the operator's that does not lie on the volume, such as a properties file.
pub fn read_local(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// The path as the kernel takes it; the root is `.`.
fn at(path: &str) -> &str {
    debug_assert!(
        !path.starts_with('/') && !path.split('/').any(|part| part == ".."),
        "the path {path} stays under the root"
    );
    if path.is_empty() { "." } else { path }
}

impl Volume for DiskVolume {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        Ok(mkdirat(&self.root, at(path), Mode::from_raw_mode(0o755))?)
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        Ok(unlinkat(&self.root, at(path), AtFlags::REMOVEDIR)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.root, at(from), &self.root, at(to))?)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<Entry>> {
        let fd = self.open_dir(dir)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&fd)? {
            let entry = entry?;
            if entry.file_name() == c"." || entry.file_name() == c".." {
                continue;
            }
            entries.extend(describe(&fd, entry.file_name())?);
        }
        Ok(entries)
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn VolumeFile>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        Ok(Arc::new(DiskFile(self.open_file(path, flags)?)))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn VolumeFile>> {
        Ok(Arc::new(DiskFile(self.open_file(path, OFlags::RDONLY)?)))
    }

    fn remove_file(&self, path: &str) -> io::Result<()> {
        Ok(unlinkat(&self.root, at(path), AtFlags::empty())?)
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        Ok(fsync(self.open_dir(path)?)?)
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        match statx(
            &self.root,
            at(path),
            AtFlags::SYMLINK_NOFOLLOW,
            StatxFlags::TYPE,
        ) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn refresh(&self, dir: &str) -> io::Result<()> {
        statx(
            &self.root,
            at(dir),
            AtFlags::STATX_FORCE_SYNC,
            StatxFlags::BASIC_STATS,
        )?;
        Ok(())
    }

    fn lock(&self, path: &str) -> io::Result<Option<Lock>> {
        let file = self.open_file(path, OFlags::RDWR | OFlags::CREATE)?;
        match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(Some(Lock::holding(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn space(&self) -> io::Result<Option<Space>> {
        let stat = fstatvfs(&self.root)?;
        Ok(Some(Space {
            total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
            usable_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        }))
    }

    fn check_mount(&self) -> Result<(), StorageError> {
        mount::check(&self.path, self.root.as_fd(), &self.client)
    }
}

/// `None` when the name went away since it was listed.
fn describe(dir: &OwnedFd, name: &CStr) -> io::Result<Option<Entry>> {
    let mask = StatxFlags::TYPE | StatxFlags::SIZE;
    let stat = match statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, mask) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let is_dir = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory;
    Ok(Some(Entry {
        // Every name of ours is ASCII; one that is not UTF-8 is a stranger's and only has to look like none of ours.
        name: name.to_string_lossy().into_owned(),
        is_dir,
        len: if is_dir { 0 } else { stat.stx_size },
    }))
}

struct DiskFile(OwnedFd);

impl VolumeFile for DiskFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut got = 0;
        while got < buf.len() {
            match retry_on_intr(|| pread(&self.0, &mut buf[got..], offset + got as u64))? {
                0 => break,
                n => got += n,
            }
        }
        Ok(got)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match retry_on_intr(|| pwrite(&self.0, &bytes[done..], offset + done as u64))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n => done += n,
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fdatasync(&self.0)?)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.0)?.st_size.unsigned_abs())
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        Ok(retry_on_intr(|| {
            fallocate(&self.0, FallocateFlags::KEEP_SIZE, offset, len)
        })?)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}
