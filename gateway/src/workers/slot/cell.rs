//! What is known of a slot: written by its task, read by `/status`. Each change of its state is counted, and one line in
//! the log.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    keeper::Exit,
    worker_id::WorkerId,
    workers::{
        Address, ExitReport, Failed, LastFailure, SlotState, SlotStatus, StartFailure, Transitions, advice,
        process::Process,
    },
};

/// A slot's status.
#[derive(Debug)]
pub(crate) struct Cell {
    server: String,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    status: SlotStatus,
    /// Where process ID and output are read from.
    process: Option<Process>,
}

impl Cell {
    pub(super) fn new(server: &str, slot: u16) -> Self {
        let status = SlotStatus {
            slot,
            generation: 0,
            state: SlotState::Starting,
            pid: None,
            address: None,
            restarts: 0,
            started_unix: 0,
            transitions: Transitions::default(),
            oom_kills: 0,
            failures_in_a_row: 0,
            last_exit: None,
            last_failure: None,
            output: Vec::new(),
        };
        Self { server: server.into(), inner: Mutex::new(Inner { status, process: None }) }
    }

    /// The slot as it is now.
    pub(crate) fn snapshot(&self) -> SlotStatus {
        let inner = self.lock();
        let mut status = inner.status.clone();
        if let Some(process) = &inner.process {
            status.pid = process.stage().pid;
            status.output = process.output().lines();
        }
        status
    }

    /// A process was started, or could not be.
    pub(super) fn begin(&self, id: WorkerId, process: Option<Process>) {
        self.enter(SlotState::Starting, "its process is started", None, |inner| {
            inner.process = process;
            let status = &mut inner.status;
            status.generation = id.generation;
            status.restarts = id.generation - 1;
            status.started_unix = unix_now();
        });
    }

    pub(super) fn ready(&self, address: &Address) {
        let address = address.to_string();
        self.enter(SlotState::Ready, &format!("it answers at {address}"), None, |inner| {
            inner.status.address = Some(address.clone());
        });
    }

    /// The worker was healthy for so long that what failed before counts no more.
    pub(super) fn healthy(&self) {
        self.lock().status.failures_in_a_row = 0;
    }

    pub(super) fn draining(&self, reason: &str) {
        self.enter(SlotState::Draining, reason, None, |_| {});
    }

    /// A ready worker's process ended.
    pub(super) fn ended(&self, id: WorkerId, report: &ExitReport) {
        let to = if report.asked_for { SlotState::Exited } else { SlotState::Died };
        self.enter(to, &report.to_string(), None, |inner| {
            inner.status.address = None;
            inner.count_oom(Some(&report.exit));
            inner.status.last_exit = Some(format!("{id} {report}"));
            if !report.asked_for {
                let advice = advice::for_death(&report.exit);
                inner.failed(Failed::Death { worker: id, report: report.clone(), advice });
            }
        });
    }

    /// A process did not become ready.
    pub(super) fn failed_start(&self, failure: &StartFailure) {
        self.enter(SlotState::Died, &failure.seen, Some(failure), |inner| {
            inner.count_oom(failure.exit.as_ref());
            inner.status.last_exit = Some(format!("{} did not start: {}", failure.worker, failure.seen));
            inner.failed(Failed::Start(Box::new(failure.clone())));
        });
    }

    /// The gateway ended a start.
    pub(super) fn broke_off(&self, failure: &StartFailure) {
        self.enter(SlotState::Exited, &failure.seen, None, |inner| {
            inner.status.last_exit = Some(format!("{} did not start: {}", failure.worker, failure.seen));
        });
    }

    /// It has failed so often in a row, and waits in this state.
    pub(super) fn waits(&self, state: SlotState, failures: u32, reason: &str) {
        self.enter(state, reason, None, |inner| inner.status.failures_in_a_row = failures);
    }

    pub(super) fn stopped(&self) {
        self.enter(SlotState::Stopped, "the gateway stops it", None, |_| {});
    }

    /// Changes the state, and with it whatever `also` does; counts and logs it. The log's line holds `story`, if there is
    /// more to say than the reason.
    fn enter(
        &self,
        to: SlotState,
        reason: &str,
        story: Option<&dyn fmt::Display>,
        also: impl FnOnce(&mut Inner),
    ) {
        let (from, id) = {
            let mut inner = self.lock();
            // Before the first process there was no state.
            let from = (inner.status.generation > 0).then_some(inner.status.state);
            also(&mut inner);
            let status = &mut inner.status;
            status.state = to;
            status.transitions.count(to);
            (from, WorkerId { slot: status.slot, generation: status.generation })
        };
        self.tell(id, from, to, reason, story);
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
        self.status.oom_kills += u32::from(matches!(exit, Some(Exit::OutOfMemory { .. })));
    }

    fn failed(&mut self, what: Failed) {
        self.status.last_failure = Some(LastFailure { at_unix: unix_now(), what });
    }
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
