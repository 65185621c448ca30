//! Group commit for logs: many appends to many partitions under few syncs, then one token rename for all (rule 6), then
//! the answers.
//!
//! Two threads take turns: while one answers for the round it made durable, the other gathers and syncs the next. The
//! files of a round are synced side by side, because a file system commits them together.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use fnv::FnvHashMap;
use kaas_wire::ErrorCode;
use parking_lot::{Condvar, Mutex};

use super::{Appended, Flush, FlushPoint, Log, LogError};
use crate::error::StorageError;
use crate::session::Session;

/// How many files are synced at a time. Measured on ext4: four do twice as well as one, more hardly better.
const SYNC_THREADS: usize = 6;
/// A log that took this much since its last checkpoint gets a new one, so that opening it after a crash stays quick.
const CHECKPOINT_BYTES: u64 = 64 << 20;

/// A log to which nothing was written from one tick to the next gets one too, so many of them a tick.
const IDLE_TICK: Duration = Duration::from_secs(5);
const IDLE_CHECKPOINTS: usize = 50;

/// Told when an append is durable and visible, or why it never will be. Runs on a flusher's thread, or on the caller's
/// if the append counts already: short, and it must not block.
pub type Callback = Box<dyn FnOnce(Result<(), LogError>) + Send>;

/// Stops when dropped, after what was asked for is done.
pub struct Flusher {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    session: Arc<Session>,
    gathering: Mutex<Gathering>,
    gathered: Condvar,
    /// Held by the thread whose round is being synced.
    turn: Mutex<()>,
    work: Mutex<Work>,
    work_came: Condvar,
    checkpoints: Mutex<Checkpoints>,
    checkpoint_came: Condvar,
}

#[derive(Default)]
struct Gathering {
    waiters: Vec<Waiter>,
    stopping: bool,
}

struct Waiter {
    log: Arc<Log>,
    point: Option<FlushPoint>,
    callback: Callback,
}

#[derive(Default)]
struct Work {
    rounds: VecDeque<Arc<Round>>,
    stopping: bool,
}

#[derive(Default)]
struct Checkpoints {
    due: VecDeque<Arc<Log>>,
    /// By directory: what was flushed since its last checkpoint, and the high watermark at the last tick.
    flushed: HashMap<String, (Weak<Log>, i64)>,
    stopping: bool,
}

impl Checkpoints {
    fn note(&mut self, log: &Arc<Log>) {
        if log.wants_checkpoint(CHECKPOINT_BYTES) {
            self.due.push_back(log.clone());
        } else if !self.flushed.contains_key(log.dir()) {
            self.flushed
                .insert(log.dir().to_owned(), (Arc::downgrade(log), -1));
        }
    }

    /// Moves what has come to rest since the last tick to what is due.
    fn tick(&mut self) {
        let Checkpoints { due, flushed, .. } = self;
        flushed.retain(|_, (log, seen)| {
            let Some(log) = log.upgrade() else {
                return false;
            };
            let high_watermark = log
                .known_offsets()
                .map_or(-1, |offsets| offsets.high_watermark);
            let rests = high_watermark == *seen && due.len() < IDLE_CHECKPOINTS;
            *seen = high_watermark;
            if rests {
                due.push_back(log);
            }
            !rests
        });
    }
}

/// The syncs of one round; whoever is free takes the next.
struct Round {
    flushes: Vec<(Arc<Log>, Flush)>,
    next: AtomicUsize,
    results: Mutex<Vec<Option<Result<(), StorageError>>>>,
    all_done: Condvar,
}

impl Round {
    fn work(&self) {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((log, flush)) = self.flushes.get(at) else {
                return;
            };
            let result = log.flush_sync(flush);
            let mut results = self.results.lock();
            results[at] = Some(result);
            if results.iter().all(Option::is_some) {
                self.all_done.notify_all();
            }
        }
    }

    fn wait(&self) -> Vec<Result<(), StorageError>> {
        let mut results = self.results.lock();
        self.all_done
            .wait_while(&mut results, |results| results.iter().any(Option::is_none));
        results.drain(..).flatten().collect()
    }
}

impl Flusher {
    pub fn start(session: Arc<Session>) -> Flusher {
        let shared = Arc::new(Shared {
            session,
            gathering: Mutex::default(),
            gathered: Condvar::new(),
            turn: Mutex::new(()),
            work: Mutex::default(),
            work_came: Condvar::new(),
            checkpoints: Mutex::default(),
            checkpoint_came: Condvar::new(),
        });
        let mut threads = Vec::new();
        let mut spawn = |name: String, run: fn(&Shared)| {
            let shared = shared.clone();
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || run(&shared));
            threads.push(thread.expect("a process can start its threads"));
        };
        for turn in 0..2 {
            spawn(format!("log-flush-{turn}"), Shared::take_turns);
        }
        for worker in 1..SYNC_THREADS {
            spawn(format!("log-sync-{worker}"), Shared::sync);
        }
        spawn("log-checkpoint".to_owned(), Shared::write_checkpoints);
        Flusher { shared, threads }
    }

    /// Calls back when `appended` counts. With `flush.messages` above 1 it counts at once, and a flush only starts if
    /// it is due.
    pub fn flush(&self, log: &Arc<Log>, appended: &Appended, callback: Callback) {
        if !log.counts(appended.flush_point) {
            self.submit(Waiter {
                log: log.clone(),
                point: Some(appended.flush_point),
                callback,
            });
            return;
        }
        callback(Ok(()));
        if appended.flush_is_due {
            self.submit(Waiter {
                log: log.clone(),
                point: None,
                callback: Box::new(|_| {}),
            });
        }
    }

    /// For the broker's timer: starts a flush if `flush.ms` asks for one.
    pub fn flush_if_due(&self, log: &Arc<Log>, now_ms: i64) {
        if log.flush_is_due(now_ms) {
            self.submit(Waiter {
                log: log.clone(),
                point: None,
                callback: Box::new(|_| {}),
            });
        }
    }

    fn submit(&self, waiter: Waiter) {
        let mut gathering = self.shared.gathering.lock();
        gathering.waiters.push(waiter);
        if gathering.waiters.len() == 1 {
            self.shared.gathered.notify_one();
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        let join = |threads: std::vec::Drain<'_, JoinHandle<()>>| {
            for thread in threads {
                if thread.join().is_err() {
                    tracing::error!("a flusher thread panicked");
                }
            }
        };
        self.shared.gathering.lock().stopping = true;
        self.shared.gathered.notify_all();
        join(self.threads.drain(..2));
        self.shared.work.lock().stopping = true;
        self.shared.work_came.notify_all();
        self.shared.checkpoints.lock().stopping = true;
        self.shared.checkpoint_came.notify_all();
        join(self.threads.drain(..));
    }
}

impl Shared {
    fn take_turns(&self) {
        loop {
            let turn = self.turn.lock();
            let waiters = {
                let mut gathering = self.gathering.lock();
                self.gathered
                    .wait_while(&mut gathering, |it| it.waiters.is_empty() && !it.stopping);
                std::mem::take(&mut gathering.waiters)
            };
            if waiters.is_empty() {
                return;
            }
            let outcome = self.round(&waiters);
            drop(turn);
            for waiter in waiters {
                let failed = outcome.get(&Arc::as_ptr(&waiter.log));
                (waiter.callback)(result_for(&waiter.log, waiter.point, failed));
            }
        }
    }

    /// Makes everything appended to the waiters' logs durable. Says which logs failed, and why.
    fn round(&self, waiters: &[Waiter]) -> FnvHashMap<*const Log, StorageError> {
        let mut logs: FnvHashMap<*const Log, &Arc<Log>> = FnvHashMap::default();
        for waiter in waiters {
            logs.insert(Arc::as_ptr(&waiter.log), &waiter.log);
        }
        let flushes: Vec<(Arc<Log>, Flush)> = logs
            .into_values()
            .filter_map(|log| Some((log.clone(), log.flush_begin()?)))
            .collect();
        if flushes.is_empty() {
            return FnvHashMap::default();
        }
        let count = flushes.len();
        let round = Arc::new(Round {
            flushes,
            next: AtomicUsize::new(0),
            results: Mutex::new((0..count).map(|_| None).collect()),
            all_done: Condvar::new(),
        });
        let helpers = (count - 1).min(SYNC_THREADS - 1);
        if helpers > 0 {
            self.work
                .lock()
                .rounds
                .extend(std::iter::repeat_n(round.clone(), helpers));
            self.work_came.notify_all();
        }
        round.work();
        let results = round.wait();
        let verified = if results.iter().any(Result::is_ok) {
            self.session.verify()
        } else {
            Ok(())
        };
        let mut failures = FnvHashMap::default();
        for ((log, flush), synced) in round.flushes.iter().zip(results) {
            if let Err(error) = &synced {
                log.flush_failed(flush, error);
            }
            match synced.and_then(|()| verified.clone()) {
                Ok(()) => {
                    log.flush_done(flush);
                    let mut checkpoints = self.checkpoints.lock();
                    checkpoints.note(log);
                    if !checkpoints.due.is_empty() {
                        self.checkpoint_came.notify_one();
                    }
                }
                Err(error) => {
                    failures.insert(Arc::as_ptr(log), error);
                }
            }
        }
        failures
    }

    fn sync(&self) {
        loop {
            let round = {
                let mut work = self.work.lock();
                self.work_came
                    .wait_while(&mut work, |work| work.rounds.is_empty() && !work.stopping);
                work.rounds.pop_front()
            };
            match round {
                Some(round) => round.work(),
                None => return,
            }
        }
    }

    fn write_checkpoints(&self) {
        loop {
            let log = {
                let mut checkpoints = self.checkpoints.lock();
                while checkpoints.due.is_empty() && !checkpoints.stopping {
                    if self
                        .checkpoint_came
                        .wait_for(&mut checkpoints, IDLE_TICK)
                        .timed_out()
                    {
                        checkpoints.tick();
                    }
                }
                checkpoints.due.pop_front()
            };
            let Some(log) = log else {
                return;
            };
            if let Err(error) = log.checkpoint() {
                tracing::warn!(dir = log.dir(), %error, "no checkpoint could be left; opening the log will take longer");
            }
        }
    }
}

fn result_for(
    log: &Log,
    point: Option<FlushPoint>,
    failed: Option<&StorageError>,
) -> Result<(), LogError> {
    match (point, failed) {
        (Some(point), _) if log.counts(point) => Ok(()),
        (_, Some(error)) => Err(error.clone().into()),
        (None, None) => Ok(()),
        (Some(_), None) => Err(LogError::new(
            ErrorCode::KAFKA_STORAGE_ERROR,
            "the records were taken back because a sync failed",
        )),
    }
}
