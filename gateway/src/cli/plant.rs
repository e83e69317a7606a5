//! Everything that runs: the servers with their workers, and what they share.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::workers::{Events, Workers};
use crate::{
    admin::{Refused, Reloaded, RequestMetrics},
    config::{Config, GatewaySettings, ServerConfig},
    proxy::{Budget, Clock, Observer, Opener, Places, ServerState, Shared, Stop},
    workers::Supervisor,
};

/// One server and its workers.
pub(super) struct Unit {
    pub(super) state: Arc<ServerState>,
    /// What it was added as.
    config: Arc<ServerConfig>,
    /// By a reload.
    pub(super) was_added: bool,
    supervisor: OnceLock<Supervisor>,
}

impl Unit {
    /// Its workers' supervisor; none before they were started.
    pub(super) fn supervisor(&self) -> Option<&Supervisor> {
        self.supervisor.get()
    }

    /// Its config as it is now.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.supervisor().map_or_else(|| self.config.clone(), Supervisor::config)
    }
}

/// The gateway's parts.
pub(super) struct Plant {
    pub(super) gateway: ArcSwap<GatewaySettings>,
    pub(super) shared: Arc<Shared>,
    pub(super) metrics: RequestMetrics,
    /// What a reload reads; `None`: there are no files.
    pub(super) files: Option<Vec<PathBuf>>,
    pub(super) binary: PathBuf,
    /// In the order of the config; those that were removed stay until their workers are gone.
    units: ArcSwap<Vec<Arc<Unit>>>,
    next_index: Mutex<usize>,
    pub(super) opener: OnceLock<Opener>,
    reloads: mpsc::UnboundedSender<ReloadOrder>,
    /// Held by a reload, and by the stop once it ends workers.
    pub(super) changing: tokio::sync::Mutex<()>,
    failure: Mutex<Option<String>>,
    /// Cancelled when the start has failed.
    pub(super) failed: CancellationToken,
}

/// A reload that somebody waits for.
pub(super) type ReloadOrder = oneshot::Sender<Result<Reloaded, Refused>>;

impl Plant {
    /// Puts the parts together; nothing runs yet.
    pub(super) fn new(
        config: Config,
        files: Option<Vec<PathBuf>>,
        metrics: RequestMetrics,
        binary: PathBuf,
    ) -> (Arc<Self>, Workers) {
        let shared = Shared {
            clock: Clock::start(),
            budget: Budget::new(config.gateway.max_buffered_bytes),
            observer: Observer::new(metrics.clone(), config.gateway.access_log),
            stop: Stop::default(),
            places: Places::for_open_files(),
            servers: ArcSwap::default(),
        };
        let (reloads, orders) = mpsc::unbounded_channel();
        let plant = Arc::new(Self {
            gateway: ArcSwap::from_pointee(config.gateway),
            shared: Arc::new(shared),
            metrics,
            files,
            binary,
            units: ArcSwap::default(),
            next_index: Mutex::new(0),
            opener: OnceLock::new(),
            reloads,
            changing: tokio::sync::Mutex::default(),
            failure: Mutex::new(None),
            failed: CancellationToken::new(),
        });
        plant.set_units(config.servers.into_iter().map(|server| plant.unit(server, false)).collect());
        let workers = Workers { plant: plant.clone(), orders };
        (plant, workers)
    }

    /// A server that does not run yet; whether a reload has added it.
    pub(super) fn unit(&self, config: ServerConfig, was_added: bool) -> Arc<Unit> {
        let mut next = self.next_index.lock().unwrap_or_else(PoisonError::into_inner);
        let state = Arc::new(ServerState::new(*next, &config));
        *next += 1;
        Arc::new(Unit { state, config: Arc::new(config), was_added, supervisor: OnceLock::new() })
    }

    /// The servers, in the order of the config.
    pub(super) fn units(&self) -> Arc<Vec<Arc<Unit>>> {
        self.units.load_full()
    }

    pub(super) fn set_units(&self, units: Vec<Arc<Unit>>) {
        let states = units.iter().map(|unit| unit.state.clone()).collect();
        self.shared.servers.store(Arc::new(states));
        self.units.store(Arc::new(units));
    }

    /// Starts a server's workers; to be called on the runtime that they are looked after by.
    pub(super) fn start_workers(&self, unit: &Unit) -> Result<(), String> {
        let events = Arc::new(Events { server: unit.state.clone(), clock: self.shared.clock });
        let workers = unit.state.workers.clone();
        let supervisor = Supervisor::start(
            unit.config.clone(),
            &self.gateway.load(),
            workers,
            events,
            self.binary.clone(),
        )
        .map_err(|error| format!("server {}: {error}", unit.state.name))?;
        // It is done once.
        let _ = unit.supervisor.set(supervisor);
        Ok(())
    }

    /// Reads the files again and applies what has changed.
    pub(super) async fn reload(&self) -> Result<Reloaded, Refused> {
        let (order, done) = oneshot::channel();
        // Without anybody who hears it, the gateway is about to be gone.
        let _ = self.reloads.send(order);
        done.await.unwrap_or(Err(Refused::NotNow("stopping")))
    }

    /// Why the start failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The start has failed.
    pub(super) fn fail(&self, why: String) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.failed.cancel();
    }
}
