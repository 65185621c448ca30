#![expect(
    clippy::disallowed_methods,
    reason = "the process reads about itself in /proc, which is no part of the volume"
)]
//! What the kernel says about this process, under the names every Prometheus client library uses.

use std::fs;

use rustix::process::{Resource, getrlimit};

use super::exposition::Page;

/// Clock ticks a second in `/proc/self/stat`, fixed by the kernel's interface.
const TICKS_A_SECOND: f64 = 100.0;

/// Adds what can be found out; a kernel without `/proc` tells nothing.
pub fn write(page: &mut Page) {
    if let Ok(descriptors) = fs::read_dir("/proc/self/fd") {
        // The listing itself holds one.
        let open = descriptors.count().saturating_sub(1);
        page.gauge("process_open_fds", "Open file descriptors.", open);
    }
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    page.gauge(
        "process_max_fds",
        "The most file descriptors there may be.",
        most,
    );
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        for (field, name, help, unit) in [
            (
                "VmRSS:",
                "process_resident_memory_bytes",
                "Memory that is in RAM.",
                1024,
            ),
            (
                "VmSize:",
                "process_virtual_memory_bytes",
                "Memory that is mapped.",
                1024,
            ),
            ("Threads:", "process_threads", "Threads.", 1),
        ] {
            if let Some(number) = status_number(&status, field) {
                page.gauge(name, help, number * unit);
            }
        }
    }
    if let Some(ticks) = fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|stat| cpu_ticks(&stat))
    {
        let name = "process_cpu_seconds_total";
        page.head(name, "counter", "CPU time spent, user and system.");
        page.sample(name, &[], ticks as f64 / TICKS_A_SECOND);
    }
}

fn status_number(status: &str, field: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(field))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Fields are counted behind the process's name, which is in parentheses and may hold anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_says_what_it_takes() {
        let mut page = Page::default();
        write(&mut page);
        let text = page.into_text();
        for name in [
            "process_open_fds",
            "process_max_fds",
            "process_resident_memory_bytes",
            "process_virtual_memory_bytes",
            "process_cpu_seconds_total",
            "process_threads",
        ] {
            let is_there = text
                .lines()
                .any(|line| line.starts_with(&format!("{name} ")));
            assert!(is_there, "{name} is not in\n{text}");
        }
    }

    #[test]
    fn a_process_may_have_any_name() {
        assert_eq!(
            cpu_ticks("7 (a) 1 (b) S 1 2 3 4 5 6 7 8 9 10 40 2 13 14"),
            Some(42)
        );
    }
}
