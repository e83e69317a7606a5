//! What is known of a slot: written by its task, read by `/status`.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    worker_id::WorkerId,
    workers::{Address, SlotState, SlotStatus, process::Process},
};

/// A slot's status.
#[derive(Debug)]
pub(crate) struct Cell(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    status: SlotStatus,
    /// Where process ID and output are read from.
    process: Option<Process>,
}

impl Cell {
    pub(super) fn new(slot: u16) -> Self {
        let status = SlotStatus {
            slot,
            generation: 0,
            state: SlotState::Starting,
            pid: None,
            address: None,
            restarts: 0,
            started_unix: 0,
            last_exit: None,
            output: Vec::new(),
        };
        Self(Mutex::new(Inner { status, process: None }))
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
        let mut inner = self.lock();
        inner.process = process;
        let status = &mut inner.status;
        status.state = SlotState::Starting;
        status.generation = id.generation;
        status.restarts = id.generation - 1;
        status.started_unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    }

    pub(super) fn ready(&self, address: &Address) {
        let mut inner = self.lock();
        inner.status.state = SlotState::Ready;
        inner.status.address = Some(address.to_string());
    }

    pub(super) fn set_state(&self, state: SlotState) {
        self.lock().status.state = state;
    }

    /// The process ended, or did not become ready.
    pub(super) fn ended(&self, state: SlotState, how: String) {
        let mut inner = self.lock();
        inner.status.state = state;
        inner.status.address = None;
        inner.status.last_exit = Some(how);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
