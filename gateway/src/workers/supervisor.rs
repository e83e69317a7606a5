//! Keeps a server's slots filled.

use std::{io, path::PathBuf, sync::Arc};

use http::HeaderMap;
use tokio::{
    sync::{Mutex, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::{
    ExitReport, SlotStatus, StartFailure, Worker, WorkerSet,
    backoff::BackoffTimes,
    run_dir::RunDir,
    slot::{Cell, FirstStarts, Shared, Slot, Times},
    spawner::{KeeperSpawner, Spawner},
};
use crate::{
    config::{GatewaySettings, ServerConfig},
    worker_id::WorkerId,
};

/// What the rest of the gateway does when a worker comes or goes. Called from a slot's task: must not block.
pub trait WorkerEvents: Send + Sync {
    /// The worker answered its probe with these headers; it gets requests when this returns.
    fn ready(&self, worker: &Arc<Worker>, probe: &HeaderMap);

    /// A worker that was ready has exited. It is out of the [`WorkerSet`]; [`Worker::exited`] is cancelled when this
    /// returns.
    fn exited(&self, worker: WorkerId, report: &ExitReport);
}

/// A server's workers. Dropping it stops them, without waiting.
pub struct Supervisor {
    shared: Arc<Shared>,
    cells: Vec<Arc<Cell>>,
    running: Mutex<Running>,
}

/// What ends with [`Supervisor::stop`].
#[derive(Default)]
struct Running {
    tasks: Vec<JoinHandle<()>>,
    run_dir: Option<RunDir>,
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
        let spawner =
            KeeperSpawner { server: Arc::clone(&server), binary, sockets: run_dir.path().to_owned() };
        let mut supervisor = Self::with_spawner(&server, gateway, workers, events, Box::new(spawner));
        supervisor.running.get_mut().run_dir = Some(run_dir);
        Ok(supervisor)
    }

    pub(crate) fn with_spawner(
        server: &ServerConfig,
        gateway: &GatewaySettings,
        workers: Arc<WorkerSet>,
        events: Arc<dyn WorkerEvents>,
        spawner: Box<dyn Spawner>,
    ) -> Self {
        let shared = Arc::new(Shared {
            server: server.name.clone(),
            times: Times {
                start_timeout: server.settings.start_timeout,
                stop_timeout: gateway.worker_stop_timeout,
                backoff: BackoffTimes {
                    first: server.settings.restart_backoff,
                    longest: server.settings.restart_backoff_max,
                    max_failures: server.settings.max_start_failures,
                    retry: server.settings.failed_retry,
                },
            },
            spawner,
            events,
            workers,
            first_starts: watch::Sender::new(FirstStarts::default()),
            stop: CancellationToken::new(),
        });
        let slots: Vec<Slot> =
            (0..server.num_workers).map(|slot| Slot::new(Arc::clone(&shared), slot)).collect();
        let cells = slots.iter().map(Slot::cell).collect();
        let tasks = slots.into_iter().map(|slot| tokio::spawn(slot.run())).collect();
        Self { shared, cells, running: Mutex::new(Running { tasks, run_dir: None }) }
    }

    /// The ready workers.
    pub fn workers(&self) -> Arc<WorkerSet> {
        Arc::clone(&self.shared.workers)
    }

    /// Every slot, as it is now.
    pub fn status(&self) -> Vec<SlotStatus> {
        self.cells.iter().map(|cell| cell.snapshot()).collect()
    }

    /// Waits until one worker is ready.
    ///
    /// # Errors
    /// The first failure, when every slot's first start has failed. (Slots go on trying until [`Supervisor::stop`].)
    pub async fn started(&self) -> Result<(), StartFailure> {
        let mut first_starts = self.shared.first_starts.subscribe();
        loop {
            {
                let first = first_starts.borrow_and_update();
                if first.one_is_ready {
                    return Ok(());
                }
                if let Some(failure) =
                    first.failures.first().filter(|_| first.failures.len() == self.cells.len())
                {
                    return Err(failure.clone());
                }
            }
            if first_starts.changed().await.is_err() {
                // Its sender is in `self.shared`.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Stops all workers: SIGTERM, and after `worker_stop_timeout` SIGKILL for their groups. Returns when all are gone.
    pub async fn stop(&self) {
        self.shared.stop.cancel();
        // A second caller waits for the first.
        let mut running = self.running.lock().await;
        for task in running.tasks.drain(..) {
            if let Err(error) = task.await {
                tracing::error!(server = self.shared.server, "a slot's task failed: {error}");
            }
        }
        running.run_dir = None;
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}
