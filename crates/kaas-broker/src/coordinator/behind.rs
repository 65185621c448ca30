//! Which group's file is written next: pure scheduling of the write-behind.
//!
//! A changed group's file follows oldest first, each at most once an interval, all together at most so many a second,
//! and never two operations on one file at a time. What is written, and how, is the actor's business.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use fnv::FnvHashMap;

/// File operations under way at once.
const CONCURRENT: usize = 4;

/// After a failed operation the same file is tried again after this.
const RETRY_MS: u64 = 500;

#[derive(Default)]
pub struct Behind {
    interval_ms: u64,
    /// Microseconds between two operations.
    spacing_us: u64,
    /// When the next operation may start, in microseconds.
    free_at_us: u64,
    due: BTreeSet<(u64, Arc<str>)>,
    files: FnvHashMap<Arc<str>, File>,
    /// Files that were current when written, oldest first: forgotten once their interval is over.
    settled: VecDeque<(u64, Arc<str>)>,
    under_way: usize,
}

#[derive(Default)]
struct File {
    written_ms: Option<u64>,
    due_ms: Option<u64>,
    under_way: bool,
    /// The group left memory while an operation was under way: a failed one is not repeated.
    forgotten: bool,
}

impl Behind {
    /// `rate` is in files a second.
    pub fn new(interval_ms: u64, rate: u64) -> Behind {
        let mut behind = Behind::default();
        behind.configure(interval_ms, rate);
        behind
    }

    pub fn configure(&mut self, interval_ms: u64, rate: u64) {
        self.interval_ms = interval_ms;
        self.spacing_us = 1_000_000 / rate.max(1);
    }

    /// The group's file no longer says what the journal says.
    pub fn changed(&mut self, now_ms: u64, group: &Arc<str>) {
        let file = match self.files.get_mut(group) {
            Some(file) => file,
            None => self.files.entry(Arc::clone(group)).or_default(),
        };
        file.forgotten = false;
        if file.due_ms.is_some() {
            return;
        }
        let due = match file.written_ms {
            Some(written) => now_ms.max(written + self.interval_ms),
            None => now_ms,
        };
        file.due_ms = Some(due);
        if !file.under_way {
            self.due.insert((due, Arc::clone(group)));
        }
    }

    /// When `next` is worth asking, in milliseconds.
    pub fn next_due(&self) -> Option<u64> {
        if self.under_way >= CONCURRENT {
            return None;
        }
        let (due, _) = self.due.first()?;
        Some((*due).max(self.free_at_us.div_ceil(1_000)))
    }

    /// The group whose file is to be written now.
    pub fn next(&mut self, now_us: u64) -> Option<Arc<str>> {
        let now_ms = now_us / 1_000;
        let (due, _) = self.due.first()?;
        if *due > now_ms || self.free_at_us > now_us || self.under_way >= CONCURRENT {
            return None;
        }
        // What the clock's grain lost is not lost: up to a few operations catch up.
        let floor = now_us.saturating_sub(CONCURRENT as u64 * self.spacing_us);
        self.free_at_us = self.free_at_us.max(floor) + self.spacing_us;
        self.take_first()
    }

    /// The same without waiting for any interval: for a broker that stops.
    pub fn next_at_once(&mut self) -> Option<Arc<str>> {
        if self.under_way >= CONCURRENT {
            return None;
        }
        self.take_first()
    }

    fn take_first(&mut self) -> Option<Arc<str>> {
        let (_, group) = self.due.pop_first()?;
        let file = self
            .files
            .get_mut(&group)
            .expect("a file that is due is known");
        file.due_ms = None;
        file.under_way = true;
        self.under_way += 1;
        Some(group)
    }

    /// The operation on the group's file is over.
    pub fn finished(&mut self, now_ms: u64, group: &Arc<str>, written: bool) {
        let file = self
            .files
            .get_mut(group)
            .expect("a file under way is known");
        debug_assert!(file.under_way, "an operation that ends was under way");
        file.under_way = false;
        self.under_way -= 1;
        if written {
            file.written_ms = Some(now_ms);
            file.due_ms = file.due_ms.map(|due| due.max(now_ms + self.interval_ms));
        } else if !file.forgotten {
            file.due_ms = Some(now_ms + RETRY_MS);
        }
        match file.due_ms {
            Some(due) => {
                self.due.insert((due, Arc::clone(group)));
            }
            None => self.settled.push_back((now_ms, Arc::clone(group))),
        }
        while let Some((at, _)) = self.settled.front() {
            if at + self.interval_ms > now_ms {
                break;
            }
            let (at, group) = self.settled.pop_front().expect("the front was just seen");
            let is_idle = self.files.get(&group).is_some_and(|file| {
                file.written_ms == Some(at) && file.due_ms.is_none() && !file.under_way
            });
            if is_idle {
                self.files.remove(&group);
            }
        }
    }

    /// The group is gone from memory and its file is somebody else's business.
    pub fn forget(&mut self, group: &str) {
        if let Some(file) = self.files.get_mut(group) {
            if let Some(due) = file.due_ms.take()
                && !file.under_way
            {
                self.due.remove(&(due, Arc::from(group)));
            }
            if file.under_way {
                file.forgotten = true;
            } else {
                self.files.remove(group);
            }
        }
    }

    /// The operation `next` gave out is not begun: the group left memory since its file became due.
    pub fn abandoned(&mut self, group: &Arc<str>) {
        self.files.remove(group);
        self.under_way -= 1;
    }

    pub fn is_under_way(&self, group: &str) -> bool {
        self.files.get(group).is_some_and(|file| file.under_way)
    }

    /// Whether every file says what the journal says.
    pub fn is_idle(&self) -> bool {
        self.due.is_empty() && self.under_way == 0
    }

    /// Files that are behind or being written.
    pub fn len(&self) -> usize {
        self.due.len() + self.under_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str) -> Arc<str> {
        Arc::from(name)
    }

    #[test]
    fn a_file_is_written_at_most_once_an_interval() {
        let mut behind = Behind::new(1_000, 200);
        let a = group("a");
        behind.changed(0, &a);
        assert_eq!(behind.next(0), Some(a.clone()));
        behind.changed(1, &a);
        assert_eq!(behind.next(1_000), None, "an operation is under way");
        behind.finished(5, &a, true);
        assert_eq!(behind.next(1_004_000), None);
        assert_eq!(behind.next_due(), Some(1_005));
        assert_eq!(behind.next(1_005_000), Some(a.clone()));
        behind.finished(1_010, &a, true);
        assert!(behind.is_idle());
    }

    #[test]
    fn all_files_together_keep_the_rate_oldest_first() {
        let mut behind = Behind::new(1_000, 100);
        let groups: Vec<_> = (0..50).map(|n| group(&format!("g{n:02}"))).collect();
        for (at, name) in groups.iter().enumerate() {
            behind.changed(at as u64, name);
        }
        let mut order = Vec::new();
        for ms in 100..400 {
            while let Some(name) = behind.next(ms * 1_000) {
                behind.finished(ms, &name, true);
                order.push(name);
            }
        }
        assert_eq!(order, groups[..order.len()]);
        assert!(
            (28..=35).contains(&order.len()),
            "{} in 300 ms",
            order.len()
        );
    }

    #[test]
    fn a_failed_write_is_tried_again_and_a_change_meanwhile_is_not_lost() {
        let mut behind = Behind::new(1_000, 200);
        let a = group("a");
        behind.changed(0, &a);
        assert!(behind.next(0).is_some());
        behind.finished(10, &a, false);
        assert_eq!(behind.next_due(), Some(510));
        assert!(behind.next(510_000).is_some());
        behind.finished(511, &a, true);
        assert!(behind.is_idle());
    }

    #[test]
    fn a_forgotten_group_is_never_written() {
        let mut behind = Behind::new(1_000, 200);
        behind.changed(0, &group("a"));
        behind.forget("a");
        assert_eq!(behind.next(5_000_000), None);
        assert!(behind.is_idle());
    }
}
