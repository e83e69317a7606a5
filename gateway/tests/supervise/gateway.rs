//! A gateway that the tests can kill: this test program once more, with a supervisor in it.

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
};

use gym_gateway::{
    keeper,
    worker_id::WorkerId,
    workers::{ExitReport, Held, Supervisor, Worker, WorkerEvents},
};

use crate::{GATEWAY, config, gateway_settings, program, test_program};

/// Starts [`a_gateway`] whose one worker is run by `script`, a shell's, with the test worker's command as `$0 $@`.
pub(crate) struct Gateway {
    pub(crate) process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Gateway {
    pub(crate) fn start(script: &str) -> Self {
        let argv = test_program(GATEWAY);
        let mut process = Command::new(&argv[0])
            .args(&argv[1..])
            .env("SCRIPT", script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// The next thing that it tells, without the test harness's own words.
    pub(crate) fn tells(&mut self) -> String {
        loop {
            let line = self.lines.next().expect("the gateway still runs").unwrap();
            if let Some(told) = line.split_once("@ ") {
                return told.1.to_owned();
            }
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

struct Tell(tokio::sync::mpsc::UnboundedSender<String>);

impl WorkerEvents for Tell {
    fn ready(&self, worker: &Arc<Worker>, _probe: &http::HeaderMap) {
        self.0.send(format!("ready {}", worker.id)).unwrap();
    }

    fn exited(&self, worker: WorkerId, report: &ExitReport) {
        self.0.send(format!("exited {worker}: {}", report.exit)).unwrap();
    }

    fn retired(&self, _worker: WorkerId) {}

    fn sessions(&self, _worker: WorkerId) -> Held {
        Held::default()
    }

    fn taken(&self, _worker: WorkerId) -> u64 {
        0
    }
}

/// Tells of its worker on standard output, and stops in order when its standard input ends.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_gateway() {
    let Ok(script) = std::env::var("SCRIPT") else { return };
    keeper::become_subreaper().unwrap();
    keeper::raise_nofile_limit().unwrap();
    let (events, mut told) = tokio::sync::mpsc::unbounded_channel();
    let mut argv = vec!["sh".to_owned(), "-c".into(), script];
    argv.extend(crate::worker::command());
    let server = Arc::new(config(argv, "socket ok"));
    let supervisor =
        Supervisor::start(server, &gateway_settings(), Arc::default(), Arc::new(Tell(events)), program())
            .unwrap();
    let input_ended =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    tokio::pin!(input_ended);
    let tell = |event: String| {
        let status = &supervisor.status()[0];
        println!("@ {event} pid {:?} output {}", status.pid, status.output.join(" "));
    };
    loop {
        tokio::select! {
            Some(event) = told.recv() => tell(event),
            _ = &mut input_ended => break,
        }
    }
    supervisor.stop().await;
    while let Ok(event) = told.try_recv() {
        tell(event);
    }
    println!("@ stopped");
}
