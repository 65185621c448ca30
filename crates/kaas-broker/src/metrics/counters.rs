//! Counters that many threads add to without waiting for each other.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// As many copies as threads are likely to count at one time. More threads share copies, which is slower and not wrong.
const SHARDS: usize = 8;

/// One `T` for each of a few threads. On cache lines of their own, so that they do not slow each other down.
pub struct PerThread<T> {
    shards: Box<[Shard<T>]>,
}

#[repr(align(128))]
struct Shard<T>(T);

impl<T> PerThread<T> {
    pub fn new(make: impl Fn() -> T) -> PerThread<T> {
        PerThread {
            shards: (0..SHARDS).map(|_| Shard(make())).collect(),
        }
    }

    /// This thread's.
    pub fn mine(&self) -> &T {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        let shard = SHARD.get();
        if shard < SHARDS {
            return &self.shards[shard].0;
        }
        let shard = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS;
        SHARD.set(shard);
        &self.shards[shard].0
    }

    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.shards.iter().map(|shard| &shard.0)
    }
}

/// A number that only grows.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper ends of the buckets of every histogram, in microseconds; above the last is one more bucket.
pub const BUCKETS_US: [u64; 17] = [
    50,
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    5_000_000,
    30_000_000,
    300_000_000,
];

/// How long things took.
#[derive(Default)]
pub struct Histogram {
    buckets: [Counter; BUCKETS_US.len() + 1],
    sum_us: Counter,
}

impl Histogram {
    pub fn observe(&self, took_us: u64) {
        self.buckets[BUCKETS_US.partition_point(|end| *end < took_us)].add(1);
        self.sum_us.add(took_us);
    }

    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        totals.add(self);
        totals
    }
}

/// What one histogram or several come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// By bucket, not cumulated.
    pub buckets: [u64; BUCKETS_US.len() + 1],
    pub sum_us: u64,
}

impl Totals {
    pub fn add(&mut self, histogram: &Histogram) {
        for (total, bucket) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *total += bucket.get();
        }
        self.sum_us += histogram.sum_us.get();
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_duration_counts_in_the_bucket_it_does_not_exceed() {
        let histogram = Histogram::default();
        for took_us in [0, 50, 51, 100, 300_000_000, 300_000_001] {
            histogram.observe(took_us);
        }
        let totals = histogram.totals();
        assert_eq!(
            (
                totals.buckets[0],
                totals.buckets[1],
                totals.buckets[16],
                totals.buckets[17]
            ),
            (2, 2, 1, 1)
        );
        assert_eq!((totals.count(), totals.sum_us), (6, 600_000_202));
    }

    #[test]
    fn what_all_threads_count_adds_up() {
        let counters = Arc::new(PerThread::new(Counter::default));
        let threads: Vec<_> = (0..20)
            .map(|_| {
                let counters = counters.clone();
                std::thread::spawn(move || (0..1000).for_each(|_| counters.mine().add(1)))
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(counters.all().map(Counter::get).sum::<u64>(), 20_000);
    }
}
