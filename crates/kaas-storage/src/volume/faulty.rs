//! A volume that fails, or lets others go first, on purpose: for tests of everything built on one.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

use super::{Entry, Lock, Space, Volume, VolumeFile};
use crate::error::StorageError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `EIO` in place of the call; befalls every call.
    Io,
    /// The call happens and its caller is told `EIO`; befalls every call.
    LostAnswer,
    /// `ENOSPC`; befalls calls that may need room.
    Full,
    /// Half of the bytes are written, then `EIO`; befalls writes.
    ShortWrite,
    /// `EIO`, and nothing became durable; befalls `sync` of files.
    FailedSync,
    /// As `FailedSync`; befalls `sync_dir`.
    FailedDirSync,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    /// A change of names or a reservation, which may need room.
    Change,
    Write,
    Sync,
    SyncDir,
}

impl Fault {
    fn befalls(self, call: Call) -> bool {
        match self {
            Fault::Io | Fault::LostAnswer => true,
            Fault::Full => call != Call::Read,
            Fault::ShortWrite => call == Call::Write,
            Fault::FailedSync => call == Call::Sync,
            Fault::FailedDirSync => call == Call::SyncDir,
        }
    }
}

/// Wraps a volume; clones share the plan. Without a plan every call goes through.
#[derive(Clone)]
pub struct FaultyVolume {
    inner: Arc<dyn Volume>,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Default)]
struct Plan {
    calls: u64,
    struck: u64,
    fault: Option<Fault>,
    /// So many calls that the fault could befall still go through.
    spared: u64,
    /// The fault stays until `heal`.
    lasting: bool,
    /// What others do before the call with that number.
    interruption: Option<(u64, Box<dyn FnOnce() + Send>)>,
}

impl FaultyVolume {
    pub fn new(inner: Arc<dyn Volume>) -> FaultyVolume {
        FaultyVolume {
            inner,
            plan: Arc::default(),
        }
    }

    /// The `nth` call from now on that the fault can befall fails; the first is 1.
    pub fn fail_at(&self, nth: u64, fault: Fault) {
        let mut plan = self.plan.lock();
        (plan.fault, plan.spared, plan.lasting) = (Some(fault), nth - 1, false);
    }

    /// From the `nth` such call on all of them fail, until `heal`.
    pub fn fail_from(&self, nth: u64, fault: Fault) {
        let mut plan = self.plan.lock();
        (plan.fault, plan.spared, plan.lasting) = (Some(fault), nth - 1, true);
    }

    /// Lets `others` act before the `nth` call from now on, as if this process had been paused there.
    pub fn interrupt_at(&self, nth: u64, others: impl FnOnce() + Send + 'static) {
        let mut plan = self.plan.lock();
        plan.interruption = Some((plan.calls + nth, Box::new(others)));
    }

    pub fn heal(&self) {
        self.plan.lock().fault = None;
    }

    /// Calls made so far.
    pub fn calls(&self) -> u64 {
        self.plan.lock().calls
    }

    /// Calls failed on purpose so far.
    pub fn struck(&self) -> u64 {
        self.plan.lock().struck
    }

    fn strike(&self, call: Call) -> Option<Fault> {
        let mut plan = self.plan.lock();
        plan.calls += 1;
        let calls = plan.calls;
        if let Some((_, others)) = plan.interruption.take_if(|(call, _)| *call == calls) {
            MutexGuard::unlocked(&mut plan, others);
        }
        let fault = plan.fault.filter(|fault| fault.befalls(call))?;
        if plan.spared > 0 {
            plan.spared -= 1;
            return None;
        }
        plan.struck += 1;
        if !plan.lasting {
            plan.fault = None;
        }
        Some(fault)
    }

    fn run<T>(&self, call: Call, operation: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.strike(call) {
            None => operation(),
            Some(Fault::Full) => Err(Errno::NOSPC.into()),
            Some(Fault::LostAnswer) => {
                operation()?;
                Err(Errno::IO.into())
            }
            Some(Fault::Io | Fault::ShortWrite | Fault::FailedSync | Fault::FailedDirSync) => {
                Err(Errno::IO.into())
            }
        }
    }

    fn file(&self, inner: Arc<dyn VolumeFile>) -> Arc<dyn VolumeFile> {
        Arc::new(FaultyFile {
            inner,
            volume: self.clone(),
        })
    }
}

impl Volume for FaultyVolume {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.run(Call::Change, || self.inner.create_dir(path))
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.run(Call::Read, || self.inner.remove_dir(path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.run(Call::Change, || self.inner.rename(from, to))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<Entry>> {
        self.run(Call::Read, || self.inner.list(dir))
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn VolumeFile>> {
        self.run(Call::Change, || self.inner.create(path))
            .map(|file| self.file(file))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn VolumeFile>> {
        self.run(Call::Read, || self.inner.open(path))
            .map(|file| self.file(file))
    }

    fn remove_file(&self, path: &str) -> io::Result<()> {
        self.run(Call::Read, || self.inner.remove_file(path))
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.run(Call::SyncDir, || self.inner.sync_dir(path))
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        self.run(Call::Read, || self.inner.exists(path))
    }

    fn refresh(&self, dir: &str) -> io::Result<()> {
        self.run(Call::Read, || self.inner.refresh(dir))
    }

    fn lock(&self, path: &str) -> io::Result<Option<Lock>> {
        self.run(Call::Change, || self.inner.lock(path))
    }

    fn space(&self) -> io::Result<Option<Space>> {
        self.inner.space()
    }

    fn check_mount(&self) -> Result<(), StorageError> {
        self.inner.check_mount()
    }
}

struct FaultyFile {
    inner: Arc<dyn VolumeFile>,
    volume: FaultyVolume,
}

impl VolumeFile for FaultyFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.volume
            .run(Call::Read, || self.inner.read_at(buf, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.volume.strike(Call::Write) {
            None => self.inner.write_at(bytes, offset),
            Some(fault) => {
                let written = match fault {
                    Fault::LostAnswer => bytes.len(),
                    Fault::ShortWrite | Fault::Full => bytes.len() / 2,
                    Fault::Io | Fault::FailedSync | Fault::FailedDirSync => 0,
                };
                self.inner.write_at(&bytes[..written], offset)?;
                Err(if fault == Fault::Full {
                    Errno::NOSPC
                } else {
                    Errno::IO
                }
                .into())
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.volume.run(Call::Sync, || self.inner.sync())
    }

    fn len(&self) -> io::Result<u64> {
        self.volume.run(Call::Read, || self.inner.len())
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.volume
            .run(Call::Change, || self.inner.allocate(offset, len))
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::memory::MemoryVolume;

    #[test]
    fn only_the_call_named_fails_and_only_if_the_fault_can_befall_it() {
        let volume = FaultyVolume::new(Arc::new(MemoryVolume::new()));
        volume.fail_at(2, Fault::FailedSync);
        let file = volume.create("f").unwrap();
        volume.sync_dir("").unwrap();
        file.sync().unwrap();
        assert!(file.sync().is_err());
        file.sync().unwrap();
        assert_eq!((volume.calls(), volume.struck()), (5, 1));
    }

    #[test]
    fn a_short_write_leaves_half_of_the_bytes() {
        let volume = FaultyVolume::new(Arc::new(MemoryVolume::new()));
        let file = volume.create("f").unwrap();
        volume.fail_at(1, Fault::ShortWrite);
        assert!(file.write_at(b"abcd", 0).is_err());
        assert_eq!(volume.read("f").unwrap(), b"ab");
    }

    #[test]
    fn a_lost_answer_hides_a_success() {
        let volume = FaultyVolume::new(Arc::new(MemoryVolume::new()));
        volume.fail_at(1, Fault::LostAnswer);
        assert!(volume.create_dir("d").is_err());
        assert!(volume.exists("d").unwrap());
    }

    #[test]
    fn others_go_first_at_the_call_named() {
        let inner = Arc::new(MemoryVolume::new());
        let volume = FaultyVolume::new(Arc::clone(&inner) as Arc<dyn Volume>);
        volume.interrupt_at(2, move || inner.create_dir("b").unwrap());
        volume.create_dir("a").unwrap();
        assert!(volume.create_dir("b").is_err());
    }

    #[test]
    fn a_full_volume_stays_full_until_it_is_healed() {
        let volume = FaultyVolume::new(Arc::new(MemoryVolume::new()));
        volume.fail_from(1, Fault::Full);
        assert!(volume.create("f").is_err() && volume.create("g").is_err());
        assert!(volume.list("").is_ok());
        volume.heal();
        assert!(volume.create("f").is_ok());
    }
}
