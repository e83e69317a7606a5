//! Tells systemd, or another manager that speaks its protocol (`sd_notify(3)`), how the gateway is. Without
//! `NOTIFY_SOCKET` in its environment nothing is told.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

/// What a service manager puts into the environment of the process that it starts, and of no other.
pub const VARIABLES: [&str; 6] =
    ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];

/// The start is done, or a reload.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// A reload has begun; [`ready`] ends it.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "cannot read the clock to tell the service manager of a reload"),
    }
}

/// The stop has begun.
pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("requests in flight may finish")]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot tell the service manager {states:?}");
    }
}

/// Shows a service manager that asked for it (`WatchdogSec=`) that the gateway still turns.
#[derive(Debug)]
pub struct Watchdog {
    every: Option<Duration>,
    last: Option<Instant>,
}

impl Watchdog {
    /// As the environment says.
    pub fn of_environment() -> Self {
        // Twice in the time that it is given, as the manual has it.
        Self { every: sd_notify::watchdog_enabled().map(|limit| limit / 2), last: None }
    }

    /// To be called again and again from what has to turn; tells as often as is needed.
    pub fn beat(&mut self, now: Instant) {
        if self.is_due(now) {
            self.last = Some(now);
            tell(&[NotifyState::Watchdog]);
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        let Some(every) = self.every else { return false };
        self.last.is_none_or(|last| now.saturating_duration_since(last) >= every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_is_told_twice_in_its_time_and_none_never() {
        let start = Instant::now();
        let mut watchdog = Watchdog { every: Some(Duration::from_secs(15)), last: None };
        assert!(watchdog.is_due(start));
        watchdog.beat(start);
        assert!(!watchdog.is_due(start + Duration::from_secs(14)));
        assert!(watchdog.is_due(start + Duration::from_secs(15)));
        assert!(!Watchdog { every: None, last: None }.is_due(start));
    }
}
