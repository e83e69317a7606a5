//! What is known of a slot: written by its tasks, read by `/status`. Each change of a process's state is counted, and one
//! line in the log.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::{sync::watch, time::Instant};

use crate::{
    keeper::Exit,
    worker_id::WorkerId,
    workers::{
        Address, DrainStatus, ExitReport, Failed, LastFailure, OtherStatus, Replacements, SlotState,
        SlotStatus, StartFailure, Transitions, advice, limits::Cause, process::Process,
    },
};

/// A slot's status.
#[derive(Debug)]
pub(crate) struct Cell {
    server: String,
    slot: u16,
    inner: Mutex<Inner>,
    /// How many of its processes live.
    living: watch::Sender<usize>,
}

#[derive(Debug)]
struct Inner {
    /// The living ones and the shown one, by generation.
    ones: Vec<One>,
    /// The generation that the slot goes by. There is one of that number.
    shown: u32,
    /// Processes started.
    started: u32,
    transitions: Transitions,
    oom_kills: u32,
    failures_in_a_row: u32,
    last_exit: Option<String>,
    last_failure: Option<LastFailure>,
    replacements: Replacements,
}

/// One process; generation 0 stands for the time before the first.
#[derive(Debug, Default)]
struct One {
    generation: u32,
    state: SlotState,
    lives: bool,
    address: Option<String>,
    started_unix: u64,
    drain: Option<(String, Instant)>,
    /// The limit that it is over.
    over_limit: Option<String>,
    /// Where process ID and output are read from.
    process: Option<Process>,
}

/// Whether a new process is what the slot goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// From the start.
    Shown,
    /// Once it is ready, and takes over.
    Beside,
}

impl Cell {
    pub(crate) fn new(server: &str, slot: u16) -> Self {
        let inner = Inner {
            ones: vec![One::default()],
            shown: 0,
            started: 0,
            transitions: Transitions::default(),
            oom_kills: 0,
            failures_in_a_row: 0,
            last_exit: None,
            last_failure: None,
            replacements: Replacements::default(),
        };
        Self { server: server.into(), slot, inner: Mutex::new(inner), living: watch::Sender::new(0) }
    }

    /// The slot as it is now, where a drain may take `drain_limit`.
    pub(crate) fn snapshot(&self, drain_limit: Option<Duration>) -> SlotStatus {
        let inner = self.lock();
        let shown = inner.ones.iter().find(|one| one.generation == inner.shown);
        let others = inner.ones.iter().filter(|one| one.generation != inner.shown);
        let output = |process: &Process| process.output().lines();
        SlotStatus {
            slot: self.slot,
            generation: inner.shown,
            state: shown.map(|one| one.state).unwrap_or_default(),
            pid: shown.and_then(One::pid),
            address: shown.and_then(|one| one.address.clone()),
            restarts: inner.started.saturating_sub(1),
            started_unix: shown.map_or(0, |one| one.started_unix),
            transitions: inner.transitions,
            oom_kills: inner.oom_kills,
            failures_in_a_row: inner.failures_in_a_row,
            last_exit: inner.last_exit.clone(),
            last_failure: inner.last_failure.clone(),
            output: shown.and_then(|one| one.process.as_ref()).map(output).unwrap_or_default(),
            drain: shown.and_then(|one| one.drain_status(drain_limit)),
            over_limit: shown.and_then(|one| one.over_limit.clone()),
            replacements: inner.replacements,
            others: others.map(|one| one.status(drain_limit)).collect(),
        }
    }

    /// How many of its processes live.
    pub(crate) fn living(&self) -> watch::Receiver<usize> {
        self.living.subscribe()
    }

    /// A process was started, or could not be.
    pub(super) fn begin(&self, id: WorkerId, process: Option<Process>, place: Place) {
        self.enter(id.generation, SlotState::Starting, "its process is started", None, |inner| {
            let before = inner.ones.iter().find(|one| one.generation == inner.shown);
            let state = before.filter(|one| one.generation > 0).map(|one| one.state);
            let started_unix = unix_now();
            let one = One { generation: id.generation, lives: true, started_unix, process, ..One::default() };
            inner.ones.push(one);
            inner.started += 1;
            match place {
                Place::Shown => {
                    inner.show(id.generation);
                    state
                }
                Place::Beside => None,
            }
        });
    }

    /// The slot goes by this process from now on.
    pub(super) fn show(&self, id: WorkerId) {
        self.lock().show(id.generation);
    }

    pub(super) fn ready(&self, id: WorkerId, address: &Address) {
        let address = address.to_string();
        self.change(id, SlotState::Ready, &format!("it answers at {address}"), None, |inner| {
            inner.with(id, |one| one.address = Some(address.clone()));
        });
    }

    /// The worker was healthy for so long that what failed before counts no more.
    pub(super) fn healthy(&self, id: WorkerId) {
        let mut inner = self.lock();
        if inner.shown == id.generation {
            inner.failures_in_a_row = 0;
        }
    }

    /// The limit that a worker is over, if it is over one.
    pub(crate) fn over_limit(&self, id: WorkerId, why: Option<&str>) {
        self.lock().with(id, |one| {
            if one.over_limit.as_deref() != why {
                one.over_limit = why.map(str::to_owned);
            }
        });
    }

    /// A worker that was over a limit has been replaced.
    pub(crate) fn replaced(&self, cause: Cause) {
        self.lock().replacements.count(cause);
    }

    pub(super) fn draining(&self, id: WorkerId, reason: &str) {
        self.change(id, SlotState::Draining, reason, None, |inner| {
            inner.with(id, |one| one.drain = Some((reason.to_owned(), Instant::now())));
        });
    }

    /// A ready worker's process ended.
    pub(super) fn ended(&self, id: WorkerId, report: &ExitReport) {
        let to = if report.asked_for { SlotState::Exited } else { SlotState::Died };
        self.change(id, to, &report.to_string(), None, |inner| {
            inner.count_oom(Some(&report.exit));
            inner.last_exit = Some(format!("{id} {report}"));
            if !report.asked_for {
                let advice = report.hung.map_or_else(|| advice::for_death(&report.exit), |_| advice::HUNG);
                inner.failed(Failed::Death { worker: id, report: report.clone(), advice });
            }
            inner.buried(id);
        });
    }

    /// A process did not become ready.
    pub(super) fn failed_start(&self, failure: &StartFailure) {
        self.change(failure.worker, SlotState::Died, &failure.seen, Some(failure), |inner| {
            inner.count_oom(failure.exit.as_ref());
            inner.last_exit = Some(format!("{} did not start: {}", failure.worker, failure.seen));
            inner.failed(Failed::Start(Box::new(failure.clone())));
            inner.buried(failure.worker);
        });
    }

    /// The gateway ended a start.
    pub(super) fn broke_off(&self, failure: &StartFailure) {
        self.change(failure.worker, SlotState::Exited, &failure.seen, None, |inner| {
            inner.last_exit = Some(format!("{} did not start: {}", failure.worker, failure.seen));
            inner.buried(failure.worker);
        });
    }

    /// It has failed so often in a row, and waits in this state.
    pub(super) fn waits(&self, state: SlotState, failures: u32, reason: &str) {
        self.rest(state, reason, |inner| inner.failures_in_a_row = failures);
    }

    /// It was drained, and stays without a process.
    pub(super) fn drained(&self, reason: &str) {
        self.rest(SlotState::Drained, reason, |_| {});
    }

    pub(super) fn stopped(&self, reason: &str) {
        self.rest(SlotState::Stopped, reason, |_| {});
    }

    /// A state without a process, of the one that the slot goes by.
    fn rest(&self, to: SlotState, reason: &str, also: impl FnOnce(&mut Inner)) {
        let shown = self.lock().shown;
        self.change(WorkerId { slot: self.slot, generation: shown }, to, reason, None, also);
    }

    /// Changes the state of a process that is known.
    fn change(
        &self,
        id: WorkerId,
        to: SlotState,
        reason: &str,
        story: Option<&dyn fmt::Display>,
        also: impl FnOnce(&mut Inner),
    ) {
        self.enter(id.generation, to, reason, story, |inner| {
            let before = inner.ones.iter().find(|one| one.generation == id.generation);
            let from = before.filter(|one| one.generation > 0).map(|one| one.state);
            inner.with(id, |one| one.state = to);
            also(inner);
            from
        });
    }

    /// Carries out `also`, which says what the state was; counts the new one and logs it. The log's line holds `story`, if
    /// there is more to say than the reason.
    fn enter(
        &self,
        generation: u32,
        to: SlotState,
        reason: &str,
        story: Option<&dyn fmt::Display>,
        also: impl FnOnce(&mut Inner) -> Option<SlotState>,
    ) {
        let (from, living) = {
            let mut inner = self.lock();
            let from = also(&mut inner);
            inner.transitions.count(to);
            (from, inner.ones.iter().filter(|one| one.lives).count())
        };
        self.tell(WorkerId { slot: self.slot, generation }, from, to, reason, story);
        self.living.send_replace(living);
    }

    fn tell(
        &self,
        id: WorkerId,
        from: Option<SlotState>,
        to: SlotState,
        reason: &str,
        story: Option<&dyn fmt::Display>,
    ) {
        let server = &self.server;
        let WorkerId { slot, generation } = id;
        let (from, word) = (from.map_or("none", SlotState::as_str), to.as_str());
        let message = story.map_or_else(|| format!("worker {id}: {from} -> {word}"), ToString::to_string);
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(server, slot, generation, from, to = word, reason, "{message}")
            };
        }
        match to {
            SlotState::Died | SlotState::Failed => line!(error),
            SlotState::Backoff => line!(warn),
            _ => line!(info),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn count_oom(&mut self, exit: Option<&Exit>) {
        self.oom_kills += u32::from(matches!(exit, Some(Exit::OutOfMemory { .. })));
    }

    fn with(&mut self, id: WorkerId, change: impl FnOnce(&mut One)) {
        if let Some(one) = self.ones.iter_mut().find(|one| one.generation == id.generation) {
            change(one);
        }
    }

    fn show(&mut self, generation: u32) {
        self.shown = generation;
        self.ones.retain(|one| one.lives || one.generation == generation);
    }

    /// A process is gone.
    fn buried(&mut self, id: WorkerId) {
        self.with(id, |one| {
            (one.lives, one.address, one.drain, one.over_limit) = (false, None, None, None);
        });
        self.show(self.shown);
    }

    fn failed(&mut self, what: Failed) {
        self.last_failure = Some(LastFailure { at_unix: unix_now(), what });
    }
}

impl One {
    fn pid(&self) -> Option<i32> {
        self.process.as_ref().and_then(|process| process.stage().pid)
    }

    fn drain_status(&self, limit: Option<Duration>) -> Option<DrainStatus> {
        let (reason, begun) = self.drain.as_ref()?;
        let since = begun.elapsed();
        let left = limit.map(|limit| limit.saturating_sub(since));
        Some(DrainStatus { reason: reason.clone(), since, left })
    }

    fn status(&self, drain_limit: Option<Duration>) -> OtherStatus {
        OtherStatus {
            generation: self.generation,
            state: self.state,
            pid: self.pid(),
            address: self.address.clone(),
            started_unix: self.started_unix,
            drain: self.drain_status(drain_limit),
        }
    }
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
