//! One slot: its processes, one after the other.

mod cell;

use std::{convert::Infallible, sync::Arc, time::Duration};

use nix::sys::signal::Signal;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

pub(crate) use cell::Cell;

use super::{
    ExitReport, Phase, SlotState, StartFailure, Worker, WorkerEvents, WorkerSet, advice,
    backoff::{Backoff, BackoffTimes, HEALTHY_AFTER, Next},
    process::Process,
    progress::Progress,
    spawner::{Answered, Launched, Spawner},
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
    pub(crate) backoff: BackoffTimes,
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
        let cell = Arc::new(Cell::new(&shared.server, slot));
        Self { shared, slot, cell }
    }

    pub(crate) fn cell(&self) -> Arc<Cell> {
        Arc::clone(&self.cell)
    }

    /// Keeps the slot filled until it is told to stop.
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::new(self.shared.times.backoff);
        let mut generation = 1;
        while !self.shared.stop.is_cancelled() {
            let ready_for = self.one_life(WorkerId { slot: self.slot, generation }).await;
            generation += 1;
            if !self.shared.stop.is_cancelled() {
                self.wait(&mut backoff, ready_for).await;
            }
        }
        self.cell.stopped();
    }

    /// Waits until the next process may be started, or the slot is told to stop.
    async fn wait(&self, backoff: &mut Backoff, ready_for: Option<Duration>) {
        let next = backoff.next(ready_for);
        let failures = backoff.failures();
        let wait = match next {
            Next::Now => return,
            Next::Wait(wait) => {
                let reason =
                    format!("failure {failures} in a row, next start in {:.1} s", wait.as_secs_f64());
                self.cell.waits(SlotState::Backoff, failures, &reason);
                wait
            }
            Next::GiveUp(wait) => {
                let reason = format!(
                    "{failures} failures in a row (`max_start_failures`), next start in {:.0} s (`failed_retry_seconds`)",
                    wait.as_secs_f64()
                );
                self.cell.waits(SlotState::Failed, failures, &reason);
                wait
            }
        };
        // Told to stop: out at once.
        let _ = timeout(wait, self.shared.stop.cancelled()).await;
    }

    /// One process from start to end. Returns how long it was ready, if it ever was.
    async fn one_life(&self, id: WorkerId) -> Option<Duration> {
        let mut progress = Progress::begin();
        let deadline = Instant::now() + self.shared.times.start_timeout;
        let mut launched = match self.shared.spawner.launch(id) {
            Ok(launched) => launched,
            Err(seen) => {
                self.cell.begin(id, None);
                progress.reach(Phase::Spawn, seen);
                self.failed_start(id, None, progress, None);
                return None;
            }
        };
        self.cell.begin(id, Some(launched.process.clone()));
        match self.wait_ready(&launched, &mut progress, deadline).await {
            Start::Ready(Answered { address, headers }) => {
                // The worker has it now.
                launched.places.port = None;
                let worker = Arc::new(Worker::new(id, address));
                Some(self.ready_life(&launched.process, &worker, &headers).await)
            }
            Start::Exited(exit) => {
                let (phase, seen) = match launched.process.stage().failed {
                    Some(failed) => failed,
                    None => (progress.phase.max(Phase::Listen), format!("it {exit}")),
                };
                progress.reach(phase, seen);
                launched.process.gone().await;
                self.failed_start(id, Some(&launched), progress, Some(exit));
                None
            }
            Start::TimedOut => {
                progress.spent_now();
                launched.process.order(Order::Kill);
                launched.process.gone().await;
                self.failed_start(id, Some(&launched), progress, None);
                None
            }
            Start::Stopped => {
                progress.spent_now();
                self.end(&launched.process).await;
                launched.process.gone().await;
                progress.seen.push_str("; the gateway was stopped");
                let failure = self.failure(id, Some(&launched), progress, None);
                self.cell.broke_off(&failure);
                self.first_start(failure);
                None
            }
        }
    }

    async fn wait_ready(&self, launched: &Launched, progress: &mut Progress, deadline: Instant) -> Start {
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
        let Shared { events, workers, first_starts, .. } = &*self.shared;
        let since = Instant::now();
        self.cell.ready(&worker.address);
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
            never = self.healthy() => match never {},
        };
        workers.remove(worker.id);
        let report =
            ExitReport { exit, ready_for: since.elapsed(), asked_for, output: process.output().lines() };
        events.exited(worker.id, &report);
        worker.exited().cancel();
        workers.changed();
        self.cell.ended(worker.id, &report);
        process.gone().await;
        report.ready_for
    }

    /// Notes when a worker has been ready for long enough to count as healthy.
    async fn healthy(&self) -> Infallible {
        sleep(HEALTHY_AFTER).await;
        self.cell.healthy();
        std::future::pending().await
    }

    /// Asks a process to end, and kills its group if it does not.
    async fn end(&self, process: &Process) -> Exit {
        self.cell.draining("the gateway stops");
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

    fn failed_start(
        &self,
        id: WorkerId,
        launched: Option<&Launched>,
        progress: Progress,
        exit: Option<Exit>,
    ) {
        let failure = self.failure(id, launched, progress, exit);
        self.cell.failed_start(&failure);
        self.first_start(failure);
    }

    fn failure(
        &self,
        id: WorkerId,
        launched: Option<&Launched>,
        progress: Progress,
        exit: Option<Exit>,
    ) -> StartFailure {
        let output = |launched: &Launched| launched.process.output().last_lines();
        StartFailure {
            server: self.shared.server.clone(),
            worker: id,
            phase: progress.phase,
            spent: progress.spent,
            advice: advice::for_start(progress.phase, exit.as_ref()).into(),
            exit,
            seen: progress.seen,
            command: launched.map(|launched| launched.command.clone()).unwrap_or_default(),
            output: launched.map(output).unwrap_or_default(),
        }
    }

    /// Tells whoever waits for the server's first worker.
    fn first_start(&self, failure: StartFailure) {
        if failure.worker.generation == 1 {
            self.shared.first_starts.send_modify(|first| first.failures.push(failure));
        }
    }
}

#[cfg(test)]
mod tests;
