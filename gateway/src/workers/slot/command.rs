//! What a slot is told.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::{
    config::StartedAs,
    worker_id::WorkerId,
    workers::{NotReplaced, surge::Permit},
};

/// What a slot is told to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// To have a new process in the place of what it has.
    Replace(Replace),
    /// To end a replacement that is under way, and keep what it has.
    CallOff,
    /// To let its worker drain, and stay empty.
    Drain {
        /// Why.
        reason: String,
        /// The server needs the slot no more.
        for_good: bool,
    },
    /// To have a process, if it was to stay empty.
    Fill,
}

/// An order for a new process.
#[derive(Debug)]
pub(crate) struct Replace {
    pub(crate) reason: String,
    /// Only as long as the slot goes by this generation, and none is to take over.
    pub(crate) instead_of: Option<u32>,
    /// What it is started as, if not as the others.
    pub(crate) started_as: Option<Arc<StartedAs>>,
    /// Kept until the old process is gone.
    pub(crate) permit: Option<Permit>,
    /// Told when the new one is ready, or will not be.
    pub(crate) done: oneshot::Sender<Result<WorkerId, NotReplaced>>,
}
