//! The service that looks after the workers: starts them, tells their sessions of them, reloads.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use http::HeaderMap;
use pingora::{
    server::{ListenFds, ShutdownWatch},
    services::Service,
};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    plant::{Plant, ReloadOrder},
    reload,
    stop::hangups,
};
use crate::{
    proxy::{Clock, ServerState},
    systemd::{self, Watchdog},
    worker_id::WorkerId,
    workers::{ExitReport, Held, Worker, WorkerEvents, ask},
};

/// How often sessions that are due are forgotten.
const EXPIRE_EVERY: Duration = Duration::from_millis(250);

/// The service that starts the workers, looks after the sessions' lifetimes, and reloads.
pub(super) struct Workers {
    pub(super) plant: Arc<Plant>,
    pub(super) orders: mpsc::UnboundedReceiver<ReloadOrder>,
}

#[async_trait]
impl Service for Workers {
    async fn start_service(&mut self, _fds: Option<ListenFds>, _shutdown: ShutdownWatch, _listeners: usize) {
        let plant = self.plant.clone();
        tokio::spawn(super::reap::as_process_one());
        // From here on SIGHUP does not end the process; one that comes during the start is obeyed after it.
        let mut hangups = hangups(plant.files.is_some());
        if let Err(why) = self.start().await {
            // A worker that a stop has ended did not fail.
            if !plant.shared.stop.begun.is_cancelled() {
                plant.fail(why);
            }
            return;
        }
        tracing::info!(servers = plant.names(), "ready");
        systemd::ready(&plant.serving());
        let mut watchdog = Watchdog::of_environment();
        let mut every = tokio::time::interval(EXPIRE_EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = every.tick() => {
                    watchdog.beat(Instant::now());
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
            let (config, binary) = (unit.config(), plant.binary.clone());
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
pub(super) struct Events {
    pub(super) server: Arc<ServerState>,
    pub(super) clock: Clock,
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
