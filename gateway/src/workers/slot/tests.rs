use std::{
    collections::HashMap,
    io,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use http::HeaderMap;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::*;
use crate::{
    config::{Launch, ServerConfig, ServerSettings},
    keeper::{Exit, Order},
    workers::{
        Address, ExitReport, Failed, Held, Phase, Resident, SlotStatus, Supervisor, Worker, WorkerEvents,
        WorkerSet,
        address::Places,
        process::{Process, ProcessDriver},
        progress::Progress,
        spawner::{Answered, Launched, Spawner},
        testing,
    },
};

mod crash_loops;
mod draining;
mod hanging;
mod launches;
mod limits;
mod rolling;
mod scaling;

/// What the slot's surroundings see, in order.
type Log = mpsc::UnboundedReceiver<String>;

/// A start that a test plays.
struct Played {
    id: WorkerId,
    at: Instant,
    /// The command that it was started by.
    argv: Vec<String>,
    driver: ProcessDriver,
    answer: oneshot::Sender<()>,
}

impl Played {
    /// Answers the probe.
    fn becomes_ready(&mut self) {
        let (unused, _) = oneshot::channel();
        self.driver.stage.send_modify(|stage| stage.pid = Some(7));
        std::mem::replace(&mut self.answer, unused).send(()).unwrap();
    }

    fn ends(&self, exit: Exit) {
        self.driver.stage.send_modify(|stage| {
            stage.exit = Some(exit);
            stage.gone = true;
        });
    }

    /// Waits for SIGTERM, and obeys.
    async fn is_asked_to_end(&mut self) {
        assert_eq!(self.driver.orders.recv().await, Some(Order::Signal(15)));
        self.ends(Exit::Code(0));
    }

    fn is_left_alone(&mut self) -> bool {
        self.driver.orders.try_recv().is_err()
    }
}

/// Hands every start to the test.
struct FakeSpawner {
    starts: mpsc::UnboundedSender<Played>,
    answers: Mutex<HashMap<String, oneshot::Receiver<()>>>,
    surroundings: Arc<Surroundings>,
}

/// What a test sets of the system.
#[derive(Default)]
struct Surroundings {
    resident: Mutex<Resident>,
    /// Nobody answers a probe.
    is_deaf: AtomicBool,
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
struct Notes {
    log: mpsc::UnboundedSender<String>,
    workers: Mutex<Option<Arc<WorkerSet>>>,
    seen: Mutex<HashMap<WorkerId, Arc<Worker>>>,
    held: Mutex<HashMap<WorkerId, Held>>,
    taken: Mutex<HashMap<WorkerId, u64>>,
}

impl Notes {
    fn new(log: mpsc::UnboundedSender<String>) -> Self {
        Self {
            log,
            workers: Mutex::default(),
            seen: Mutex::default(),
            held: Mutex::default(),
            taken: Mutex::default(),
        }
    }

    fn in_set(&self, id: WorkerId) -> bool {
        self.workers.lock().unwrap().as_ref().unwrap().get(id).is_some()
    }

    fn ends(&self, what: &str, id: WorkerId) {
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

struct Play {
    supervisor: Arc<Supervisor>,
    starts: mpsc::UnboundedReceiver<Played>,
    notes: Arc<Notes>,
    surroundings: Arc<Surroundings>,
    log: Log,
}

fn play(num_workers: u16) -> Play {
    play_with(num_workers, |_| {})
}

fn play_with(num_workers: u16, set: impl FnOnce(&mut ServerSettings)) -> Play {
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
fn id(slot: u16, generation: u32) -> WorkerId {
    WorkerId { slot, generation }
}

impl Play {
    /// The next start, which is to be this one.
    async fn start(&mut self, slot: u16, generation: u32) -> Played {
        let start = self.starts.recv().await.unwrap();
        assert_eq!(start.id, id(slot, generation));
        start
    }

    /// The same, and it becomes ready.
    async fn ready(&mut self, slot: u16, generation: u32) -> Played {
        let mut start = self.start(slot, generation).await;
        start.becomes_ready();
        self.settle().await;
        start
    }

    /// Every first worker, ready.
    async fn all_ready(&mut self, slots: u16) -> Vec<Played> {
        let mut all = Vec::new();
        for slot in 0..slots {
            all.push(self.ready(slot, 1).await);
        }
        all
    }

    /// Lets every task do what it can without time.
    async fn settle(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    fn worker(&self, slot: u16, generation: u32) -> Arc<Worker> {
        Arc::clone(&self.notes.seen.lock().unwrap()[&id(slot, generation)])
    }

    fn hold(&self, slot: u16, generation: u32, open: usize) {
        self.notes.held.lock().unwrap().insert(id(slot, generation), Held { open, ..Held::default() });
    }

    fn status(&self, slot: u16) -> SlotStatus {
        self.supervisor.status().into_iter().find(|status| status.slot == slot).expect("such a slot")
    }

    fn state(&self, slot: u16) -> (u32, SlotState) {
        let status = self.status(slot);
        (status.generation, status.state)
    }

    /// Workers that take new sessions.
    fn serving(&self) -> Vec<WorkerId> {
        let workers = self.supervisor.workers().ready();
        workers.iter().filter(|worker| !worker.is_draining()).map(|worker| worker.id).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_joins_after_its_event_and_leaves_before_its_exit_s() {
    let mut stage = play(1);
    let workers = stage.supervisor.workers();
    let mut changes = workers.changes();
    let mut first = stage.starts.recv().await.unwrap();
    assert_eq!(stage.supervisor.status()[0].state, SlotState::Starting);
    assert!(workers.ready().is_empty());
    first.becomes_ready();
    changes.changed().await.unwrap();
    stage.supervisor.started().await.unwrap();
    let worker = workers.get(first.id).expect("it is in the set when waiters wake");
    let status = &stage.supervisor.status()[0];
    assert_eq!(
        (status.state, status.pid, status.address.as_deref()),
        (SlotState::Ready, Some(7), Some("unix:/fake"))
    );

    first.ends(Exit::Signal(9));
    changes.changed().await.unwrap();
    assert!(worker.exited().is_cancelled(), "all is done when waiters wake");
    assert_eq!(stage.log.recv().await.unwrap(), "ready 0.1 in set: false");
    assert_eq!(
        stage.log.recv().await.unwrap(),
        "exited 0.1 was killed by SIGKILL in set: false cancelled: false"
    );

    let mut second = stage.starts.recv().await.unwrap();
    assert_eq!(second.id, id(0, 2));
    second.becomes_ready();
    changes.changed().await.unwrap();
    let status = &stage.supervisor.status()[0];
    assert_eq!((status.generation, status.restarts), (2, 1));
    assert_eq!(status.last_exit.as_deref(), Some("0.1 was killed by SIGKILL after 0.0 s"));
}

#[tokio::test(start_paused = true)]
async fn restarts_wait_longer_and_longer_until_a_minute_of_health() {
    let mut stage = play(1);
    let mut ended = None;
    for (low, high) in [(0, 0), (250, 500), (500, 1000), (1000, 2000), (2000, 4000)] {
        let start = stage.starts.recv().await.unwrap();
        let waited = ended.map_or(Duration::ZERO, |ended| start.at - ended).as_millis();
        assert!((low..=high + 1).contains(&waited), "{waited} ms before {}", start.id);
        start.ends(Exit::Code(1));
        ended = Some(Instant::now());
    }
    let mut healthy = stage.starts.recv().await.unwrap();
    let mut changes = stage.supervisor.workers().changes();
    healthy.becomes_ready();
    changes.changed().await.unwrap();
    tokio::time::sleep(Duration::from_secs(61)).await;
    healthy.ends(Exit::Code(1));
    let ended = Instant::now();
    assert_eq!(stage.starts.recv().await.unwrap().at, ended);
}

#[tokio::test(start_paused = true)]
async fn a_start_is_given_up_on_after_its_time() {
    let mut stage = play(1);
    let mut start = stage.starts.recv().await.unwrap();
    let began = Instant::now();
    assert_eq!(start.driver.orders.recv().await, Some(Order::Kill));
    assert_eq!(began.elapsed(), Duration::from_secs(120));
    start.driver.output.push("loading");
    start.ends(Exit::Signal(9));
    let failure = stage.supervisor.started().await.unwrap_err();
    assert_eq!((failure.phase, failure.spent.total().as_secs()), (Phase::Listen, 120));
    assert_eq!(failure.exit, None);
    let text = failure.to_string();
    for part in [
        "server fake",
        "worker 0.1",
        "nothing listens",
        "120.0 s: spawn 0.0 s, listen 120.0 s",
        "| loading",
        "start_timeout_seconds",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_has_failed_when_all_its_slots_have() {
    let mut stage = play(2);
    let (one, two) = (stage.starts.recv().await.unwrap(), stage.starts.recv().await.unwrap());
    one.ends(Exit::Code(3));
    let again = stage.starts.recv().await.unwrap();
    assert_eq!(again.id.generation, 2);
    let supervisor = Arc::clone(&stage.supervisor);
    let mut started = tokio::spawn(async move { supervisor.started().await });
    assert!(timeout(Duration::from_secs(5), &mut started).await.is_err(), "slot 1 may still make it");
    two.ends(Exit::Code(4));
    let failure = started.await.unwrap().unwrap_err();
    assert_eq!((failure.worker.slot, failure.seen.as_str()), (0, "it exited with status 3"));
}

#[tokio::test(start_paused = true)]
async fn one_ready_worker_is_a_start() {
    let mut stage = play(2);
    let (one, mut two) = (stage.starts.recv().await.unwrap(), stage.starts.recv().await.unwrap());
    one.ends(Exit::Code(3));
    two.becomes_ready();
    stage.supervisor.started().await.unwrap();
    assert_eq!(stage.supervisor.workers().ready().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn stopping_asks_then_kills_and_waits_for_the_end() {
    let mut stage = play(1);
    let mut start = stage.starts.recv().await.unwrap();
    start.becomes_ready();
    stage.supervisor.started().await.unwrap();
    let supervisor = Arc::clone(&stage.supervisor);
    let began = Instant::now();
    let stop = tokio::spawn(async move { supervisor.stop().await });
    assert_eq!(start.driver.orders.recv().await, Some(Order::Signal(15)));
    assert_eq!(stage.supervisor.status()[0].state, SlotState::Draining);
    assert!(stage.supervisor.workers().ready().is_empty());
    assert_eq!(start.driver.orders.recv().await, Some(Order::Kill));
    assert_eq!(began.elapsed(), Duration::from_secs(10));
    start.ends(Exit::Signal(9));
    stop.await.unwrap();
    assert_eq!(stage.supervisor.status()[0].state, SlotState::Stopped);
    assert_eq!(stage.log.recv().await.unwrap(), "ready 0.1 in set: false");
    assert_eq!(
        stage.log.recv().await.unwrap(),
        "exited 0.1 was killed by SIGKILL in set: false cancelled: false"
    );
    assert!(stage.starts.try_recv().is_err(), "nothing is started after a stop");
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_a_start_and_a_wait_at_once() {
    let mut stage = play(2);
    let (mut one, two) = (stage.starts.recv().await.unwrap(), stage.starts.recv().await.unwrap());
    two.ends(Exit::Code(1));
    tokio::task::yield_now().await;
    let began = Instant::now();
    let supervisor = Arc::clone(&stage.supervisor);
    let stop = tokio::spawn(async move { supervisor.stop().await });
    assert_eq!(one.driver.orders.recv().await, Some(Order::Signal(15)));
    one.ends(Exit::Code(0));
    stop.await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    let status = &stage.supervisor.status()[usize::from(one.id.slot)];
    assert_eq!(status.state, SlotState::Stopped);
    assert!(status.last_exit.as_ref().unwrap().ends_with("the gateway was stopped"), "{status:?}");
    stage.supervisor.started().await.unwrap_err();
}
