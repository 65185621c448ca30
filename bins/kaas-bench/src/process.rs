//! What a process of this machine has used, from `/proc`; and how many connections this one may have.

use std::path::PathBuf;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Linux tells CPU time in hundredths of a second, whatever the kernel's own tick.
const TICKS_PER_SECOND: f64 = 100.0;

/// Watches the process `id`; `self` for this one.
pub struct Process {
    directory: PathBuf,
}

/// At one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub rss_kib: u64,
    pub peak_rss_kib: u64,
}

impl Usage {
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }
}

impl Process {
    pub fn new(id: &str) -> Process {
        Process {
            directory: PathBuf::from("/proc").join(id),
        }
    }

    pub fn usage(&self) -> anyhow::Result<Usage> {
        let stat = self.read("stat")?;
        // The name in the second field may hold blanks: the fields are counted from the parenthesis that closes it.
        let (_, fields) = stat.rsplit_once(')').context("/proc stat has no name")?;
        let mut ticks = fields
            .split_whitespace()
            .skip(11)
            .map(|field| field.parse::<f64>());
        let mut next = || {
            ticks
                .next()
                .context("/proc stat is too short")?
                .context("/proc stat has no number")
        };
        let (user, system) = (next()?, next()?);
        let status = self.read("status")?;
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next())
                .and_then(|number| number.parse().ok())
                .with_context(|| format!("/proc status has no {name}"))
        };
        Ok(Usage {
            user_seconds: user / TICKS_PER_SECOND,
            system_seconds: system / TICKS_PER_SECOND,
            rss_kib: kib("VmRSS:")?,
            peak_rss_kib: kib("VmHWM:")?,
        })
    }

    fn read(&self, file: &str) -> anyhow::Result<String> {
        let path = self.directory.join(file);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }
}

/// Takes all the descriptors that the system grants.
pub fn raise_descriptor_limit() -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )
    .context("cannot raise the limit of open descriptors")
}

/// The processor, their number, the kernel.
pub fn machine() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
    format!(
        "{cores} cores of {}, Linux {}",
        processor.as_deref().unwrap_or("an unnamed processor"),
        kernel.as_deref().map_or("of unknown release", str::trim),
    )
}
