//! Everything that runs: the servers with their workers, and what they share.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use http::HeaderMap;
use pingora::{
    server::{ListenFds, ShutdownWatch},
    services::Service,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{reload, stop::hangups};
use crate::{
    admin::{Refused, Reloaded, RequestMetrics},
    config::{Config, GatewaySettings, ServerConfig},
    proxy::{Budget, Clock, Observer, Opener, Places, ServerState, Shared, Stop},
    worker_id::WorkerId,
    workers::{ExitReport, Held, Supervisor, Worker, WorkerEvents, ask},
};

/// How often sessions that are due are forgotten.
const EXPIRE_EVERY: Duration = Duration::from_millis(250);

/// One server and its workers.
pub(super) struct Unit {
    pub(super) state: Arc<ServerState>,
    /// What it was added as.
    config: Arc<ServerConfig>,
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
type ReloadOrder = oneshot::Sender<Result<Reloaded, Refused>>;

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
        plant.set_units(config.servers.into_iter().map(|server| plant.unit(server)).collect());
        let workers = Workers { plant: plant.clone(), orders };
        (plant, workers)
    }

    /// A server that does not run yet.
    pub(super) fn unit(&self, config: ServerConfig) -> Arc<Unit> {
        let mut next = self.next_index.lock().unwrap_or_else(PoisonError::into_inner);
        let state = Arc::new(ServerState::new(*next, &config));
        *next += 1;
        Arc::new(Unit { state, config: Arc::new(config), supervisor: OnceLock::new() })
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

    fn fail(&self, why: String) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.failed.cancel();
    }
}

/// The service that starts the workers, looks after the sessions' lifetimes, and reloads.
pub(super) struct Workers {
    plant: Arc<Plant>,
    orders: mpsc::UnboundedReceiver<ReloadOrder>,
}

#[async_trait]
impl Service for Workers {
    async fn start_service(&mut self, _fds: Option<ListenFds>, _shutdown: ShutdownWatch, _listeners: usize) {
        let plant = self.plant.clone();
        // From here on SIGHUP does not end the process; one that comes during the start is obeyed after it.
        let mut hangups = hangups(plant.files.is_some());
        if let Err(why) = self.start().await {
            // A worker that a stop has ended did not fail.
            if !plant.shared.stop.begun.is_cancelled() {
                plant.fail(why);
            }
            return;
        }
        let names: Vec<_> = plant.units().iter().map(|unit| unit.state.name.clone()).collect();
        tracing::info!(servers = names.join(","), "ready");
        let mut every = tokio::time::interval(EXPIRE_EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = every.tick() => {
                    let now = plant.shared.clock.now();
                    plant.units().iter().for_each(|unit| unit.state.sessions.expire(now));
                }
                () = hangups.next() => {
                    tracing::info!("SIGHUP: the config is read again");
                    tokio::spawn(reload::reload(plant.clone()));
                }
                Some(order) = self.orders.recv() => {
                    let plant = plant.clone();
                    // Whoever asked may have gone; the log tells as well.
                    tokio::spawn(async move { order.send(reload::reload(plant).await) });
                }
            }
        }
    }

    fn name(&self) -> &'static str {
        "workers"
    }

    fn threads(&self) -> Option<usize> {
        Some(1)
    }
}

impl Workers {
    /// Asks the servers whether they can have several workers, starts them, and waits for the first of each.
    async fn start(&self) -> Result<(), String> {
        let plant = &self.plant;
        let units = plant.units();
        let mut asked = JoinSet::new();
        for unit in units.iter() {
            let (config, binary) = (unit.config.clone(), plant.binary.clone());
            asked.spawn(async move { ask(&config, &binary).await.map_err(|error| error.to_string()) });
        }
        while let Some(answer) = asked.join_next().await {
            answer.map_err(|error| error.to_string())??;
        }
        units.iter().try_for_each(|unit| plant.start_workers(unit))?;
        for supervisor in units.iter().filter_map(|unit| unit.supervisor()) {
            supervisor.started().await.map_err(|failure| failure.to_string())?;
        }
        Ok(())
    }
}

/// Tells a server's rule and sessions what happens to its workers.
struct Events {
    server: Arc<ServerState>,
    clock: Clock,
}

impl WorkerEvents for Events {
    fn ready(&self, _worker: &Arc<Worker>, probe: &HeaderMap) {
        self.server.rule.learn(probe, Clock::unix());
    }

    fn exited(&self, worker: WorkerId, _report: &ExitReport) {
        self.retired(worker);
    }

    fn retired(&self, worker: WorkerId) {
        // From here on its sessions get 410. To note each as lost takes a second where there are a million.
        self.server.sessions.mark_exited(worker);
        let (server, now) = (self.server.clone(), self.clock.now());
        tokio::task::spawn_blocking(move || server.sessions.owner_exited(worker, now));
    }

    fn sessions(&self, worker: WorkerId) -> Held {
        let [claimed, open, ended] = self.server.sessions.of_worker(worker);
        Held { claimed, open, ended }
    }

    fn taken(&self, worker: WorkerId) -> u64 {
        self.server.sessions.taken(worker)
    }
}
