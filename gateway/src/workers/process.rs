//! A worker's process: follows its keeper's reports, and hands its output to the log.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{
    capture::Capture,
    log_file::LogFile,
    report::{OutputRing, Phase},
};
use crate::keeper::{Cgroup, Exit, Keeper, Order, Report, StartSpec, Stream};

/// How long a keeper may take to kill and reap what is left; then it is killed itself.
const END_LIMIT: Duration = Duration::from_secs(10);

/// What is known of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stage {
    /// Its keeper's process ID, as long as there is one.
    pub(crate) keeper: Option<i32>,
    /// Its process ID, as long as it runs.
    pub(crate) pid: Option<i32>,
    /// Why its command does not run.
    pub(crate) failed: Option<(Phase, String)>,
    /// How it ended.
    pub(crate) exit: Option<Exit>,
    /// Nothing is left of it, and all its output has come.
    pub(crate) gone: bool,
}

/// A process that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    stage: watch::Receiver<Stage>,
    orders: mpsc::UnboundedSender<Order>,
    output: Arc<OutputRing>,
}

/// The other end of a [`Process`].
#[derive(Debug)]
pub(crate) struct ProcessDriver {
    pub(crate) stage: watch::Sender<Stage>,
    pub(crate) orders: mpsc::UnboundedReceiver<Order>,
    pub(crate) output: Arc<OutputRing>,
    /// Where standard output goes instead of the log.
    pub(crate) capture: Option<Arc<Capture>>,
}

/// Whose output it is, in the log.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) server: String,
    /// The slot; `None`: a server that is asked something.
    pub(crate) slot: Option<u16>,
    /// Where it goes besides.
    pub(crate) log: Option<Arc<LogFile>>,
}

impl Label {
    fn mark(&self, what: &str) {
        if let Some(log) = &self.log {
            log.mark(what);
        }
    }
}

impl Process {
    /// A process that someone else drives.
    pub(crate) fn driven() -> (Self, ProcessDriver) {
        let (stage_sender, stage) = watch::channel(Stage::default());
        let (orders, orders_receiver) = mpsc::unbounded_channel();
        let output = Arc::new(OutputRing::default());
        let driver = ProcessDriver {
            stage: stage_sender,
            orders: orders_receiver,
            output: Arc::clone(&output),
            capture: None,
        };
        (Self { stage, orders, output }, driver)
    }

    /// Starts a keeper (`binary keeper`) and through it a process.
    pub(crate) fn start(binary: PathBuf, spec: StartSpec, label: Label) -> Self {
        let (process, driver) = Self::driven();
        tokio::spawn(driver.run(binary, spec, label));
        process
    }

    /// The same, and keeps what it writes on its standard output, up to `limit` bytes.
    pub(crate) fn start_captured(
        binary: PathBuf,
        spec: StartSpec,
        label: Label,
        limit: usize,
    ) -> (Self, Arc<Capture>) {
        let (process, mut driver) = Self::driven();
        let capture = Arc::new(Capture::new(limit));
        driver.capture = Some(Arc::clone(&capture));
        tokio::spawn(driver.run(binary, spec, label));
        (process, capture)
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage.borrow().clone()
    }

    pub(crate) fn output(&self) -> &OutputRing {
        &self.output
    }

    /// Waits until it has a keeper. Stays pending if it never will: that is an exit.
    pub(crate) async fn kept(&self) {
        if self.stage.clone().wait_for(|stage| stage.keeper.is_some()).await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits until its command runs. Stays pending if it never will: that is an exit.
    pub(crate) async fn started(&self) {
        if self.stage.clone().wait_for(|stage| stage.pid.is_some()).await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits for its end, which may be that it never ran.
    pub(crate) async fn exited(&self) -> Exit {
        let unknown = || Exit::Unknown("was lost sight of".into());
        match self.stage.clone().wait_for(|stage| stage.exit.is_some()).await {
            Ok(stage) => stage.exit.clone().unwrap_or_else(unknown),
            Err(_) => unknown(),
        }
    }

    /// Waits until nothing is left of it, and all its output has come.
    pub(crate) async fn gone(&self) {
        // An error says that nobody looks after it any more.
        let _ = self.stage.clone().wait_for(|stage| stage.gone).await;
    }

    pub(crate) fn order(&self, order: Order) {
        // Nobody takes it when the process is gone already.
        let _ = self.orders.send(order);
    }
}

impl ProcessDriver {
    async fn run(mut self, binary: PathBuf, spec: StartSpec, label: Label) {
        let cgroup = spec.conditions.cgroup.clone();
        let mut keeper = match Keeper::spawn(&binary).await {
            Ok(keeper) => keeper,
            Err(error) => {
                let error = format!("cannot start its keeper {}: {error}", binary.display());
                self.stage.send_modify(|stage| {
                    stage.failed = Some((Phase::Spawn, error.clone()));
                    stage.exit = Some(Exit::Unknown(error));
                    stage.gone = true;
                });
                return;
            }
        };
        self.stage.send_modify(|stage| stage.keeper = Some(keeper.pid()));
        // Should that fail, the reports end.
        if keeper.order(&Order::Start(spec)).await.is_ok() {
            self.follow(&mut keeper, &label).await;
        }
        self.end(keeper, cgroup, &label).await;
    }

    /// Until the keeper has nothing more to say.
    async fn follow(&mut self, keeper: &mut Keeper, label: &Label) {
        let mut deadline = None;
        loop {
            let overdue = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                report = keeper.next() => match report {
                    Some(report) => {
                        if matches!(report, Report::Exited(_) | Report::StartFailed { .. }) {
                            deadline = Some(Instant::now() + END_LIMIT);
                        }
                        self.take(report, label);
                    }
                    None => return,
                },
                Some(order) = self.orders.recv() => {
                    if order == Order::Kill {
                        deadline = Some(Instant::now() + END_LIMIT);
                    }
                    // A keeper that cannot be told anything has ended; the next report says so.
                    let _ = keeper.order(&order).await;
                }
                () = overdue => return,
            }
        }
    }

    fn take(&self, report: Report, label: &Label) {
        match report {
            Report::Started { pid } => {
                label.mark(&format!("process {pid} started"));
                self.stage.send_modify(|stage| stage.pid = Some(pid));
            }
            Report::StartFailed { error } => {
                label.mark(&error);
                self.stage.send_modify(|stage| {
                    stage.failed = Some((Phase::Exec, error.clone()));
                    stage.exit.get_or_insert(Exit::Unknown(error));
                });
            }
            Report::Output { stream, line } => {
                match self.capture.as_ref().filter(|_| stream == Stream::Stdout) {
                    Some(capture) => capture.push(&line),
                    None => {
                        tracing::info!(target: "worker", server = label.server, slot = label.slot, stream = stream.as_str(), "{line}");
                    }
                }
                self.output.push(&line);
                if let Some(log) = &label.log {
                    log.line(&line);
                }
            }
            Report::Exited(exit) => {
                label.mark(&format!("its process {exit}"));
                self.stage.send_modify(|stage| {
                    stage.pid = None;
                    stage.exit.get_or_insert(exit);
                });
            }
            Report::Gone { .. } => {}
        }
    }

    async fn end(&self, keeper: Keeper, cgroup: Option<Cgroup>, label: &Label) {
        let (server, slot) = (&label.server, label.slot);
        let mut exit = Exit::Unknown("ended unseen".into());
        match keeper.end().await {
            Ok(ending) => {
                if !ending.orderly {
                    tracing::warn!(
                        server,
                        slot,
                        "the worker's keeper died; the worker and what it forked were killed"
                    );
                    exit = Exit::Unknown("was killed because its keeper died".into());
                    label.mark(&format!("its process {exit}"));
                    // Its keeper would have.
                    if let Some(Err(error)) = cgroup.map(|cgroup| cgroup.remove()) {
                        tracing::warn!(server, slot, "cannot remove the worker's cgroup: {error}");
                    }
                }
                if !ending.left.is_empty() {
                    tracing::error!(
                        server,
                        slot,
                        "these processes of the worker cannot be killed: {:?}",
                        ending.left
                    );
                }
            }
            Err(error) => tracing::error!(server, slot, "cannot end the worker's keeper: {error}"),
        }
        if let Some(log) = &label.log {
            log.flush().await;
        }
        self.stage.send_modify(|stage| {
            stage.keeper = None;
            stage.pid = None;
            stage.exit.get_or_insert(exit);
            stage.gone = true;
        });
    }
}
