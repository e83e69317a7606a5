//! One slot: its processes, one after the other.

mod cell;

use std::{sync::Arc, time::Duration};

use nix::sys::signal::Signal;
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

pub(crate) use cell::Cell;

use super::{
    ExitReport, Phase, SlotState, StartFailure, Worker, WorkerEvents, WorkerSet,
    backoff::Backoff,
    process::Process,
    spawner::{Answered, Launched, Progress, Spawner},
};
use crate::{
    keeper::{Exit, Order},
    worker_id::WorkerId,
};

/// How the first starts of a server's slots went.
#[derive(Debug, Default)]
pub(crate) struct FirstStarts {
    pub(crate) one_is_ready: bool,
    pub(crate) failures: Vec<StartFailure>,
}

/// Times that the config sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) start_timeout: Duration,
    pub(crate) stop_timeout: Duration,
    pub(crate) restart_backoff: Duration,
    pub(crate) restart_backoff_max: Duration,
}

/// What a server's slots share.
pub(crate) struct Shared {
    pub(crate) server: String,
    pub(crate) times: Times,
    pub(crate) spawner: Box<dyn Spawner>,
    pub(crate) events: Arc<dyn WorkerEvents>,
    pub(crate) workers: Arc<WorkerSet>,
    pub(crate) first_starts: watch::Sender<FirstStarts>,
    pub(crate) stop: CancellationToken,
}

/// One slot's task.
pub(crate) struct Slot {
    shared: Arc<Shared>,
    slot: u16,
    cell: Arc<Cell>,
}

/// Why waiting for readiness ended.
enum Start {
    Ready(Answered),
    Exited(Exit),
    TimedOut,
    Stopped,
}

impl Slot {
    pub(crate) fn new(shared: Arc<Shared>, slot: u16) -> Self {
        Self { shared, slot, cell: Arc::new(Cell::new(slot)) }
    }

    pub(crate) fn cell(&self) -> Arc<Cell> {
        Arc::clone(&self.cell)
    }

    /// Keeps the slot filled until it is told to stop.
    pub(crate) async fn run(self) {
        let Times { restart_backoff, restart_backoff_max, .. } = self.shared.times;
        let mut backoff = Backoff::new(restart_backoff, restart_backoff_max);
        let mut generation = 1;
        while !self.shared.stop.is_cancelled() {
            let ready_for = self.one_life(WorkerId { slot: self.slot, generation }).await;
            generation += 1;
            let wait = backoff.next(ready_for);
            if !self.shared.stop.is_cancelled() && !wait.is_zero() {
                tracing::info!(
                    server = self.shared.server,
                    slot = self.slot,
                    "next start in {:.1} s",
                    wait.as_secs_f64()
                );
            }
            // Told to stop: out at once.
            let _ = timeout(wait, self.shared.stop.cancelled()).await;
        }
        self.cell.set_state(SlotState::Stopped);
    }

    /// One process from start to end. Returns how long it was ready, if it ever was.
    async fn one_life(&self, id: WorkerId) -> Option<Duration> {
        let began = Instant::now();
        let mut launched = match self.shared.spawner.launch(id) {
            Ok(launched) => launched,
            Err(seen) => {
                self.cell.begin(id, None);
                self.failed_start(id, began, None, Progress { phase: Phase::Spawn, seen }, None);
                return None;
            }
        };
        self.cell.begin(id, Some(launched.process.clone()));
        let mut progress = Progress { phase: Phase::Spawn, seen: "its keeper was not started".into() };
        match self.wait_ready(&launched, &mut progress, began).await {
            Start::Ready(Answered { address, headers }) => {
                // The worker has it now.
                launched.places.port = None;
                let worker = Arc::new(Worker::new(id, address));
                Some(self.ready_life(&launched.process, &worker, &headers).await)
            }
            Start::Exited(exit) => {
                launched.process.gone().await;
                let (phase, seen) = match launched.process.stage().failed {
                    Some(failed) => failed,
                    None => (progress.phase.max(Phase::Listen), format!("it {exit}")),
                };
                self.failed_start(id, began, Some(&launched), Progress { phase, seen }, Some(exit));
                None
            }
            Start::TimedOut => {
                launched.process.order(Order::Kill);
                launched.process.gone().await;
                self.failed_start(id, began, Some(&launched), progress, None);
                None
            }
            Start::Stopped => {
                self.end(&launched.process).await;
                launched.process.gone().await;
                progress.seen.push_str("; the gateway was stopped");
                self.failed_start(id, began, Some(&launched), progress, None);
                None
            }
        }
    }

    async fn wait_ready(&self, launched: &Launched, progress: &mut Progress, began: Instant) -> Start {
        let deadline = began + self.shared.times.start_timeout;
        tokio::select! {
            biased;
            () = self.shared.stop.cancelled() => Start::Stopped,
            exit = launched.process.exited() => Start::Exited(exit),
            ready = timeout_at(deadline, self.shared.spawner.ready(launched, progress)) => {
                ready.map_or(Start::TimedOut, Start::Ready)
            }
        }
    }

    /// A ready worker's life to its end. Returns how long it was.
    async fn ready_life(
        &self,
        process: &Process,
        worker: &Arc<Worker>,
        headers: &http::HeaderMap,
    ) -> Duration {
        let Shared { server, events, workers, first_starts, .. } = &*self.shared;
        let since = Instant::now();
        self.cell.ready(&worker.address);
        tracing::info!(
            server,
            slot = self.slot,
            generation = worker.id.generation,
            "ready at {}",
            worker.address
        );
        events.ready(worker, headers);
        workers.add(worker);
        workers.changed();
        first_starts.send_modify(|first| first.one_is_ready = true);
        let (exit, asked_for) = tokio::select! {
            biased;
            exit = process.exited() => (exit, false),
            () = self.shared.stop.cancelled() => {
                workers.remove(worker.id);
                (self.end(process).await, true)
            }
        };
        workers.remove(worker.id);
        let report =
            ExitReport { exit, ready_for: since.elapsed(), asked_for, output: process.output().lines() };
        events.exited(worker.id, &report);
        worker.exited().cancel();
        workers.changed();
        self.ended(worker.id, &report);
        process.gone().await;
        report.ready_for
    }

    /// Asks a process to end, and kills its group if it does not.
    async fn end(&self, process: &Process) -> Exit {
        self.cell.set_state(SlotState::Draining);
        process.order(Order::Signal(Signal::SIGTERM as i32));
        match timeout(self.shared.times.stop_timeout, process.exited()).await {
            Ok(exit) => exit,
            Err(_) => {
                let limit = self.shared.times.stop_timeout.as_secs_f64();
                tracing::warn!(
                    server = self.shared.server,
                    slot = self.slot,
                    "still there {limit:.1} s after SIGTERM: killed"
                );
                process.order(Order::Kill);
                process.exited().await
            }
        }
    }

    fn ended(&self, id: WorkerId, report: &ExitReport) {
        let text = format!("{id} {} after {:.1} s", report.exit, report.ready_for.as_secs_f64());
        if report.asked_for {
            tracing::info!(server = self.shared.server, slot = self.slot, "worker {text}");
        } else {
            tracing::error!(server = self.shared.server, slot = self.slot, "worker {text}");
        }
        self.cell.ended(if report.asked_for { SlotState::Stopped } else { SlotState::Failed }, text);
    }

    fn failed_start(
        &self,
        id: WorkerId,
        began: Instant,
        launched: Option<&Launched>,
        progress: Progress,
        exit: Option<Exit>,
    ) {
        let failure = StartFailure {
            server: self.shared.server.clone(),
            worker: id,
            phase: progress.phase,
            after: began.elapsed(),
            advice: advice(progress.phase, exit.is_some()).into(),
            exit,
            seen: progress.seen,
            command: launched.map(|launched| launched.command.clone()).unwrap_or_default(),
            output: launched.map(|launched| launched.process.output().last_lines()).unwrap_or_default(),
        };
        if !self.shared.stop.is_cancelled() {
            tracing::error!(server = failure.server, slot = self.slot, "{failure}");
        }
        self.cell.ended(SlotState::Failed, format!("{id} did not start: {}", failure.seen));
        if id.generation == 1 {
            self.shared.first_starts.send_modify(|first| first.failures.push(failure));
        }
    }
}

fn advice(phase: Phase, exited: bool) -> &'static str {
    match (phase, exited) {
        (Phase::Spawn, _) => "see whether the system is out of processes, files or ports, and /proc is there",
        (Phase::Exec, _) => {
            "see whether the program and its folder exist and may be used; set `command` or `python` right"
        }
        (_, true) => "read its output above; run the command by hand in that folder to see it fail",
        (Phase::Listen, _) => {
            "have it listen where {socket} or {port} in its command, or GYM_WORKER_SOCKET or PORT in its environment, says; \
             if it is only slow, raise `start_timeout_seconds`"
        }
        (Phase::Probe, _) => {
            "have it answer GET /readyz, /healthz, /health or / with a status below 400; \
             if it is only slow, raise `start_timeout_seconds`"
        }
    }
}

#[cfg(test)]
mod tests;
