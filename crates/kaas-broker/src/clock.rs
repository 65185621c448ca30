#![expect(
    clippy::disallowed_methods,
    reason = "the one reader of clocks: everything else is told the time"
)]
//! The clock: a monotonic one for timers, a wall clock for timestamps that are stored or sent.
//!
//! A test makes a clock by hand and moves it; the product has one that follows the system's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Cheap to clone; clones of a clock made by hand move together.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    System {
        started: Instant,
    },
    Manual {
        micros: Arc<AtomicU64>,
        epoch_ms: i64,
    },
}

impl Clock {
    pub fn system() -> Clock {
        Clock {
            source: Source::System {
                started: Instant::now(),
            },
        }
    }

    /// A clock that stands at monotonic 0 and wall time `wall_ms` until `advance` moves it.
    pub fn manual(wall_ms: i64) -> Clock {
        Clock {
            source: Source::Manual {
                micros: Arc::default(),
                epoch_ms: wall_ms,
            },
        }
    }

    /// Moves a clock made by hand.
    ///
    /// # Panics
    /// If the clock is the system's.
    pub fn advance(&self, by: Duration) {
        match &self.source {
            Source::System { .. } => panic!("the system's clock cannot be moved"),
            Source::Manual { micros, .. } => {
                micros.fetch_add(by.as_micros() as u64, Ordering::SeqCst);
            }
        }
    }

    /// Microseconds since the clock was made; never goes back. For durations.
    pub fn mono_us(&self) -> u64 {
        match &self.source {
            Source::System { started } => started.elapsed().as_micros() as u64,
            Source::Manual { micros, .. } => micros.load(Ordering::SeqCst),
        }
    }

    /// Milliseconds since the clock was made; never goes back. For timers and deadlines.
    pub fn mono_ms(&self) -> u64 {
        self.mono_us() / 1_000
    }

    /// Milliseconds since 1970, as stored in records and commits. May jump when the system's clock is set.
    pub fn wall_ms(&self) -> i64 {
        match &self.source {
            Source::System { .. } => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(since) => since.as_millis() as i64,
                Err(before) => -(before.duration().as_millis() as i64),
            },
            Source::Manual { micros, epoch_ms } => {
                epoch_ms + (micros.load(Ordering::SeqCst) / 1_000) as i64
            }
        }
    }

    /// The instant at which `mono_ms` reads `ms`, for a runtime's timer. By a clock made by hand it never comes: whoever
    /// moves such a clock also pokes whoever waits.
    pub fn instant(&self, ms: u64) -> Instant {
        const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);
        match &self.source {
            Source::System { started } => *started + Duration::from_millis(ms).min(NEVER * 30),
            Source::Manual { .. } => Instant::now() + NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_made_by_hand_moves_both_times_together() {
        let clock = Clock::manual(1_700_000_000_000);
        let twin = clock.clone();
        clock.advance(Duration::from_micros(2_500));
        assert_eq!(twin.mono_us(), 2_500);
        assert_eq!(twin.mono_ms(), 2);
        assert_eq!(twin.wall_ms(), 1_700_000_000_002);
    }

    #[test]
    fn the_systems_clock_never_goes_back() {
        let clock = Clock::system();
        let before = clock.mono_us();
        assert!(clock.mono_us() >= before);
        assert!(clock.wall_ms() > 1_700_000_000_000);
    }
}
