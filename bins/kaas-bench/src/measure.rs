//! What is counted while a scenario runs. One thread runs all of it, so counting costs no lock.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use kaas_wire::{ApiKey, ErrorCode};

use crate::client::bytes_moved;
use crate::clock;

/// Wrong answers that are kept in words; the rest are counted.
const KEPT_WRONGS: usize = 10;

/// Longest latency that is told apart: microseconds.
const MAX_LATENCY_US: u64 = 10 * 60 * 1_000_000;

const SIGNIFICANT_DIGITS: u8 = 3;

const TELL_EVERY: Duration = Duration::from_secs(1);

pub fn latencies() -> Histogram<u64> {
    Histogram::new_with_max(MAX_LATENCY_US, SIGNIFICANT_DIGITS).expect("the bounds are valid")
}

/// Counters that all connections of a run share.
pub struct Measure {
    /// Whether answers count. Off while things are set up and warm up.
    counting: Cell<bool>,
    stopped: Cell<bool>,
    operations: Cell<u64>,
    latencies: RefCell<Histogram<u64>>,
    errors: RefCell<BTreeMap<(ApiKey, ErrorCode), u64>>,
    wrong_count: Cell<u64>,
    wrongs: RefCell<Vec<String>>,
}

impl Measure {
    pub fn new() -> Rc<Measure> {
        Rc::new(Measure {
            counting: Cell::new(false),
            stopped: Cell::new(false),
            operations: Cell::new(0),
            latencies: RefCell::new(latencies()),
            errors: RefCell::default(),
            wrong_count: Cell::new(0),
            wrongs: RefCell::default(),
        })
    }

    /// Whether no request is to be sent any more.
    pub fn stopped(&self) -> bool {
        self.stopped.get()
    }

    pub fn stop(&self) {
        self.counting.set(false);
        self.stopped.set(true);
    }

    /// An answer without error to a request that was to be sent at `from`.
    pub fn answered(&self, from: Instant, now: Instant) {
        if self.counting.get() {
            self.operations.set(self.operations.get() + 1);
            self.latencies
                .borrow_mut()
                .saturating_record(micros(now - from));
        }
    }

    /// Something that is not counted by time.
    pub fn done(&self) {
        self.operations.set(self.operations.get() + 1);
    }

    pub fn error(&self, api: ApiKey, code: ErrorCode) {
        *self.errors.borrow_mut().entry((api, code)).or_default() += 1;
    }

    /// The broker said what cannot be.
    pub fn wrong(&self, what: impl FnOnce() -> String) {
        self.wrong_count.set(self.wrong_count.get() + 1);
        let mut wrongs = self.wrongs.borrow_mut();
        if wrongs.len() < KEPT_WRONGS {
            wrongs.push(what());
        }
    }

    pub fn operations(&self) -> u64 {
        self.operations.get()
    }

    pub fn latency_histogram(&self) -> Histogram<u64> {
        self.latencies.borrow().clone()
    }

    pub fn errors(&self) -> BTreeMap<(ApiKey, ErrorCode), u64> {
        self.errors.borrow().clone()
    }

    pub fn wrongs(&self) -> (u64, Vec<String>) {
        (self.wrong_count.get(), self.wrongs.borrow().clone())
    }

    /// Tells each second how it goes, until the measurement stops.
    pub async fn tell(&self) {
        let start = clock::now();
        let mut told = (start, self.operations(), bytes_moved());
        while !self.stopped() {
            tokio::time::sleep(TELL_EVERY).await;
            let now = (clock::now(), self.operations(), bytes_moved());
            let seconds = (now.0 - told.0).as_secs_f64();
            let bytes = now.2.0 + now.2.1 - told.2.0 - told.2.1;
            eprintln!(
                "{:5.1} s  {:10.0} op/s  {:8.1} MB/s  {} errors",
                (now.0 - start).as_secs_f64(),
                (now.1 - told.1) as f64 / seconds,
                bytes as f64 / seconds / 1e6,
                self.errors.borrow().values().sum::<u64>(),
            );
            told = now;
        }
    }

    /// Lets the connections warm up, then counts for `window` and tells each second how it goes. What is under way at
    /// the end is not counted.
    pub async fn count(&self, warmup: Duration, window: Duration) -> Window {
        tokio::time::sleep(warmup).await;
        self.counting.set(true);
        let start = clock::now();
        let bytes_before = bytes_moved();
        tokio::select! {
            () = tokio::time::sleep(window) => {}
            () = self.tell() => {}
        }
        self.stop();
        let bytes_after = bytes_moved();
        Window {
            seconds: start.elapsed().as_secs_f64(),
            operations: self.operations(),
            bytes_sent: bytes_after.0 - bytes_before.0,
            bytes_received: bytes_after.1 - bytes_before.1,
        }
    }
}

/// What was counted in a stretch of time.
pub struct Window {
    pub seconds: f64,
    pub operations: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

impl Window {
    pub fn per_second(&self) -> f64 {
        self.operations as f64 / self.seconds
    }
}

pub fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
