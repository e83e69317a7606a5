//! Keeps a server's slots filled.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use http::HeaderMap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    DrainTotals, ExitReport, NotReplaced, NotRolling, Resized, RollStatus, RollTotals, ScaleTotals,
    SlotStatus, StartFailure, Worker, WorkerSet,
    limiter::Limiter,
    roll::Roll,
    rolls::Rolls,
    run_dir::RunDir,
    scaler::{Scaler, Scales},
    shared::{Drains, FirstStarts, Setup, Shared},
    slots::Slots,
    spawner::{KeeperSpawner, Spawner},
};
use crate::{
    config::{GatewaySettings, ServerConfig, StartedAs},
    worker_id::WorkerId,
};

/// What the rest of the gateway does when a worker comes or goes. Called from a slot's task: must not block.
pub trait WorkerEvents: Send + Sync {
    /// The worker answered its probe with these headers; it gets requests when this returns.
    fn ready(&self, worker: &Arc<Worker>, probe: &HeaderMap);

    /// A worker that was ready has exited. It is out of the [`WorkerSet`]; [`Worker::exited`] is cancelled when this
    /// returns.
    fn exited(&self, worker: WorkerId, report: &ExitReport);

    /// A worker's drain is over: it is out of the [`WorkerSet`] and about to be ended, and what it still has is lost;
    /// [`Worker::exited`] is cancelled when this returns. Its exit is not told any more.
    fn retired(&self, worker: WorkerId);

    /// What a worker must not be ended for yet. Asked every 100 ms while it drains.
    fn sessions(&self, worker: WorkerId) -> Held;

    /// How many sessions a worker has had, those that are over among them.
    fn taken(&self, worker: WorkerId) -> u64;
}

/// The sessions of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Named by requests, not opened by a start.
    pub claimed: usize,
    /// Started.
    pub open: usize,
    /// Ended, and within their close-retry window.
    pub ended: usize,
}

impl Held {
    /// All of them.
    pub fn all(&self) -> usize {
        self.claimed + self.open + self.ended
    }
}

/// A server's workers. Dropping it stops them, without waiting.
pub struct Supervisor {
    slots: Arc<Slots>,
    /// How many there were at the start.
    first_slots: usize,
    rolls: Mutex<Rolls>,
    /// Goes when all is stopped.
    run_dir: tokio::sync::Mutex<Option<RunDir>>,
}

/// What a changed config comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconfigured {
    /// More or fewer workers.
    pub resized: Resized,
    /// A rolling restart has begun, since workers are started in another way.
    pub rolls: bool,
}

impl Supervisor {
    /// Starts a server's workers, which join `workers` when they are ready; to be called in a tokio runtime, which has
    /// to live until [`Supervisor::stop`] returns. `binary` is the `gym-gateway` program, for the keepers.
    ///
    /// # Errors
    /// The folder for the workers' sockets cannot be made.
    pub fn start(
        server: Arc<ServerConfig>,
        gateway: &GatewaySettings,
        workers: Arc<WorkerSet>,
        events: Arc<dyn WorkerEvents>,
        binary: PathBuf,
    ) -> io::Result<Self> {
        let run_dir = RunDir::create(server.settings.process.user.as_ref())?;
        let spawner = KeeperSpawner { binary, sockets: run_dir.path().to_owned() };
        let mut supervisor = Self::with_spawner(&server, gateway, workers, events, Box::new(spawner));
        *supervisor.run_dir.get_mut() = Some(run_dir);
        Ok(supervisor)
    }

    pub(crate) fn with_spawner(
        server: &ServerConfig,
        gateway: &GatewaySettings,
        workers: Arc<WorkerSet>,
        events: Arc<dyn WorkerEvents>,
        spawner: Box<dyn Spawner>,
    ) -> Self {
        let setup = Setup::new(Arc::new(server.clone()), gateway.worker_stop_timeout);
        let shared = Arc::new(Shared {
            server: server.name.clone(),
            setup: ArcSwap::from_pointee(setup),
            spawner: spawner.into(),
            events,
            workers,
            first_starts: watch::Sender::new(FirstStarts::default()),
            drains: Drains::default(),
            scales: Scales::default(),
            changing_launch: Arc::default(),
            stop: CancellationToken::new(),
        });
        shared.workers.set_limits(&server.settings.limits);
        let slots = Slots::new(shared);
        slots.resize(server.num_workers, "");
        slots.spawn(Limiter::new(Arc::clone(&slots)).run());
        slots.spawn(Scaler::new(Arc::clone(&slots)).run());
        Self {
            slots,
            first_slots: usize::from(server.num_workers),
            rolls: Mutex::default(),
            run_dir: tokio::sync::Mutex::default(),
        }
    }

    /// The workers that take requests.
    pub fn workers(&self) -> Arc<WorkerSet> {
        Arc::clone(&self.slots.shared.workers)
    }

    /// Every slot, as it is now.
    pub fn status(&self) -> Vec<SlotStatus> {
        self.slots.status()
    }

    /// The config that workers are started by.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.slots.shared.config()
    }

    /// What drains have cost.
    pub fn drains(&self) -> DrainTotals {
        self.slots.shared.drains.totals()
    }

    /// How often the number of workers was changed by what there was to do.
    pub fn scales(&self) -> ScaleTotals {
        self.slots.shared.scales.totals()
    }

    /// Whether one of its workers has ever been ready.
    pub fn has_started(&self) -> bool {
        self.slots.shared.first_starts.borrow().one_is_ready
    }

    /// Waits until one worker is ready.
    ///
    /// # Errors
    /// The first failure, when every slot's first start has failed. (Slots go on trying until [`Supervisor::stop`].)
    pub async fn started(&self) -> Result<(), StartFailure> {
        let mut first_starts = self.slots.shared.first_starts.subscribe();
        loop {
            {
                let first = first_starts.borrow_and_update();
                if first.one_is_ready {
                    return Ok(());
                }
                if let Some(failure) =
                    first.failures.first().filter(|_| first.failures.len() == self.first_slots)
                {
                    return Err(failure.clone());
                }
            }
            if first_starts.changed().await.is_err() {
                // Its sender is in what the slots share.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Replaces a slot's worker the rolling way: a new one is started, and when it is ready the old one drains. Returns
    /// then. Waits while there are `max_surge` extra workers.
    ///
    /// # Errors
    /// The new one did not start, or the replacement was called off; the old one serves on.
    pub async fn replace(&self, slot: u16, reason: &str) -> Result<WorkerId, NotReplaced> {
        self.slots.replace(slot, reason, None).await
    }

    /// Lets a slot's worker drain, and leaves the slot empty then. An empty slot stays so; one that drains goes on.
    ///
    /// # Errors
    /// There is no such slot.
    pub fn drain(&self, slot: u16, reason: &str) -> Result<(), NotReplaced> {
        if self.slots.drain(slot, reason) { Ok(()) } else { Err(NotReplaced::NoSlot(slot)) }
    }

    /// Begins a rolling restart of all slots that were not emptied by hand, or of one, which may have been.
    ///
    /// # Errors
    /// One is under way, or there is no such slot.
    pub fn restart(&self, slot: Option<u16>, reason: &str) -> Result<RollStatus, NotRolling> {
        let mut rolls = self.rolls();
        if let Some(status) = rolls.under_way() {
            return Err(NotRolling::UnderWay(Box::new(status)));
        }
        if let Some(slot) = slot.filter(|slot| !self.slots.mean_to_fill(*slot)) {
            return Err(NotRolling::NoSlot(slot));
        }
        let todo = slot.map_or_else(|| self.slots.filled(), |slot| vec![slot]);
        Ok(self.begin(&mut rolls, todo, reason, None))
    }

    /// The newest rolling restart.
    pub fn roll(&self) -> Option<RollStatus> {
        self.rolls().newest()
    }

    /// How rolling restarts have ended.
    pub fn rolls_ended(&self) -> RollTotals {
        self.rolls().ended()
    }

    /// Goes by this config from now on. Settings hold at once, more or fewer workers are started or drain; where workers
    /// are started in another way (`is_another` says so), all are replaced by a rolling restart. Its config holds for
    /// workers that die only when a first one has become ready with it.
    pub fn reconfigure(
        &self,
        config: &ServerConfig,
        gateway: &GatewaySettings,
        is_another: impl Fn(&ServerConfig, &StartedAs) -> bool,
        reason: &str,
    ) -> Reconfigured {
        let shared = &self.slots.shared;
        let mut rolls = self.rolls();
        let now = self.config();
        let rolling_to = rolls.leads_to();
        let differs = is_another(config, &now.started_as());
        shared.adopt(gateway.worker_stop_timeout, |now| {
            // What differs and would be nothing to the workers is taken over.
            let started_as = now.started_as();
            if is_another(config, &started_as) { config.with_workers(&started_as) } else { config.clone() }
        });
        shared.workers.set_limits(&config.settings.limits);
        self.slots.look_at_surge();
        // Where the number is not fixed it stays what it has become, within the bounds.
        let is_fixed = config.workers_range().0 == config.workers_range().1;
        let resized = if is_fixed || config.num_workers != now.num_workers {
            self.slots.resize(config.num_workers, "the config has fewer workers")
        } else {
            Resized::default()
        };
        let rolls_there = rolling_to.as_ref().is_some_and(|started_as| !is_another(config, started_as));
        if rolling_to.is_some() && !rolls_there {
            rolls.call_off();
        }
        let begins = differs && !rolls_there;
        if begins {
            // One that is under way starts workers in the old way.
            rolls.call_off();
            let todo = self.slots.filled();
            self.begin(&mut rolls, todo, reason, Some(Arc::new(config.started_as())));
        }
        Reconfigured { resized, rolls: begins }
    }

    fn begin(
        &self,
        rolls: &mut Rolls,
        todo: Vec<u16>,
        reason: &str,
        started_as: Option<Arc<StartedAs>>,
    ) -> RollStatus {
        let number = rolls.next_number();
        let (roll, handle) = Roll::new(Arc::clone(&self.slots), todo, number, reason, started_as);
        let status = handle.status.borrow().clone();
        rolls.begin(handle);
        self.slots.spawn(roll.run());
        status
    }

    /// Lets every worker drain, and returns when none is left. More than that is up to [`Supervisor::stop`].
    pub async fn empty(&self, reason: &str) {
        self.rolls().call_off();
        self.slots.resize(0, reason);
        self.slots.emptied().await;
    }

    /// Has all workers told to end, and waits for none; [`Supervisor::stop`] is to follow.
    pub fn begin_stop(&self) {
        self.slots.shared.stop.cancel();
    }

    /// Stops all workers: SIGTERM, and after `worker_stop_timeout` SIGKILL for their groups. Returns when all are gone.
    pub async fn stop(&self) {
        let shared = &self.slots.shared;
        shared.stop.cancel();
        // A second caller waits for the first.
        let mut run_dir = self.run_dir.lock().await;
        for task in self.slots.take_tasks() {
            if let Err(error) = task.await {
                tracing::error!(server = shared.server, "a slot's task failed: {error}");
            }
        }
        *run_dir = None;
    }

    fn rolls(&self) -> MutexGuard<'_, Rolls> {
        self.rolls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.slots.shared.stop.cancel();
    }
}
