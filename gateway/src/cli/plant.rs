//! Everything that runs: the servers, what is shared, the supervisors of their workers.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use http::HeaderMap;
use pingora::{
    server::{ListenFds, ShutdownWatch},
    services::Service,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    admin::RequestMetrics,
    config::{Config, GatewaySettings, ServerConfig},
    proxy::{Budget, Clock, Observer, Places, ServerState, Shared, Stop},
    systemd::{self, Watchdog},
    worker_id::WorkerId,
    workers::{ExitReport, Supervisor, Worker, WorkerEvents, WorkerSet, ask},
};

/// How often sessions that are due are forgotten.
const EXPIRE_EVERY: Duration = Duration::from_millis(250);

/// The gateway's parts.
pub(super) struct Plant {
    pub(super) gateway: Arc<GatewaySettings>,
    pub(super) servers: Vec<Arc<ServerState>>,
    pub(super) shared: Arc<Shared>,
    supervisors: OnceLock<Vec<Supervisor>>,
    failure: Mutex<Option<String>>,
    /// Cancelled when the start has failed.
    pub(super) failed: CancellationToken,
}

impl Plant {
    /// Puts the parts together; nothing runs yet.
    pub(super) fn new(config: Config, metrics: RequestMetrics) -> Arc<Self> {
        let shared = Shared {
            clock: Clock::start(),
            budget: Budget::new(config.gateway.max_buffered_bytes),
            observer: Observer::new(metrics, config.gateway.access_log),
            stop: Stop::default(),
            places: Places::for_open_files(),
        };
        let state = |(index, server): (usize, ServerConfig)| {
            Arc::new(ServerState::new(index, Arc::new(server), Arc::new(WorkerSet::default())))
        };
        Arc::new(Self {
            servers: config.servers.into_iter().enumerate().map(state).collect(),
            gateway: Arc::new(config.gateway),
            shared: Arc::new(shared),
            supervisors: OnceLock::new(),
            failure: Mutex::new(None),
            failed: CancellationToken::new(),
        })
    }

    /// The supervisors; none before the workers were started.
    pub(super) fn supervisors(&self) -> &[Supervisor] {
        self.supervisors.get().map_or(&[], Vec::as_slice)
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

/// The service that starts the workers and looks after the sessions' lifetimes.
pub(super) struct Workers {
    pub(super) plant: Arc<Plant>,
    pub(super) binary: PathBuf,
}

#[async_trait]
impl Service for Workers {
    async fn start_service(&mut self, _fds: Option<ListenFds>, _shutdown: ShutdownWatch, _listeners: usize) {
        let plant = self.plant.clone();
        tokio::spawn(super::reap::as_process_one());
        if let Err(why) = self.start().await {
            // A worker that a stop has ended did not fail.
            if !plant.shared.stop.begun.is_cancelled() {
                plant.fail(why);
            }
            return;
        }
        let names: Vec<_> = plant.servers.iter().map(|server| server.config.name.as_str()).collect();
        tracing::info!(servers = names.join(","), "ready");
        systemd::ready(&format!("serving {}", names.join(", ")));
        let mut watchdog = Watchdog::of_environment();
        let mut every = tokio::time::interval(EXPIRE_EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            watchdog.beat(Instant::now());
            let now = plant.shared.clock.now();
            for server in &plant.servers {
                server.sessions.expire(now);
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
        let mut asked = JoinSet::new();
        for server in &plant.servers {
            let (config, binary) = (server.config.clone(), self.binary.clone());
            asked.spawn(async move { ask(&config, &binary).await.map_err(|error| error.to_string()) });
        }
        while let Some(answer) = asked.join_next().await {
            answer.map_err(|error| error.to_string())??;
        }
        let start = |server: &Arc<ServerState>| {
            let events = Arc::new(Events { server: server.clone(), clock: plant.shared.clock });
            let (config, workers) = (server.config.clone(), server.workers.clone());
            Supervisor::start(config, &plant.gateway, workers, events, self.binary.clone())
                .map_err(|error| format!("server {}: {error}", server.config.name))
        };
        let supervisors = plant.servers.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        for supervisor in plant.supervisors.get_or_init(|| supervisors) {
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
        // From here on its sessions get 410. To note each as lost takes a second where there are a million.
        self.server.sessions.mark_exited(worker);
        let (server, now) = (self.server.clone(), self.clock.now());
        tokio::task::spawn_blocking(move || server.sessions.owner_exited(worker, now));
    }
}
