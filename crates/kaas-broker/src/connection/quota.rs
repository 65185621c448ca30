//! A bound on something that all connections share: memory of requests, requests in flight.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::answers::Answers;

/// What is left of it, and the connections that wait for more, first come first served.
///
/// As in Kafka's memory pool, a request is let in while anything at all is left, whatever its size: so the bound is
/// exceeded by at most one request of each thread, and no request is too large to ever be let in.
pub(crate) struct Quota {
    /// Which of a connection's flags says that it waits here.
    kind: QuotaKind,
    left: AtomicI64,
    waiting: Mutex<VecDeque<Arc<Answers>>>,
    waiters: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum QuotaKind {
    Bytes,
    Requests,
}

impl Quota {
    pub(crate) fn new(kind: QuotaKind, limit: usize) -> Quota {
        Quota {
            kind,
            left: AtomicI64::new(i64::try_from(limit).unwrap_or(i64::MAX)),
            waiting: Mutex::default(),
            waiters: AtomicUsize::new(0),
        }
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst) > 0
    }

    /// Takes `amount` if anything is left.
    pub(crate) fn try_take(&self, amount: usize) -> bool {
        self.left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                (left > 0).then(|| left - amount as i64)
            })
            .is_ok()
    }

    /// Takes `amount` whatever is left.
    pub(crate) fn take(&self, amount: usize) {
        self.left.fetch_sub(amount as i64, Ordering::SeqCst);
    }

    pub(crate) fn give(&self, amount: usize) {
        self.left.fetch_add(amount as i64, Ordering::SeqCst);
        self.wake_next();
    }

    /// Queues a connection, which then looks once more before it sleeps.
    pub(crate) fn wait(&self, answers: &Arc<Answers>) {
        if !answers.queued[self.kind as usize].swap(true, Ordering::SeqCst) {
            self.waiting.lock().push_back(answers.clone());
            self.waiters.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Wakes the first connection that waits, if there is something left for it. Whoever was woken calls this again
    /// when it has taken its share or gone away.
    pub(crate) fn wake_next(&self) {
        if self.waiters.load(Ordering::SeqCst) == 0 || !self.has_left() {
            return;
        }
        let mut waiting = self.waiting.lock();
        while let Some(answers) = waiting.pop_front() {
            self.waiters.fetch_sub(1, Ordering::SeqCst);
            answers.queued[self.kind as usize].store(false, Ordering::SeqCst);
            if !answers.is_closed() {
                answers.wake();
                return;
            }
        }
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) > 0
    }

    #[cfg(test)]
    pub(crate) fn left(&self) -> i64 {
        self.left.load(Ordering::SeqCst)
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiters.load(Ordering::SeqCst)
    }
}
