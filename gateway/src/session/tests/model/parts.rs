//! What the model has in its map, and in flight.

use super::super::super::{Route, SessionState, Ticket};
use crate::worker_id::WorkerId;

/// A session, as design and table of events have it.
#[derive(Clone, Debug)]
pub(super) struct Modelled {
    pub(super) owner: WorkerId,
    pub(super) state: SessionState,
    pub(super) fenced: bool,
    pub(super) used: bool,
    pub(super) by_body: bool,
    pub(super) by_reset: bool,
    pub(super) in_flight: u32,
    pub(super) last: u64,
}

/// A request on its way.
pub(super) struct Sent {
    pub(super) ticket: Ticket,
    /// Whether it counts as in flight.
    pub(super) counted: bool,
    pub(super) route: Route,
    /// By the model.
    pub(super) session: Option<&'static str>,
    pub(super) worker: WorkerId,
    pub(super) by_body: bool,
    pub(super) no_route: bool,
    pub(super) succeeded: bool,
    pub(super) answered: bool,
}

/// Where a request is in flight: its session, its worker, and whether it counts.
pub(super) type Place = (Option<&'static str>, WorkerId, bool);

impl Sent {
    pub(super) fn place(&self) -> Place {
        (self.session, self.worker, self.counted)
    }
}
