//! How far a start has come, and how long each part of it took.

use std::{fmt, time::Duration};

use tokio::time::Instant;

use super::Phase;

/// How far a start has come.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// The phase that it is in.
    pub(crate) phase: Phase,
    /// What is waited for, or was seen last.
    pub(crate) seen: String,
    since: Instant,
    /// The time in each phase, as of the last change.
    pub(crate) spent: PhaseTimes,
}

impl Progress {
    /// A start that begins now.
    pub(crate) fn begin() -> Self {
        Self {
            phase: Phase::Spawn,
            seen: "its keeper was not started".into(),
            since: Instant::now(),
            spent: PhaseTimes::default(),
        }
    }

    /// It is in this phase now. (A worker may listen no more: that is one phase back.)
    pub(crate) fn reach(&mut self, phase: Phase, seen: impl Into<String>) {
        self.spent_now();
        (self.phase, self.seen) = (phase, seen.into());
        // A phase that a start came to is told, even if it failed there at once.
        self.spent.add(phase, Duration::ZERO);
    }

    /// Counts the time up to now.
    pub(crate) fn spent_now(&mut self) {
        let now = Instant::now();
        self.spent.add(self.phase, now.duration_since(self.since));
        self.since = now;
    }
}

/// The time that a start spent in each phase it came to, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes(Vec<(Phase, Duration)>);

impl PhaseTimes {
    fn add(&mut self, phase: Phase, time: Duration) {
        match self.0.binary_search_by_key(&phase, |(phase, _)| *phase) {
            Ok(place) => self.0[place].1 += time,
            Err(place) => self.0.insert(place, (phase, time)),
        }
    }

    /// Each phase with its time.
    pub fn iter(&self) -> impl Iterator<Item = (Phase, Duration)> + '_ {
        self.0.iter().copied()
    }

    /// The time of all phases.
    pub fn total(&self) -> Duration {
        self.iter().map(|(_, time)| time).sum()
    }
}

impl fmt::Display for PhaseTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.total().as_secs_f64())?;
        for (n, (phase, time)) in self.iter().enumerate() {
            write!(f, "{}{phase} {:.1} s", if n == 0 { ": " } else { ", " }, time.as_secs_f64())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_phase_that_comes_again_adds_to_its_time() {
        let mut progress = Progress::begin();
        for (phase, seconds) in [(Phase::Exec, 1), (Phase::Listen, 2), (Phase::Probe, 3), (Phase::Listen, 4)]
        {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            progress.reach(phase, "");
        }
        tokio::time::advance(Duration::from_secs(5)).await;
        progress.spent_now();
        assert_eq!(progress.spent.to_string(), "15.0 s: spawn 1.0 s, exec 2.0 s, listen 8.0 s, probe 4.0 s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_phase_that_failed_at_once_is_told() {
        let mut progress = Progress::begin();
        progress.reach(Phase::Listen, "it exited with status 3");
        assert_eq!(progress.spent.to_string(), "0.0 s: spawn 0.0 s, listen 0.0 s");
    }
}
