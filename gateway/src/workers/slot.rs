//! One slot: the process that it goes by, one that is to take over, and older ones that drain.
//!
//! | | ready | ends |
//! |---|---|---|
//! | *current* | | the successor becomes it; else the next start, after a wait |
//! | *successor* | becomes the current one, which drains from then on | nothing else changes |
//! | *leaving* | | nothing else changes; with the last one an emptied slot is drained |

mod cell;
mod command;
mod life;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};

pub(crate) use cell::{Cell, Place};
pub(crate) use command::{Command, Replace};

use self::life::{Ended, Life};
use super::{
    NotReplaced, SlotState,
    backoff::{Backoff, Next},
    shared::Shared,
    surge::Permit,
};
use crate::worker_id::WorkerId;

/// What becomes of a slot that has no process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    AProcess,
    Nothing,
    /// The same, and the server does not need it.
    NothingForGood,
}

/// A living process.
struct One {
    id: WorkerId,
    task: tokio::task::Id,
    is_ready: bool,
    leave: watch::Sender<Option<String>>,
    /// Why it takes another's place.
    reason: String,
    permit: Option<Permit>,
    done: Option<oneshot::Sender<Result<WorkerId, NotReplaced>>>,
}

impl One {
    fn leave(&self, why: &str) {
        self.leave.send_if_modified(|told| {
            let first = told.is_none();
            told.get_or_insert_with(|| why.to_owned());
            first
        });
    }

    fn answer(&mut self, result: Result<WorkerId, NotReplaced>) {
        if let Some(done) = self.done.take() {
            // Whoever asked may have gone.
            let _ = done.send(result);
        }
    }
}

/// One slot's task.
pub(crate) struct Slot {
    shared: Arc<Shared>,
    slot: u16,
    cell: Arc<Cell>,
    commands: mpsc::UnboundedReceiver<Command>,
    ready: (mpsc::UnboundedSender<WorkerId>, mpsc::UnboundedReceiver<WorkerId>),
    lives: JoinSet<Ended>,
    next_generation: u32,
    backoff: Backoff,
    wants: Wants,
    /// When a slot without a current process is to have the next.
    next_start: Instant,
    current: Option<One>,
    successor: Option<One>,
    leaving: Vec<One>,
}

impl Slot {
    pub(crate) fn new(
        shared: Arc<Shared>,
        slot: u16,
        cell: Arc<Cell>,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        Self {
            backoff: Backoff::new(shared.setup.load().times.backoff),
            shared,
            slot,
            cell,
            commands,
            ready: mpsc::unbounded_channel(),
            lives: JoinSet::new(),
            next_generation: 1,
            wants: Wants::AProcess,
            next_start: Instant::now(),
            current: None,
            successor: None,
            leaving: Vec::new(),
        }
    }

    /// Keeps the slot as it is told to, until the stop.
    pub(crate) async fn run(mut self) {
        let stop = self.shared.stop.clone();
        loop {
            let starts = self.current.is_none() && self.successor.is_none() && self.wants == Wants::AProcess;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(id) = self.ready.1.recv() => self.took_over(id),
                Some(ended) = self.lives.join_next_with_id(), if !self.lives.is_empty() => match ended {
                    Ok((_, ended)) => self.ended(ended),
                    Err(error) => self.panicked(&error),
                },
                Some(command) = self.commands.recv() => self.obey(command),
                () = sleep_until(self.next_start), if starts => {
                    self.current = Some(self.start(Place::Shown, None));
                }
            }
        }
        for one in [&mut self.current, &mut self.successor].into_iter().flatten() {
            one.answer(Err(NotReplaced::Stopped));
        }
        while let Some(ended) = self.lives.join_next().await {
            if let Err(error) = ended {
                tracing::error!(
                    server = self.shared.server,
                    slot = self.slot,
                    "a worker's task failed: {error}"
                );
            }
        }
        self.cell.stopped("the gateway stops it");
    }

    fn start(&mut self, place: Place, replace: Option<Replace>) -> One {
        let id = WorkerId { slot: self.slot, generation: self.next_generation };
        self.next_generation += 1;
        let (leave, told) = watch::channel(None);
        let (started_as, reason, permit, done) = match replace {
            Some(Replace { reason, started_as, permit, done, instead_of: _ }) => {
                (started_as, reason, permit, Some(done))
            }
            None => (None, String::new(), None, None),
        };
        let life = Life {
            shared: Arc::clone(&self.shared),
            cell: Arc::clone(&self.cell),
            id,
            config: self.shared.config_with(started_as),
            place,
            leave: told,
            ready: self.ready.0.clone(),
        };
        let task = self.lives.spawn(life.run()).id();
        One { id, task, is_ready: false, leave, reason, permit, done }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Replace(replace) => self.replace(replace),
            Command::CallOff => self.call_off(|| NotReplaced::CalledOff),
            Command::Drain { reason, for_good } => self.empty(&reason, for_good),
            Command::Fill if self.wants != Wants::AProcess => {
                self.wants = Wants::AProcess;
                self.next_start = Instant::now();
            }
            Command::Fill => {}
        }
    }

    fn replace(&mut self, replace: Replace) {
        let goes_by = self.current.as_ref().filter(|_| self.successor.is_none()).map(|one| one.id.generation);
        if replace.instead_of.is_some_and(|meant| goes_by != Some(meant)) {
            // Whoever asked may have gone.
            let _ = replace.done.send(Err(NotReplaced::CalledOff));
            return;
        }
        self.wants = Wants::AProcess;
        self.call_off(|| NotReplaced::CalledOff);
        if let Some(mut starting) = self.current.take_if(|current| !current.is_ready) {
            // It serves nobody yet, so nobody misses it.
            starting.answer(Err(NotReplaced::CalledOff));
            self.let_go(starting, &replace.reason);
        }
        if self.current.is_some() {
            self.successor = Some(self.start(Place::Beside, Some(replace)));
        } else {
            let extra = Replace { permit: None, ..replace };
            self.current = Some(self.start(Place::Shown, Some(extra)));
        }
    }

    fn call_off(&mut self, why: impl Fn() -> NotReplaced) {
        if let Some(mut successor) = self.successor.take() {
            let why = why();
            let text = why.to_string();
            successor.answer(Err(why));
            self.let_go(successor, &text);
        }
    }

    fn empty(&mut self, reason: &str, for_good: bool) {
        let before = self.wants;
        self.wants = if for_good { Wants::NothingForGood } else { Wants::Nothing };
        self.call_off(|| NotReplaced::Drained);
        if let Some(mut current) = self.current.take() {
            current.answer(Err(NotReplaced::Drained));
            self.let_go(current, reason);
        } else if self.leaving.is_empty() && before != self.wants {
            self.rest();
        }
    }

    fn let_go(&mut self, one: One, why: &str) {
        one.leave(why);
        self.leaving.push(one);
    }

    /// A process is ready: a successor takes over.
    fn took_over(&mut self, id: WorkerId) {
        let mut permit = None;
        if let Some(mut successor) = self.successor.take_if(|one| one.id == id) {
            permit = successor.permit.take();
            let old = self.current.replace(successor);
            self.cell.show(id);
            if let Some(mut old) = old {
                old.permit = permit.take();
                let why = self.current.as_ref().map(|one| one.reason.clone()).unwrap_or_default();
                self.let_go(old, &format!("worker {id} has taken over: {why}"));
            }
        }
        drop(permit);
        if let Some(current) = self.current.as_mut().filter(|one| one.id == id) {
            current.is_ready = true;
            current.answer(Ok(id));
        }
    }

    fn ended(&mut self, ended: Ended) {
        let Ended { id, ready_for, failure } = ended;
        // One that did not fail was told to end, which whoever asked for it knows.
        let why = || failure.map_or(NotReplaced::CalledOff, NotReplaced::Failed);
        if let Some(mut successor) = self.successor.take_if(|one| one.id == id) {
            successor.answer(Err(why()));
            if self.current.is_none() {
                self.wait(None);
            }
        } else if let Some(mut current) = self.current.take_if(|one| one.id == id) {
            current.answer(Err(why()));
            match &self.successor {
                Some(successor) => self.cell.show(successor.id),
                None => self.wait(ready_for),
            }
        } else {
            self.leaving.retain(|one| one.id != id);
            if self.leaving.is_empty() && self.current.is_none() && self.wants != Wants::AProcess {
                self.rest();
            }
        }
    }

    /// A fault of the gateway's own: the slot goes on as after a failed start.
    fn panicked(&mut self, error: &tokio::task::JoinError) {
        tracing::error!(server = self.shared.server, slot = self.slot, "a worker's task failed: {error}");
        let all = self.current.iter().chain(&self.successor).chain(&self.leaving);
        let id = all.into_iter().find(|one| one.task == error.id()).map(|one| one.id);
        if let Some(id) = id {
            self.ended(Ended { id, ready_for: None, failure: None });
        }
    }

    fn rest(&self) {
        match self.wants {
            Wants::AProcess => {}
            Wants::Nothing => {
                let (server, slot) = (&self.shared.server, self.slot);
                let how = format!("empty until `gym-gateway restart {server} --slot {slot}`");
                self.cell.drained(&how);
            }
            Wants::NothingForGood => self.cell.stopped("the server needs it no more"),
        }
    }

    /// Sets when the next process is started, after one that was ready for so long (`None`: never).
    fn wait(&mut self, ready_for: Option<Duration>) {
        self.backoff.set_times(self.shared.setup.load().times.backoff);
        let next = self.backoff.next(ready_for);
        let failures = self.backoff.failures();
        let wait = match next {
            Next::Now => Duration::ZERO,
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
        self.next_start = Instant::now() + wait;
    }
}

#[cfg(test)]
mod tests;
