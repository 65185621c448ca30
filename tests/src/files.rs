//! What a suite sees and spoils of a broker's volume and of its process, behind the broker's back.

#![expect(
    clippy::disallowed_methods,
    reason = "a suite looks at a volume from outside, as an operator does"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Every file below `root` with its bytes, every directory with none.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).expect("the directory is there") {
            let path = entry.expect("the entry reads").path();
            let name = path
                .strip_prefix(root)
                .expect("it is below root")
                .to_owned();
            if path.is_dir() {
                found.insert(name, None);
                left.push(path);
            } else {
                found.insert(name, Some(fs::read(&path).expect("the file reads")));
            }
        }
    }
    found
}

/// The names in a directory, in order.
pub fn list(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .expect("the directory is there")
        .map(|entry| {
            let name = entry.expect("the entry reads").file_name();
            name.into_string().expect("names are ASCII")
        })
        .collect();
    names.sort();
    names
}

pub fn read(path: &Path) -> Option<Vec<u8>> {
    fs::read(path).ok()
}

pub fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
}

/// Makes a file that takes all there is.
pub fn fill(path: &Path) {
    let mut file = fs::File::create(path).expect("a file is made");
    for size in [1024 * 1024, 4 * 1024, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

pub fn remove(path: &Path) {
    fs::remove_file(path).unwrap_or_else(|error| panic!("remove {}: {error}", path.display()));
}

/// Resident memory of a process in bytes.
pub fn resident(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a process has memory");
    let kib: usize = line
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .expect("it is a number");
    kib * 1024
}
