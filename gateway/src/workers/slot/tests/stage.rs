//! What the tests of a slot play on: processes that the test drives, and surroundings that it sets.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use http::HeaderMap;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::{
    config::{Launch, ServerConfig, ServerSettings},
    keeper::{Exit, Order},
    worker_id::WorkerId,
    workers::{
        Address, ExitReport, Held, Phase, Resident, SlotState, SlotStatus, Supervisor, Worker, WorkerEvents,
        WorkerSet,
        address::Places,
        process::{Process, ProcessDriver},
        progress::Progress,
        spawner::{Answered, Launched, Spawner},
        testing,
    },
};

/// What the slot's surroundings see, in order.
pub(super) type Log = mpsc::UnboundedReceiver<String>;

/// A start that a test plays.
pub(super) struct Played {
    pub(super) id: WorkerId,
    pub(super) at: Instant,
    /// The command that it was started by.
    pub(super) argv: Vec<String>,
    pub(super) driver: ProcessDriver,
    pub(super) answer: oneshot::Sender<()>,
}

impl Played {
    /// Answers the probe.
    pub(super) fn becomes_ready(&mut self) {
        let (unused, _) = oneshot::channel();
        self.driver.stage.send_modify(|stage| stage.pid = Some(7));
        std::mem::replace(&mut self.answer, unused).send(()).unwrap();
    }

    pub(super) fn ends(&self, exit: Exit) {
        self.driver.stage.send_modify(|stage| {
            stage.exit = Some(exit);
            stage.gone = true;
        });
    }

    /// Waits for SIGTERM, and obeys.
    pub(super) async fn is_asked_to_end(&mut self) {
        assert_eq!(self.driver.orders.recv().await, Some(Order::Signal(15)));
        self.ends(Exit::Code(0));
    }

    pub(super) fn is_left_alone(&mut self) -> bool {
        self.driver.orders.try_recv().is_err()
    }
}

/// Hands every start to the test.
pub(super) struct FakeSpawner {
    pub(super) starts: mpsc::UnboundedSender<Played>,
    pub(super) answers: Mutex<HashMap<String, oneshot::Receiver<()>>>,
    pub(super) surroundings: Arc<Surroundings>,
}

/// What a test sets of the system.
#[derive(Default)]
pub(super) struct Surroundings {
    pub(super) resident: Mutex<Resident>,
    /// Nobody answers a probe.
    pub(super) is_deaf: AtomicBool,
}

#[async_trait]
impl Spawner for FakeSpawner {
    fn launch(&self, server: &ServerConfig, id: WorkerId) -> Result<Launched, String> {
        let (process, driver) = Process::driven();
        let (answer, answered) = oneshot::channel();
        let command = format!("fake {id}");
        self.answers.lock().unwrap().insert(command.clone(), answered);
        let Launch::Command { argv, .. } = &server.launch else { return Err("no command".into()) };
        self.starts
            .send(Played { id, at: Instant::now(), argv: argv.clone(), driver, answer })
            .map_err(|_| "no test".to_owned())?;
        Ok(Launched { process, places: Places::default(), command })
    }

    async fn ready(&self, launched: &Launched, progress: &mut Progress) -> Answered {
        progress.reach(Phase::Listen, "nothing listens");
        let answered = self.answers.lock().unwrap().remove(&launched.command).unwrap();
        if answered.await.is_err() {
            std::future::pending::<()>().await;
        }
        Answered { address: Address::Unix("/fake".into()), headers: HeaderMap::new() }
    }

    async fn answers(&self, _address: &Address) -> bool {
        if self.surroundings.is_deaf.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        true
    }

    fn resident(&self) -> io::Result<Resident> {
        Ok(self.surroundings.resident.lock().unwrap().clone())
    }
}

/// Notes what the worker set and the worker's token look like when events come.
pub(super) struct Notes {
    pub(super) log: mpsc::UnboundedSender<String>,
    pub(super) workers: Mutex<Option<Arc<WorkerSet>>>,
    pub(super) seen: Mutex<HashMap<WorkerId, Arc<Worker>>>,
    pub(super) held: Mutex<HashMap<WorkerId, Held>>,
    pub(super) taken: Mutex<HashMap<WorkerId, u64>>,
}

impl Notes {
    pub(super) fn new(log: mpsc::UnboundedSender<String>) -> Self {
        Self {
            log,
            workers: Mutex::default(),
            seen: Mutex::default(),
            held: Mutex::default(),
            taken: Mutex::default(),
        }
    }

    pub(super) fn in_set(&self, id: WorkerId) -> bool {
        self.workers.lock().unwrap().as_ref().unwrap().get(id).is_some()
    }

    pub(super) fn ends(&self, what: &str, id: WorkerId) {
        let cancelled = self.seen.lock().unwrap()[&id].exited().is_cancelled();
        self.log.send(format!("{what} in set: {} cancelled: {cancelled}", self.in_set(id))).unwrap();
    }
}

impl WorkerEvents for Notes {
    fn ready(&self, worker: &Arc<Worker>, _probe: &HeaderMap) {
        self.seen.lock().unwrap().insert(worker.id, Arc::clone(worker));
        self.log.send(format!("ready {} in set: {}", worker.id, self.in_set(worker.id))).unwrap();
    }

    fn exited(&self, id: WorkerId, report: &ExitReport) {
        self.ends(&format!("exited {id} {}", report.exit), id);
    }

    fn retired(&self, id: WorkerId) {
        self.ends(&format!("retired {id}"), id);
    }

    fn sessions(&self, id: WorkerId) -> Held {
        self.held.lock().unwrap().get(&id).copied().unwrap_or_default()
    }

    fn taken(&self, id: WorkerId) -> u64 {
        self.taken.lock().unwrap().get(&id).copied().unwrap_or_default()
    }
}

pub(super) struct Play {
    pub(super) supervisor: Arc<Supervisor>,
    pub(super) starts: mpsc::UnboundedReceiver<Played>,
    pub(super) notes: Arc<Notes>,
    pub(super) surroundings: Arc<Surroundings>,
    pub(super) log: Log,
}

pub(super) fn play(num_workers: u16) -> Play {
    play_with(num_workers, |_| {})
}

pub(super) fn play_with(num_workers: u16, set: impl FnOnce(&mut ServerSettings)) -> Play {
    let mut server = testing::server("fake", num_workers);
    set(&mut server.settings);
    let (starts_sender, starts) = mpsc::unbounded_channel();
    let (log_sender, log) = mpsc::unbounded_channel();
    let notes = Arc::new(Notes::new(log_sender));
    let surroundings = Arc::new(Surroundings::default());
    let supervisor = Supervisor::with_spawner(
        &server,
        &testing::gateway(),
        Arc::default(),
        Arc::clone(&notes) as Arc<dyn WorkerEvents>,
        Box::new(FakeSpawner {
            starts: starts_sender,
            answers: Mutex::default(),
            surroundings: surroundings.clone(),
        }),
    );
    *notes.workers.lock().unwrap() = Some(supervisor.workers());
    Play { supervisor: Arc::new(supervisor), starts, notes, surroundings, log }
}

/// A process of a slot.
pub(super) fn id(slot: u16, generation: u32) -> WorkerId {
    WorkerId { slot, generation }
}

impl Play {
    /// The next start, which is to be this one.
    pub(super) async fn start(&mut self, slot: u16, generation: u32) -> Played {
        let start = self.starts.recv().await.unwrap();
        assert_eq!(start.id, id(slot, generation));
        start
    }

    /// The same, and it becomes ready.
    pub(super) async fn ready(&mut self, slot: u16, generation: u32) -> Played {
        let mut start = self.start(slot, generation).await;
        start.becomes_ready();
        self.settle().await;
        start
    }

    /// Every first worker, ready.
    pub(super) async fn all_ready(&mut self, slots: u16) -> Vec<Played> {
        let mut all = Vec::new();
        for slot in 0..slots {
            all.push(self.ready(slot, 1).await);
        }
        all
    }

    /// Lets every task do what it can without time.
    pub(super) async fn settle(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    pub(super) fn worker(&self, slot: u16, generation: u32) -> Arc<Worker> {
        Arc::clone(&self.notes.seen.lock().unwrap()[&id(slot, generation)])
    }

    pub(super) fn hold(&self, slot: u16, generation: u32, open: usize) {
        self.notes.held.lock().unwrap().insert(id(slot, generation), Held { open, ..Held::default() });
    }

    pub(super) fn status(&self, slot: u16) -> SlotStatus {
        self.supervisor.status().into_iter().find(|status| status.slot == slot).expect("such a slot")
    }

    pub(super) fn state(&self, slot: u16) -> (u32, SlotState) {
        let status = self.status(slot);
        (status.generation, status.state)
    }

    /// Workers that take new sessions.
    pub(super) fn serving(&self) -> Vec<WorkerId> {
        let workers = self.supervisor.workers().ready();
        workers.iter().filter(|worker| !worker.is_draining()).map(|worker| worker.id).collect()
    }
}
