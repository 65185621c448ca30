//! What is to happen if something else has not happened by then: many deadlines of which hardly any is ever reached.

use std::collections::BTreeMap;

use parking_lot::Mutex;

type Action = Box<dyn FnOnce() + Send>;

/// Checked by the upkeep of the partitions; a deadline is late by that interval at most.
#[derive(Default)]
pub struct Timeouts {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next_number: u64,
    actions: BTreeMap<Timeout, Action>,
}

/// Names one deadline, to cancel it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timeout {
    at_ms: u64,
    number: u64,
}

impl Timeouts {
    /// Runs `action` once the monotonic clock reads `at_ms`, unless it is cancelled before.
    pub fn at(&self, at_ms: u64, action: impl FnOnce() + Send + 'static) -> Timeout {
        let mut inner = self.inner.lock();
        let timeout = Timeout {
            at_ms,
            number: inner.next_number,
        };
        inner.next_number += 1;
        inner.actions.insert(timeout, Box::new(action));
        timeout
    }

    /// Forgets a deadline. It may be running already.
    pub fn cancel(&self, timeout: Timeout) {
        // Dropped after the lock: what the action holds may do anything when it goes.
        let cancelled = self.inner.lock().actions.remove(&timeout);
        drop(cancelled);
    }

    /// Runs what is due.
    pub fn run(&self, now_ms: u64) {
        loop {
            let action = {
                let mut inner = self.inner.lock();
                match inner.actions.first_key_value() {
                    Some((timeout, _)) if timeout.at_ms <= now_ms => inner.actions.pop_first(),
                    _ => None,
                }
            };
            let Some((_, action)) = action else { return };
            action();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn deadlines_run_once_in_their_order_and_cancelled_ones_never() {
        let timeouts = Timeouts::default();
        let ran = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str| {
            let ran = ran.clone();
            move || ran.lock().push(what)
        };
        timeouts.at(20, note("late"));
        timeouts.at(10, note("early"));
        let never = timeouts.at(15, note("never"));
        timeouts.cancel(never);
        timeouts.run(9);
        assert!(ran.lock().is_empty());
        timeouts.run(20);
        timeouts.run(30);
        assert_eq!(*ran.lock(), ["early", "late"]);
    }
}
