//! A small file system of one's own, to be filled up.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::files;

/// A file system in memory, unmounted when the value goes away.
pub struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    /// `None`, and a line that says so, where this process may not mount.
    pub fn mount(test: &str, mebibytes: u32) -> Option<SmallDisk> {
        let directory = TempDir::with_prefix("kaas-disk-").expect("a temporary directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"])
            .arg(directory.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk { directory }),
            refused => {
                // Past the capture of the harness: what did not run is never silent.
                writeln!(
                    std::io::stderr(),
                    "SKIPPED {test}: a tmpfs cannot be mounted here ({refused:?})"
                )
                .expect("stderr is open");
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Leaves no byte free.
    pub fn fill(&self) {
        files::fill(&self.ballast());
    }

    /// Takes back what `fill` took.
    pub fn relieve(&self) {
        files::remove(&self.ballast());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.path()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} stays mounted", self.path().display());
        }
    }
}
