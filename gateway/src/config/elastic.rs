//! How many workers a server may have.

use super::{
    model::{ServerConfig, ServerSettings},
    section::Section,
};

/// The bounds of the number of workers, which is fixed by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElasticSettings {
    /// The fewest workers; `None`: `num_workers`.
    pub min_workers: Option<u16>,
    /// The most workers; `None`: `num_workers`.
    pub max_workers: Option<u16>,
    /// How many sessions a worker is to have at most; `None`: more are started only when requests wait for room.
    pub target_sessions_per_worker: Option<usize>,
}

impl ElasticSettings {
    /// Each key with its value, in words.
    fn values(&self) -> [(&'static str, Option<usize>); 3] {
        // A new key does not compile here until somebody has named it.
        let Self { min_workers, max_workers, target_sessions_per_worker } = self;
        [
            ("min_workers", min_workers.map(usize::from)),
            ("max_workers", max_workers.map(usize::from)),
            ("target_sessions_per_worker", *target_sessions_per_worker),
        ]
    }

    /// The keys whose values are others in `new`.
    pub(super) fn changed_to(&self, new: &Self) -> impl Iterator<Item = &'static str> {
        let pairs = self.values().into_iter().zip(new.values());
        pairs.filter(|(old, new)| old != new).map(|((key, _), _)| key)
    }

    /// What `check` shows.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&'static str, String)> {
        let text = |(key, value): (&'static str, Option<usize>)| {
            let default = if key == "target_sessions_per_worker" { "none" } else { "num_workers" };
            (key, value.map_or_else(|| default.into(), |value| value.to_string()))
        };
        self.values().into_iter().map(text)
    }
}

/// Reads a server's bounds.
pub(super) fn read(section: &Section<'_>) -> ElasticSettings {
    let workers = |key| section.whole(key, 1..=1024).and_then(|n| u16::try_from(n).ok());
    ElasticSettings {
        min_workers: workers("min_workers"),
        max_workers: workers("max_workers"),
        target_sessions_per_worker: section
            .whole("target_sessions_per_worker", 1..=1 << 30)
            .map(|n| n as usize),
    }
}

/// What does not go together; with the key that is wrong.
pub(super) fn complaint(num_workers: u16, settings: &ServerSettings) -> Option<(&'static str, String)> {
    let ElasticSettings { min_workers, max_workers, target_sessions_per_worker } = settings.elastic;
    if let Some(min) = min_workers.filter(|min| *min > num_workers) {
        return Some((
            "min_workers",
            format!("{min} is more than num_workers, {num_workers}, of which it starts"),
        ));
    }
    if let Some(max) = max_workers.filter(|max| *max < num_workers) {
        return Some((
            "max_workers",
            format!("{max} is less than num_workers, {num_workers}, of which it starts"),
        ));
    }
    let is_elastic = min_workers.unwrap_or(num_workers) < max_workers.unwrap_or(num_workers);
    let has_signal =
        target_sessions_per_worker.is_some() || settings.limits.max_in_flight_per_worker.is_some();
    (is_elastic && !has_signal).then(|| {
        let key = if max_workers.is_some() { "max_workers" } else { "min_workers" };
        let what = "needs target_sessions_per_worker, or max_in_flight_per_worker: without them nothing says when there is too much to do";
        (key, what.into())
    })
}

impl ServerConfig {
    /// The fewest and the most workers; the same where their number is fixed.
    pub fn workers_range(&self) -> (u16, u16) {
        let ElasticSettings { min_workers, max_workers, .. } = self.settings.elastic;
        (min_workers.unwrap_or(self.num_workers), max_workers.unwrap_or(self.num_workers))
    }

    /// The most workers that it may ever have.
    pub fn most_workers(&self) -> u16 {
        self.workers_range().1
    }
}
