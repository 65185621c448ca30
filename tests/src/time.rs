//! The clock of the suites. Processes are waited for by polling until a deadline, never for a fixed time.

#![expect(
    clippy::disallowed_methods,
    reason = "suites of real processes have no other clock than the real one"
)]

use std::time::{Duration, Instant};

/// How often something is looked at that cannot be waited for.
const POLL: Duration = Duration::from_millis(5);

/// What is given to anything that should come at once, on a machine that does much else.
pub const SOON: Duration = Duration::from_secs(20);

/// Time since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// What is left of `limit`; `None` when it has passed.
    pub fn left_of(&self, limit: Duration) -> Option<Duration> {
        limit
            .checked_sub(self.0.elapsed())
            .filter(|left| !left.is_zero())
    }
}

/// Lets real time pass: the load of a suite, or time a broker must notice on its own.
pub fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Asks `probe` until it says something, for at most `limit`. `what` is named if it never does.
pub fn eventually<T>(limit: Duration, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let watch = Stopwatch::start();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(
            watch.left_of(limit).is_some(),
            "{what}: not within {limit:?}"
        );
        pause(POLL);
    }
}

/// A number that differs from run to run.
pub(crate) fn arbitrary() -> u64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("the clock is past 1970");
    since.as_nanos() as u64
}
