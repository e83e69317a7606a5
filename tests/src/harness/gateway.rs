//! One running gateway.

use std::{
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Mutex, OnceLock, PoisonError},
};

use http::Method;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::{Call, Raw, Setup, Workers, admin, binary, log::Log, poll, processes, soon};

/// A gateway's process, its workers' reports and its log. Killed with its workers when dropped.
#[derive(Debug)]
pub struct Gateway {
    child: Mutex<Child>,
    pid: u32,
    log: Log,
    output: Log,
    /// What the stub workers saw.
    pub workers: Workers,
    front: OnceLock<SocketAddr>,
    admin: OnceLock<SocketAddr>,
    directory: TempDir,
}

impl Gateway {
    /// Starts the binary with the arguments that are made from a folder of the test's own; the log comes in JSON.
    pub fn launch(args: impl FnOnce(&Path) -> Vec<String>) -> Self {
        Self::launch_copy(binary::gateway(), args)
    }

    /// As [`Gateway::launch`], of another copy of the binary.
    pub fn launch_copy(program: &Path, args: impl FnOnce(&Path) -> Vec<String>) -> Self {
        Self::launch_as(program, |_, _| {}, args)
    }

    /// As [`Gateway::launch_copy`]; `set_up` may change how the process is started, and is told the test's own folder.
    pub fn launch_as(
        program: &Path,
        set_up: impl FnOnce(&mut Command, &Path),
        args: impl FnOnce(&Path) -> Vec<String>,
    ) -> Self {
        // Short: a Unix socket's path holds 107 bytes.
        let directory = tempfile::Builder::new().prefix("gg").tempdir().expect("a folder");
        let workers = Workers::listen(directory.path());
        let mut args = args(directory.path());
        if !args.iter().any(|arg| arg == "--log-format") {
            args.splice(1..1, ["--log-format".to_owned(), "json".to_owned()]);
        }
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(directory.path())
            // Its sockets go with the folder, whatever becomes of it.
            .env("XDG_RUNTIME_DIR", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        set_up(&mut command, directory.path());
        let mut child = command.spawn().expect("start the gateway");
        let log = Log::of(child.stderr.take().expect("piped"));
        let output = Log::of(child.stdout.take().expect("piped"));
        let pid = child.id();
        let (front, admin) = Default::default();
        Self { child: Mutex::new(child), pid, log, output, workers, front, admin, directory }
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The log (stderr).
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// What the gateway printed on stdout.
    pub fn output(&self) -> &Log {
        &self.output
    }

    /// The folder with its configuration.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The front address; of several, the first.
    pub fn front(&self) -> SocketAddr {
        *self.front.get().expect("await `front_listens` first")
    }

    /// Waits until the front of that server listens.
    pub async fn front_of(&self, server: &str) -> SocketAddr {
        let what = format!("the front of {server} listens");
        let event =
            self.log.event(&what, |event| event["message"] == "listening" && event["server"] == server).await;
        event.and_then(|event| event["address"].as_str()?.parse().ok()).expect(&what)
    }

    /// The admin address.
    pub fn admin(&self) -> SocketAddr {
        *self.admin.get().expect("await `front_listens` first")
    }

    /// Waits until the front and the admin address are bound.
    pub async fn front_listens(&self) {
        for (cell, is_admin) in [(&self.front, false), (&self.admin, true)] {
            let what = if is_admin { "the admin address listens" } else { "the front listens" };
            let event = self.log.event(what, |event| is_listening(event, is_admin)).await;
            let address = event.as_ref().and_then(|event| event["address"].as_str()?.parse().ok());
            let address = address.unwrap_or_else(|| panic!("{what}: no such line in\n{}", self.log.text()));
            cell.get_or_init(|| address);
        }
    }

    /// Waits until every worker is ready.
    pub async fn ready(&self) {
        self.front_listens().await;
        poll("every worker ready", async || {
            // Before its supervisor runs, a server has no workers at all.
            let workers = admin::workers(&admin::status(self).await);
            (!workers.is_empty() && workers.iter().all(|worker| worker["state"] == "ready")).then_some(())
        })
        .await;
    }

    /// A request to the front.
    pub fn call(&self, method: Method, target: &str) -> Call {
        Call::new(self.front(), method, target)
    }

    /// A GET to the front.
    pub fn get(&self, target: &str) -> Call {
        self.call(Method::GET, target)
    }

    /// A POST to the front.
    pub fn post(&self, target: &str) -> Call {
        self.call(Method::POST, target)
    }

    /// A connection to the front.
    pub async fn raw(&self) -> Raw {
        Raw::connect(self.front()).await
    }

    /// Opens a session by cookie on whichever worker is chosen: its slot.
    pub async fn seed(&self, id: &str) -> u16 {
        self.post("/seed_session")
            .session(id)
            .json(&serde_json::json!({"start": 0}))
            .send()
            .await
            .assert(200)
            .slot()
    }

    /// Opens sessions until there is one on each of two slots: `(id, slot)` of both.
    pub async fn seed_two(&self) -> [(String, u16); 2] {
        let first = ("first".to_owned(), self.seed("first").await);
        for n in 0..8 {
            let id = format!("second-{n}");
            let slot = self.seed(&id).await;
            if slot != first.1 {
                return [first, (id, slot)];
            }
        }
        panic!("eight sessions went to one of two workers");
    }

    /// Runs a command that talks to the gateway's admin address, such as `["drain", "stub/0"]`.
    pub async fn command(&self, args: &[&str]) -> Output {
        self.begin(args).await.expect("the command's thread")
    }

    /// The same, to be waited for.
    pub fn begin(&self, args: &[&str]) -> tokio::task::JoinHandle<Output> {
        let admin = self.admin().to_string();
        let mut command = Command::new(binary::gateway());
        command.args(args).args(["--admin", &admin]).stdin(Stdio::null());
        tokio::task::spawn_blocking(move || command.output().expect("run the command"))
    }

    /// Replaces the configuration's file.
    pub fn rewrite(&self, setup: &Setup) {
        setup.write(self.directory());
    }

    /// Sends the gateway's process a signal.
    pub fn signal(&self, signal: Signal) {
        processes::signal(self.pid, signal);
    }

    /// Waits for the process's exit.
    pub async fn exit(&self) -> ExitStatus {
        let what = "the gateway's exit";
        let status = poll(what, async || {
            self.child
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .try_wait()
                .expect("wait for the gateway")
        })
        .await;
        soon("the end of its output", self.output.ended()).await;
        status
    }

    /// Asserts that nothing is in flight, waits or is buffered, and stops the gateway; the end of a test.
    pub async fn finish(self) {
        admin::quiet(&self).await;
        self.stop().await;
    }

    /// Asks the gateway to stop with SIGTERM; asserts that it exits with 0, has not panicked, and leaves no process.
    pub async fn stop(self) {
        self.signal(Signal::SIGTERM);
        self.stopped().await;
    }

    /// What [`Gateway::stop`] asserts, once the gateway was told to stop.
    pub async fn stopped(&self) {
        let status = self.exit().await;
        assert_eq!(status.code(), Some(0), "the gateway's exit; its log:\n{}", self.log.text());
        assert!(!self.log.text().contains("panicked"), "a panic:\n{}", self.log.text());
        for pid in self.workers.pids() {
            assert!(
                !processes::runs(pid),
                "process {pid} outlived the gateway:\n{}",
                self.workers.describe()
            );
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(child.try_wait(), Ok(None)) {
            // Both fail only if it is gone already.
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!(
                "--- the gateway's log\n{}\n--- its workers' reports\n{}",
                self.log.text(),
                self.workers.describe()
            );
        }
    }
}

/// The line of the first front, or of the admin address.
fn is_listening(event: &Value, admin: bool) -> bool {
    event["message"] == if admin { "admin listening" } else { "listening" } && event["address"].is_string()
}
