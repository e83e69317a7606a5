//! The two clocks that the rule reads: a monotonic one for lifetimes, and Unix time for signatures.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::session::Millis;

/// Time since the gateway started, and Unix time.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts at 0.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Milliseconds since the start.
    pub fn now(&self) -> Millis {
        self.at(Instant::now())
    }

    /// Milliseconds from the start to `instant`.
    pub fn at(&self, instant: Instant) -> Millis {
        u64::try_from(instant.duration_since(self.0).as_millis()).unwrap_or(u64::MAX)
    }

    /// Seconds since 1970; 0 on a machine whose clock is set before that.
    pub fn unix() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
    }
}
