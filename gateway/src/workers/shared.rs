//! What a server's slots share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    DrainTotals, StartFailure, WorkerEvents, WorkerSet, backoff::BackoffTimes, scaler::Scales,
    spawner::Spawner,
};
use crate::config::{ServerConfig, StartedAs};

/// How the first starts of a server's slots went.
#[derive(Debug, Default)]
pub(crate) struct FirstStarts {
    pub(crate) one_is_ready: bool,
    pub(crate) failures: Vec<StartFailure>,
}

/// Times that the config sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) stop_timeout: Duration,
    pub(crate) backoff: BackoffTimes,
}

/// The config as it is now: what a reload changes, it changes as a whole.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) times: Times,
}

impl Setup {
    pub(crate) fn new(config: Arc<ServerConfig>, stop_timeout: Duration) -> Self {
        let settings = &config.settings;
        let backoff = BackoffTimes {
            first: settings.restart_backoff,
            longest: settings.restart_backoff_max,
            max_failures: settings.max_start_failures,
            retry: settings.failed_retry,
        };
        Self { times: Times { stop_timeout, backoff }, config }
    }
}

/// What a server's slots share.
pub(crate) struct Shared {
    pub(crate) server: String,
    pub(crate) setup: ArcSwap<Setup>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) events: Arc<dyn WorkerEvents>,
    pub(crate) workers: Arc<WorkerSet>,
    pub(crate) first_starts: watch::Sender<FirstStarts>,
    pub(crate) drains: Drains,
    pub(crate) scales: Scales,
    /// Rolling restarts to another way of starting workers that does not hold for all yet.
    pub(crate) changing_launch: Arc<AtomicUsize>,
    pub(crate) stop: CancellationToken,
}

impl Shared {
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.setup.load().config)
    }

    /// The config, with workers that are started as this.
    pub(crate) fn config_with(&self, started_as: Option<Arc<StartedAs>>) -> Arc<ServerConfig> {
        let config = self.config();
        started_as.map_or_else(|| config.clone(), |started_as| Arc::new(config.with_workers(&started_as)))
    }

    /// Goes by another config from now on, made from the one so far.
    pub(crate) fn adopt(&self, stop_timeout: Duration, next: impl Fn(&ServerConfig) -> ServerConfig) {
        self.setup.rcu(|setup| Setup::new(Arc::new(next(&setup.config)), stop_timeout));
    }

    /// Starts workers as this from now on.
    pub(crate) fn adopt_workers(&self, started_as: &StartedAs) {
        self.adopt(self.stop_timeout(), |now| now.with_workers(started_as));
    }

    /// Whether workers that are started now may be started in a way that is to be replaced.
    pub(crate) fn is_changing_launch(&self) -> bool {
        self.changing_launch.load(Ordering::SeqCst) > 0
    }

    /// Says that a rolling restart to another way of starting workers is under way, until it is dropped.
    pub(crate) fn change_launch(&self) -> LaunchChange {
        self.changing_launch.fetch_add(1, Ordering::SeqCst);
        LaunchChange(Arc::clone(&self.changing_launch))
    }

    /// How long a drain may take; `None`: for ever.
    pub(crate) fn drain_timeout(&self) -> Option<Duration> {
        self.setup.load().config.settings.drain_timeout
    }

    pub(crate) fn stop_timeout(&self) -> Duration {
        self.setup.load().times.stop_timeout
    }

    pub(crate) fn max_surge(&self) -> usize {
        self.setup.load().config.settings.max_surge
    }
}

/// A rolling restart whose way of starting workers does not hold for all yet.
pub(crate) struct LaunchChange(Arc<AtomicUsize>);

impl Drop for LaunchChange {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What drains have cost.
#[derive(Debug, Default)]
pub(crate) struct Drains {
    cut: AtomicU64,
    lost: AtomicU64,
}

impl Drains {
    /// One was cut, with so many sessions.
    pub(crate) fn note(&self, lost: u64) {
        self.cut.fetch_add(1, Ordering::Relaxed);
        self.lost.fetch_add(lost, Ordering::Relaxed);
    }

    pub(crate) fn totals(&self) -> DrainTotals {
        DrainTotals { cut: self.cut.load(Ordering::Relaxed), lost: self.lost.load(Ordering::Relaxed) }
    }
}
