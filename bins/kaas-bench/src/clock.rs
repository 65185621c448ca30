#![expect(
    clippy::disallowed_methods,
    reason = "a measurement reads the clock: here, and nowhere else in this program"
)]

//! What time it is.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since the epoch.
pub fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}
