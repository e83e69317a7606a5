//! Starts that succeed and starts that fail.

use std::{net::TcpListener, sync::Arc, time::Duration};

use gym_gateway::{
    config::{Launch, ServerConfig},
    worker_id::WorkerId,
    workers::{
        Address, ExitReport, Failed, Held, Phase, SlotState, StartFailure, Supervisor, Worker, WorkerEvents,
    },
};
use tokio::{sync::mpsc, time::timeout};

use crate::{PATIENCE, config, gateway_settings, lives, program, until, worker};

enum Event {
    Ready(Arc<Worker>, http::HeaderMap),
    Exited(WorkerId, ExitReport),
}

struct Events(mpsc::UnboundedSender<Event>);

impl WorkerEvents for Events {
    fn ready(&self, worker: &Arc<Worker>, probe: &http::HeaderMap) {
        self.0.send(Event::Ready(Arc::clone(worker), probe.clone())).unwrap();
    }

    fn exited(&self, worker: WorkerId, report: &ExitReport) {
        self.0.send(Event::Exited(worker, report.clone())).unwrap();
    }

    fn retired(&self, _worker: WorkerId) {}

    fn sessions(&self, _worker: WorkerId) -> Held {
        Held::default()
    }

    fn taken(&self, _worker: WorkerId) -> u64 {
        0
    }
}

fn start(server: ServerConfig) -> (Supervisor, mpsc::UnboundedReceiver<Event>) {
    let (sender, events) = mpsc::unbounded_channel();
    let supervisor = Supervisor::start(
        Arc::new(server),
        &gateway_settings(),
        Arc::default(),
        Arc::new(Events(sender)),
        program(),
    )
    .unwrap();
    (supervisor, events)
}

async fn started(supervisor: &Supervisor) -> Result<(), StartFailure> {
    timeout(PATIENCE, supervisor.started()).await.expect("a start ends in time")
}

async fn next(events: &mut mpsc::UnboundedReceiver<Event>) -> Event {
    timeout(PATIENCE, events.recv()).await.expect("an event comes in time").unwrap()
}

/// A start that must fail within a second or so.
async fn failure(mut server: ServerConfig) -> StartFailure {
    server.settings.start_timeout = Duration::from_millis(1200);
    let (supervisor, _events) = start(server);
    let failure = started(&supervisor).await.unwrap_err();
    let last = supervisor.status()[0].last_failure.clone().expect("it is shown");
    let Failed::Start(shown) = last.what else { panic!("{last:?}") };
    assert_eq!((shown.phase, &shown.output), (failure.phase, &failure.output));
    assert!(supervisor.workers().ready().is_empty());
    timeout(PATIENCE, supervisor.stop()).await.expect("a stop ends in time");
    failure
}

fn sh(script: &str) -> ServerConfig {
    config(vec!["sh".into(), "-c".into(), script.into()], "")
}

#[tokio::test]
async fn a_worker_is_ready_wherever_it_listens_of_what_it_was_offered() {
    for behaviour in ["socket ok", "port ok"] {
        let (supervisor, mut events) = start(config(worker::command(), behaviour));
        started(&supervisor).await.unwrap();
        let Event::Ready(worker, headers) = next(&mut events).await else { panic!("not ready") };
        assert_eq!(headers["set-cookie"], "from=healthz");
        assert_eq!(matches!(worker.address, Address::Unix(_)), behaviour.starts_with("socket"));
        let status = &supervisor.status()[0];
        assert_eq!(status.state, SlotState::Ready);
        assert_eq!(status.address, Some(worker.address.to_string()));
        assert!(status.output.contains(&"worker 0 of 1".to_owned()), "{:?}", status.output);
        let pid = status.pid.unwrap();
        assert!(lives(pid));
        supervisor.stop().await;
        assert!(!lives(pid));
        let Event::Exited(_, report) = next(&mut events).await else { panic!("not exited") };
        assert!(report.asked_for);
        assert!(worker.exited().is_cancelled());
    }
}

#[tokio::test]
async fn the_folder_of_the_sockets_is_removed_at_the_end() {
    let (supervisor, mut events) = start(config(worker::command(), "socket ok"));
    let Event::Ready(worker, _) = next(&mut events).await else { panic!("not ready") };
    let Address::Unix(socket) = &worker.address else { panic!("no socket") };
    assert!(socket.exists());
    supervisor.stop().await;
    assert!(!socket.parent().unwrap().exists());
}

#[tokio::test]
async fn a_killed_worker_is_seen_at_once_and_replaced_at_another_address() {
    let (supervisor, mut events) = start(config(worker::command(), "port ok"));
    let Event::Ready(mut worker, _) = next(&mut events).await else { panic!("not ready") };
    let mut fastest = PATIENCE;
    // Once may be slow on a busy machine, not every time.
    for generation in 2..5 {
        let pid = supervisor.status()[0].pid.unwrap();
        let killed = std::time::Instant::now();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL).unwrap();
        worker.exited().cancelled().await;
        fastest = fastest.min(killed.elapsed());
        let Event::Exited(id, report) = next(&mut events).await else { panic!("not exited") };
        assert_eq!((id, report.exit.to_string().as_str()), (worker.id, "was killed by SIGKILL"));
        assert!(!report.asked_for);
        let Event::Ready(next, _) = next(&mut events).await else { panic!("not ready again") };
        assert_eq!((next.id.slot, next.id.generation), (0, generation));
        assert_ne!(next.address, worker.address);
        worker = next;
    }
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
    assert_eq!(supervisor.status()[0].restarts, 3);
    supervisor.stop().await;
}

#[tokio::test]
async fn several_workers_have_addresses_of_their_own() {
    let mut server = config(worker::command(), "socket ok");
    server.num_workers = 3;
    let (supervisor, _events) = start(server);
    let workers = supervisor.workers();
    let mut changes = workers.changes();
    timeout(PATIENCE, changes.wait_for(|_| workers.ready().len() == 3)).await.unwrap().unwrap();
    let ready = workers.ready();
    assert_eq!(ready.iter().map(|worker| worker.id.slot).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(ready[0].address != ready[1].address && ready[1].address != ready[2].address);
    supervisor.stop().await;
    assert!(workers.ready().is_empty());
}

#[tokio::test]
async fn a_stubborn_worker_is_killed_after_the_stop_timeout() {
    let mut argv =
        vec!["sh".to_owned(), "-c".into(), "trap '' TERM; setsid sleep 1000 & exec \"$0\" \"$@\"".into()];
    argv.extend(worker::command());
    let (supervisor, mut events) = start(config(argv, "socket ok"));
    started(&supervisor).await.unwrap();
    let began = std::time::Instant::now();
    supervisor.stop().await;
    assert!(began.elapsed() >= Duration::from_millis(500));
    next(&mut events).await;
    let Event::Exited(_, report) = next(&mut events).await else { panic!("not exited") };
    assert_eq!(report.exit.to_string(), "was killed by SIGKILL");
}

#[tokio::test]
async fn a_worker_that_exits_at_once() {
    let failure = failure(sh("echo no such table >&2; exit 3")).await;
    assert_eq!((failure.phase, failure.seen.as_str()), (Phase::Listen, "it exited with status 3"));
    assert_eq!(failure.output, ["no such table"]);
    let phases: Vec<_> = failure.spent.iter().map(|(phase, _)| phase).collect();
    assert!(phases.starts_with(&[Phase::Spawn]) && phases.ends_with(&[Phase::Listen]), "{phases:?}");
    assert!(failure.to_string().contains("server test: worker 0.1 did not listen: it exited with status 3"));
}

#[tokio::test]
async fn a_worker_that_never_listens() {
    let failure = failure(sh("exec sleep 1000")).await;
    assert_eq!(failure.phase, Phase::Listen);
    let phases: Vec<_> = failure.spent.iter().map(|(phase, _)| phase).collect();
    assert_eq!(phases, [Phase::Spawn, Phase::Exec, Phase::Listen]);
    assert!(failure.seen.starts_with("nothing listens at /") && failure.seen.contains(" or 127.0.0.1:"));
    assert!(failure.advice.contains("GYM_WORKER_SOCKET"));
}

#[tokio::test]
async fn a_worker_that_listens_and_never_answers() {
    for behaviour in ["port mute", "socket mute"] {
        let mut server = config(worker::command(), behaviour);
        // Longer than one probe.
        server.settings.start_timeout = Duration::from_millis(2600);
        let (supervisor, _events) = start(server);
        let failure = started(&supervisor).await.unwrap_err();
        assert_eq!(failure.phase, Phase::Probe);
        assert!(failure.seen.starts_with("GET /readyz was not answered within 2 s at "), "{}", failure.seen);
        supervisor.stop().await;
    }
}

#[tokio::test]
async fn a_worker_that_is_never_ready() {
    let failure = failure(config(worker::command(), "socket unready")).await;
    assert_eq!(failure.phase, Phase::Probe);
    assert!(failure.seen.starts_with("GET /healthz was answered with 503"), "{}", failure.seen);
}

#[tokio::test]
async fn a_command_that_is_not_there() {
    let mut server = sh("");
    if let Launch::Command { argv, .. } = &mut server.launch {
        *argv = vec!["/no/such/program".into()];
    }
    let failure = failure(server).await;
    assert_eq!(failure.phase, Phase::Exec);
    assert!(failure.seen.starts_with("cannot run /no/such/program"), "{}", failure.seen);
}

#[tokio::test]
async fn a_keeper_that_is_not_there() {
    let (sender, _events) = mpsc::unbounded_channel();
    let supervisor = Supervisor::start(
        Arc::new(sh("exit 0")),
        &gateway_settings(),
        Arc::default(),
        Arc::new(Events(sender)),
        "/no/such/gateway".into(),
    )
    .unwrap();
    let failure = started(&supervisor).await.unwrap_err();
    assert_eq!(failure.phase, Phase::Spawn);
    assert!(failure.seen.contains("/no/such/gateway"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stranger_on_the_worker_s_port_is_not_taken_for_it() {
    let mut server = sh("echo $PORT; exec sleep 1000");
    server.settings.start_timeout = Duration::from_secs(2);
    let (supervisor, _events) = start(server);
    until("the worker tells its port", || !supervisor.status()[0].output.is_empty());
    let port: u16 = supervisor.status()[0].output[0].parse().unwrap();
    let _stranger = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let failure = started(&supervisor).await.unwrap_err();
    assert_eq!(failure.phase, Phase::Listen);
    assert_eq!(failure.seen, format!("another program listens at 127.0.0.1:{port}"));
    supervisor.stop().await;
}
