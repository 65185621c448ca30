//! Answers whose changes are on their way to the disk, in the order in which they were submitted. The actor puts them
//! in, the release task takes out what became durable, and the actor what has waited too long.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::waiter::Waiter;

#[derive(Default)]
pub struct Unsettled {
    queue: Mutex<VecDeque<Entry>>,
}

struct Entry {
    /// The last change that was submitted with it or before it.
    change: u64,
    submitted_ms: u64,
    waiter: Waiter,
}

impl Unsettled {
    pub fn push(&self, change: u64, submitted_ms: u64, waiters: impl Iterator<Item = Waiter>) {
        let mut queue = self.queue.lock();
        debug_assert!(
            queue.back().is_none_or(|last| last.change <= change),
            "changes are submitted in order"
        );
        queue.extend(waiters.map(|waiter| Entry {
            change,
            submitted_ms,
            waiter,
        }));
    }

    /// Takes out what rests on changes up to this one.
    pub fn settle(&self, change: u64) -> Vec<Waiter> {
        let mut queue = self.queue.lock();
        let settled = queue.partition_point(|entry| entry.change <= change);
        queue.drain(..settled).map(|entry| entry.waiter).collect()
    }

    /// Takes out what was submitted at this time or before.
    pub fn expire(&self, submitted_ms: u64) -> Vec<Waiter> {
        let mut queue = self.queue.lock();
        let expired = queue.partition_point(|entry| entry.submitted_ms <= submitted_ms);
        queue.drain(..expired).map(|entry| entry.waiter).collect()
    }

    /// When the oldest was submitted.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.queue.lock().front().map(|entry| entry.submitted_ms)
    }

    pub fn is_empty(&self) -> bool {
        self.queue.lock().is_empty()
    }
}
