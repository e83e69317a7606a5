//! One process of a slot, from its start to its end.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use nix::sys::signal::Signal;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at},
};

use super::{Cell, Place};
use crate::{
    config::ServerConfig,
    keeper::{Exit, Order},
    worker_id::WorkerId,
    workers::{
        ExitReport, Phase, StartFailure, Worker, advice,
        backoff::HEALTHY_AFTER,
        hang::hung,
        limits::Cause,
        process::Process,
        progress::Progress,
        shared::Shared,
        spawner::{Answered, Launched},
    },
};

/// How often a draining worker is looked at. Nothing tells of its last session's end: that would be work for every request.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A process to be lived with.
pub(super) struct Life {
    pub(super) shared: Arc<Shared>,
    pub(super) cell: Arc<Cell>,
    pub(super) id: WorkerId,
    /// What it is started as.
    pub(super) config: Arc<ServerConfig>,
    pub(super) place: Place,
    /// Set, with the reason, when the slot needs it no more.
    pub(super) leave: watch::Receiver<Option<String>>,
    /// Told when it is ready.
    pub(super) ready: mpsc::UnboundedSender<WorkerId>,
}

/// How it was.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) id: WorkerId,
    /// How long it was ready, if it ever was.
    pub(super) ready_for: Option<Duration>,
    /// Why it did not become ready, unless it was told to end before.
    pub(super) failure: Option<Box<StartFailure>>,
}

/// Why waiting for readiness ended.
enum Start {
    Ready(Answered),
    Exited(Exit),
    TimedOut,
    Unwanted(String),
}

/// Why a ready worker's time ended.
enum Turn {
    Exited(Exit),
    Stop,
    Leave(String),
    /// Its drain is over: nothing is left, or the rest is given up.
    Retired,
    /// It has answered nothing for so long.
    Hung(Duration),
}

impl Life {
    pub(super) async fn run(mut self) -> Ended {
        let id = self.id;
        let mut progress = Progress::begin();
        let deadline = Instant::now() + self.config.settings.start_timeout;
        let mut launched = match self.shared.spawner.launch(&self.config, id) {
            Ok(launched) => launched,
            Err(seen) => {
                self.cell.begin(id, None, self.place);
                progress.reach(Phase::Spawn, seen);
                return self.failed_start(None, progress, None);
            }
        };
        self.cell.begin(id, Some(launched.process.clone()), self.place);
        match self.wait_ready(&launched, &mut progress, deadline).await {
            Start::Ready(Answered { address, headers }) => {
                // The worker has it now.
                launched.places.port = None;
                let pid = launched.process.stage().pid;
                let worker = Arc::new(Worker::new(id, address).with_pid(pid).in_set(&self.shared.workers));
                let ready_for = self.ready_life(&launched.process, &worker, &headers).await;
                Ended { id, ready_for: Some(ready_for), failure: None }
            }
            Start::Exited(exit) => {
                let (phase, seen) = match launched.process.stage().failed {
                    Some(failed) => failed,
                    None => (progress.phase.max(Phase::Listen), format!("it {exit}")),
                };
                progress.reach(phase, seen);
                launched.process.gone().await;
                self.failed_start(Some(&launched), progress, Some(exit))
            }
            Start::TimedOut => {
                progress.spent_now();
                launched.process.order(Order::Kill);
                launched.process.gone().await;
                self.failed_start(Some(&launched), progress, None)
            }
            Start::Unwanted(why) => {
                progress.spent_now();
                self.cell.draining(id, &why);
                self.end(&launched.process, Signal::SIGTERM).await;
                launched.process.gone().await;
                progress.seen.push_str(&format!("; {why}"));
                let failure = self.failure(Some(&launched), progress, None);
                self.cell.broke_off(&failure);
                self.first_start(&failure);
                Ended { id, ready_for: None, failure: None }
            }
        }
    }

    async fn wait_ready(&mut self, launched: &Launched, progress: &mut Progress, deadline: Instant) -> Start {
        let Self { shared, leave, .. } = self;
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => Start::Unwanted("the gateway was stopped".into()),
            why = told_to_leave(leave) => Start::Unwanted(why),
            exit = launched.process.exited() => Start::Exited(exit),
            ready = timeout_at(deadline, shared.spawner.ready(launched, progress)) => {
                ready.map_or(Start::TimedOut, Start::Ready)
            }
        }
    }

    /// A ready worker's life to its end. Returns how long it was.
    async fn ready_life(
        &mut self,
        process: &Process,
        worker: &Arc<Worker>,
        headers: &http::HeaderMap,
    ) -> Duration {
        let id = self.id;
        let shared = Arc::clone(&self.shared);
        let since = Instant::now();
        self.cell.ready(id, &worker.address);
        shared.events.ready(worker, headers);
        shared.workers.add(worker);
        shared.workers.changed();
        shared.first_starts.send_modify(|first| first.one_is_ready = true);
        // Nobody listens where the slot is being stopped.
        let _ = self.ready.send(id);

        let mut turn = self.serve(process, worker).await;
        if let Turn::Leave(why) = turn {
            turn = self.drain(process, worker, &why).await;
        }
        let retired = matches!(turn, Turn::Retired | Turn::Hung(_));
        let mut hung = None;
        let (exit, asked_for) = match turn {
            Turn::Exited(exit) => (exit, false),
            Turn::Retired => {
                self.retire(worker);
                (self.end(process, Signal::SIGTERM).await, true)
            }
            Turn::Hung(quiet) => {
                hung = Some(quiet);
                self.say_hung(quiet);
                self.retire(worker);
                (self.end(process, Signal::SIGABRT).await, false)
            }
            Turn::Stop | Turn::Leave(_) => {
                self.cell.draining(id, "the gateway stops");
                shared.workers.remove(id);
                (self.end(process, Signal::SIGTERM).await, true)
            }
        };
        let report = ExitReport {
            exit,
            ready_for: since.elapsed(),
            asked_for,
            hung,
            output: process.output().lines(),
        };
        if !retired {
            shared.workers.remove(id);
            shared.events.exited(id, &report);
            worker.exited().cancel();
            shared.workers.changed();
        }
        self.cell.ended(id, &report);
        process.gone().await;
        report.ready_for
    }

    /// To the rest of the gateway it is gone from here on: what a worker says after its signal is no reply.
    fn retire(&self, worker: &Worker) {
        self.shared.workers.remove(self.id);
        self.shared.events.retired(self.id);
        worker.exited().cancel();
        self.shared.workers.changed();
    }

    fn say_hung(&self, quiet: Duration) {
        let (id, left) = (self.id, self.shared.events.sessions(self.id));
        let limit = self.shared.config().settings.limits.hang_timeout.unwrap_or_default();
        self.cell.replaced(Cause::Hang);
        tracing::error!(
            server = self.shared.server,
            slot = id.slot,
            generation = id.generation,
            cause = Cause::Hang.as_str(),
            sessions_lost = left.claimed + left.open,
            "worker {id} hangs, and is aborted: it has answered neither a request nor a probe for {:.1} s \
             (hang_timeout_seconds: {}); its sessions are lost",
            quiet.as_secs_f64(),
            limit.as_secs_f64()
        );
    }

    /// Until it exits, or is to end.
    async fn serve(&mut self, process: &Process, worker: &Worker) -> Turn {
        let Self { shared, leave, cell, id, .. } = self;
        let healthy = async {
            sleep(HEALTHY_AFTER).await;
            cell.healthy(*id);
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            exit = process.exited() => Turn::Exited(exit),
            () = shared.stop.cancelled() => Turn::Stop,
            why = told_to_leave(leave) => Turn::Leave(why),
            quiet = hung(shared, worker) => Turn::Hung(quiet),
            never = healthy => match never {},
        }
    }

    /// Keeps its sessions and takes no new ones, until none is left and nothing is in flight, or its time is over.
    async fn drain(&self, process: &Process, worker: &Worker, why: &str) -> Turn {
        let Shared { events, workers, stop, .. } = &*self.shared;
        let (id, begun) = (self.id, Instant::now());
        worker.drain();
        self.cell.draining(id, why);
        let mut hung = pin!(hung(&self.shared, worker));
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                exit = process.exited() => return Turn::Exited(exit),
                () = stop.cancelled() => return Turn::Stop,
                quiet = &mut hung => return Turn::Hung(quiet),
                _ = look.tick() => {}
            }
            match worker.close_if(|| events.sessions(id).all() == 0) {
                Some(true) => return Turn::Retired,
                // It is open again: whoever was turned away may come.
                Some(false) => workers.changed(),
                None => {}
            }
            // Read each time: a reload may have changed it.
            let limit = self.shared.drain_timeout();
            if limit.is_some_and(|limit| begun.elapsed() >= limit) {
                self.give_up(worker, begun.elapsed());
                return Turn::Retired;
            }
        }
    }

    /// The drain's time is over: says what is lost with the worker.
    fn give_up(&self, worker: &Worker, after: Duration) {
        worker.close();
        let left = self.shared.events.sessions(self.id);
        let (lost, in_flight) = (left.claimed + left.open, worker.in_flight());
        self.shared.drains.note(lost as u64);
        tracing::warn!(
            server = self.shared.server,
            slot = self.id.slot,
            generation = self.id.generation,
            sessions_lost = lost,
            requests_cut = in_flight,
            "the drain was not over after {:.1} s (drain_timeout_seconds): {lost} sessions are lost, {in_flight} requests cut",
            after.as_secs_f64()
        );
    }

    /// Asks a process to end, and kills its group if it does not.
    async fn end(&self, process: &Process, signal: Signal) -> Exit {
        process.order(Order::Signal(signal as i32));
        let limit = self.shared.stop_timeout();
        match timeout(limit, process.exited()).await {
            Ok(exit) => exit,
            Err(_) => {
                tracing::warn!(
                    server = self.shared.server,
                    slot = self.id.slot,
                    "still there {:.1} s after {signal}: killed",
                    limit.as_secs_f64()
                );
                process.order(Order::Kill);
                process.exited().await
            }
        }
    }

    fn failed_start(&self, launched: Option<&Launched>, progress: Progress, exit: Option<Exit>) -> Ended {
        let failure = self.failure(launched, progress, exit);
        self.cell.failed_start(&failure);
        self.first_start(&failure);
        Ended { id: self.id, ready_for: None, failure: Some(Box::new(failure)) }
    }

    fn failure(&self, launched: Option<&Launched>, progress: Progress, exit: Option<Exit>) -> StartFailure {
        let output = |launched: &Launched| launched.process.output().last_lines();
        StartFailure {
            server: self.shared.server.clone(),
            worker: self.id,
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
    fn first_start(&self, failure: &StartFailure) {
        if self.id.generation == 1 {
            self.shared.first_starts.send_modify(|first| first.failures.push(failure.clone()));
        }
    }
}

/// Waits for the word that it is not needed any more. Stays pending where nobody can say it.
async fn told_to_leave(leave: &mut watch::Receiver<Option<String>>) -> String {
    match leave.wait_for(Option::is_some).await.map(|why| why.clone()) {
        Ok(Some(why)) => why,
        _ => std::future::pending().await,
    }
}
