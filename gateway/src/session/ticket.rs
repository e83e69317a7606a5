//! A dispatched request's account with the table.

use super::{Named, Route, RouteClass, SessionId};
use crate::worker_id::WorkerId;

/// Where a request goes.
#[derive(Debug)]
pub enum Dispatch {
    /// To this worker.
    To(Ticket),
    /// No worker was chosen, and nothing was changed: wait for one, and dispatch again.
    NoWorker,
}

/// A dispatched request's account with the table; to be given back by [`super::SessionTable::finish`] or
/// [`super::SessionTable::withdraw`], exactly once.
#[derive(Debug)]
#[must_use = "a ticket that is not given back keeps its session for ever"]
pub struct Ticket {
    /// The worker that the request goes to.
    pub worker: WorkerId,
    /// The session whose record this request is entered in: its first ID, if the request named another one.
    pub(super) session: Option<SessionId>,
    pub(super) route: Route,
    /// Whether the request counts as in flight, if it has a session.
    pub(super) counted: bool,
    /// Whether a reply's use of the session would be news.
    pub(super) unused: bool,
    pub(super) by_body: bool,
    pub(super) can_add: bool,
    pub(super) adopts: bool,
    /// The reply said that there is no such route: the session's timer stays.
    pub(super) no_route: bool,
    /// The reply was 2xx.
    pub(super) succeeded: bool,
}

impl Ticket {
    pub(super) fn new(worker: WorkerId, named: &Named, route: Route) -> Self {
        Self {
            worker,
            session: None,
            route,
            counted: true,
            unused: true,
            by_body: named.by_body,
            can_add: named.can_add,
            adopts: named.adopts,
            no_route: false,
            succeeded: false,
        }
    }

    /// The session that the request belongs to, by its first ID; of a request without one: once its reply named it.
    pub fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }
}

impl Route {
    /// Whether a request of this route counts as in flight for the session that it names: all but a GET of class mcp.
    pub fn counts(&self) -> bool {
        !(self.endless && self.class == RouteClass::Mcp)
    }
}
