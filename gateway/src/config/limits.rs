//! The limits of a server's workers. Each is off by default.

use std::time::Duration;

use super::section::{Section, Zero};

/// When a worker is replaced or aborted, and how much it is given at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerLimits {
    /// After so many answered requests.
    pub max_requests: Option<u64>,
    /// After so many sessions, those that are over among them.
    pub max_sessions: Option<u64>,
    /// After that time, less up to a fifth at random.
    pub max_lifetime: Option<Duration>,
    /// Above this resident memory of its process tree, at [`WorkerLimits::max_memory_samples`] looks in a row.
    pub max_memory_bytes: Option<u64>,
    /// How many looks in a row, a second apart; default 3.
    pub max_memory_samples: u32,
    /// How many requests each may have at a time; more wait.
    pub max_in_flight_per_worker: Option<usize>,
    /// How many may wait for each; more are refused; default 100.
    pub max_queued_per_worker: usize,
    /// A worker that for so long has answered neither a request nor a probe is aborted.
    pub hang_timeout: Option<Duration>,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self {
            max_requests: None,
            max_sessions: None,
            max_lifetime: None,
            max_memory_bytes: None,
            max_memory_samples: 3,
            max_in_flight_per_worker: None,
            max_queued_per_worker: 100,
            hang_timeout: None,
        }
    }
}

impl WorkerLimits {
    /// Each key with its value; `None`: no limit.
    pub fn values(&self) -> Vec<(&'static str, Option<f64>)> {
        // A new limit does not compile here until somebody has named it.
        let Self {
            max_requests,
            max_sessions,
            max_lifetime,
            max_memory_bytes,
            max_memory_samples,
            max_in_flight_per_worker,
            max_queued_per_worker,
            hang_timeout,
        } = self;
        let whole = |value: &Option<u64>| value.map(|value| value as f64);
        let seconds = |value: &Option<Duration>| value.map(|value| value.as_secs_f64());
        vec![
            ("max_requests", whole(max_requests)),
            ("max_sessions", whole(max_sessions)),
            ("max_lifetime_seconds", seconds(max_lifetime)),
            ("max_memory_bytes", whole(max_memory_bytes)),
            ("max_memory_samples", Some(f64::from(*max_memory_samples))),
            ("max_in_flight_per_worker", max_in_flight_per_worker.map(|limit| limit as f64)),
            ("max_queued_per_worker", Some(*max_queued_per_worker as f64)),
            ("hang_timeout_seconds", seconds(hang_timeout)),
        ]
    }

    /// Whether there is any for which workers are replaced.
    pub fn replace_workers(&self) -> bool {
        self.max_requests.is_some()
            || self.max_sessions.is_some()
            || self.max_lifetime.is_some()
            || self.max_memory_bytes.is_some()
    }

    /// The keys whose values are others in `new`.
    pub(super) fn changed_to(&self, new: &Self) -> impl Iterator<Item = &'static str> {
        let pairs = self.values().into_iter().zip(new.values());
        pairs.filter(|(old, new)| old != new).map(|((key, _), _)| key)
    }

    /// What `check` shows.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&'static str, String)> {
        let text = |value: Option<f64>| value.map_or("no limit".into(), |value| value.to_string());
        self.values().into_iter().map(move |(key, value)| (key, text(value)))
    }
}

/// Reads a server's limits.
pub(super) fn read(section: &Section<'_>) -> WorkerLimits {
    let default = WorkerLimits::default();
    let count = |key| section.whole(key, 1..=1 << 50);
    WorkerLimits {
        max_requests: count("max_requests"),
        max_sessions: count("max_sessions"),
        max_lifetime: section.seconds("max_lifetime_seconds", Zero::Refused),
        max_memory_bytes: count("max_memory_bytes"),
        max_memory_samples: section
            .whole("max_memory_samples", 1..=3600)
            .and_then(|n| u32::try_from(n).ok())
            .unwrap_or(default.max_memory_samples),
        max_in_flight_per_worker: section.whole("max_in_flight_per_worker", 1..=1 << 20).map(|n| n as usize),
        max_queued_per_worker: section
            .whole("max_queued_per_worker", 0..=1 << 20)
            .map_or(default.max_queued_per_worker, |n| n as usize),
        hang_timeout: section.seconds("hang_timeout_seconds", Zero::Refused),
    }
}
