//! The way to a request's worker: the rule's decision, the wait where no worker is ready or has room, another where one
//! cannot be reached.

use std::{cell::Cell, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    Refusal,
    exchange::Exchange,
    forward,
    pick::{may_take, pick},
    settle::Settlement,
    state::ServerState,
};
use crate::{
    session::{By, Dispatch, Named, Route},
    worker_id::WorkerId,
    workers::{Entry, InFlight, Worker},
};

/// How often a worker that was chosen for its room, which another request was the first to take, is chosen anew.
const MAX_CHOICES: usize = 4;

/// What one decision of the rule comes to.
enum Found {
    Worker(Settlement),
    /// No worker is ready.
    Nobody,
    /// There is no room at this worker, the session's; or, where none is named, at any.
    Full(Option<Arc<Worker>>),
}

/// Why a worker cannot be entered.
enum Shut {
    Full,
    Closed,
}

/// Finds a request's worker, and waits where there is none.
pub(super) struct Dispatcher<'a> {
    exchange: &'a Exchange<'a>,
    route: Route,
    /// Workers that could not be reached.
    excluded: Vec<WorkerId>,
    deadline: Cell<Option<Instant>>,
}

impl<'a> Dispatcher<'a> {
    pub(super) fn new(exchange: &'a Exchange<'a>, route: Route) -> Self {
        Self { exchange, route, excluded: Vec::new(), deadline: Cell::new(None) }
    }

    /// Names the session and dispatches; again whenever a worker came or went, since the first one ready
    /// teaches the cookie's name.
    pub(super) async fn wait(
        &self,
        name: impl Fn() -> Result<Named, crate::session::Refusal>,
    ) -> Result<(Named, Settlement), Refusal> {
        let mut changes = None;
        let mut room = None;
        loop {
            let named = name()?;
            match self.dispatch(&named, room.take())? {
                Found::Worker(settlement) => return Ok((named, settlement)),
                Found::Nobody => self.pause(&mut changes).await?,
                Found::Full(worker) => room = self.queue(worker.as_ref()).await?,
            }
        }
    }

    /// After a try that no worker saw: the session's owner has to be another one, if it may.
    pub(super) async fn elsewhere(
        &mut self,
        named: Named,
        settlement: Settlement,
        error: &std::io::Error,
    ) -> Result<(Named, Settlement), Refusal> {
        let worker = settlement.worker().clone();
        self.excluded.push(worker.id);
        let name = &self.exchange.server.name;
        if !settlement.withdraw() {
            forward::has_exited(&worker).await;
        }
        let (mut changes, mut room) = (None, None);
        loop {
            match self.dispatch(&named, room.take())? {
                Found::Worker(settlement) if self.excluded.contains(&settlement.worker().id) => {
                    tracing::warn!(server = name, slot = worker.id.slot, %error, "an owner cannot be reached");
                    settlement.withdraw();
                    let what = format!("worker {} of server {name} cannot be reached: {error}", worker.id);
                    return Err(Refusal::WorkerError(what));
                }
                Found::Worker(settlement) => return Ok((named, settlement)),
                Found::Nobody => self.pause(&mut changes).await?,
                Found::Full(Some(worker)) => room = self.queue(Some(&worker)).await?,
                // Those who have room may be the ones that cannot be reached: there is nothing to wait for.
                Found::Full(None) => return Err(self.full(None, None)),
            }
        }
    }

    /// One decision of the rule; `room` is what the request has waited for.
    fn dispatch(&self, named: &Named, mut room: Option<InFlight>) -> Result<Found, Refusal> {
        let Exchange { core, server, .. } = self.exchange;
        let mut offered = room.as_ref().map(|room| Arc::clone(room.worker()));
        let (mut closed, mut choices) = (None, 0);
        loop {
            let now = core.shared.clock.at(self.exchange.now.get());
            let (mut chosen, mut all_full) = (None, false);
            let mut choose = |by| {
                let ready = server.workers.ready();
                let has_place = |worker| by == By::InFlight || server.sessions.has_room(worker);
                let may = |worker: &Arc<Worker>| may_take(worker, &self.excluded, by) && has_place(worker.id);
                let offer = offered.take().filter(&may).map(|worker| worker.id);
                let load = |worker| server.sessions.load(worker);
                chosen = offer.or_else(|| pick(&ready, &self.excluded, by, load, has_place));
                all_full = chosen.is_none() && ready.iter().any(may);
                chosen
            };
            let ticket = match server.sessions.dispatch(named, self.route, now, &mut choose)? {
                Dispatch::NoWorker if all_full => return Ok(Found::Full(None)),
                Dispatch::NoWorker => return self.refuse_if_full(named).map(|()| Found::Nobody),
                Dispatch::To(ticket) => ticket,
            };
            let Some(worker) = server.workers.get(ticket.worker) else {
                // It left between the choice and now; the table is told of it before anyone else is.
                let gone = ticket.worker;
                server.sessions.withdraw(ticket, now);
                server.sessions.mark_exited(gone);
                continue;
            };
            match self.enter(&worker, named, &mut room) {
                Ok(in_flight) => {
                    return Ok(Found::Worker(Settlement::new(
                        &core.shared,
                        server,
                        worker,
                        ticket,
                        in_flight,
                    )));
                }
                Err(Shut::Closed) => {
                    // Its drain is over, or seemed to be. With no session there, another may be chosen.
                    let moves = server.sessions.withdraw(ticket, now);
                    if !moves || closed.replace(worker.id) == Some(worker.id) {
                        return Ok(Found::Nobody);
                    }
                }
                Err(Shut::Full) => {
                    let is_free = server.sessions.withdraw(ticket, now) && chosen == Some(worker.id);
                    choices += 1;
                    if !is_free || choices == MAX_CHOICES {
                        return Ok(Found::Full((!is_free).then_some(worker)));
                    }
                }
            }
        }
    }

    /// There are workers, but a new session finds no place: that is said at once.
    fn refuse_if_full(&self, named: &Named) -> Result<(), Refusal> {
        let by = named.by();
        if by == By::InFlight {
            return Ok(());
        }
        let server = self.exchange.server;
        let ready = server.workers.ready();
        let ids = ready.iter().filter(|worker| may_take(worker, &self.excluded, by)).map(|worker| worker.id);
        server.sessions.refusal_if_full(ids).map_or(Ok(()), |refusal| Err(refusal.into()))
    }

    /// Counts the request in at its worker; a stream without an end that belongs to no session does not count.
    fn enter(
        &self,
        worker: &Arc<Worker>,
        named: &Named,
        room: &mut Option<InFlight>,
    ) -> Result<Option<InFlight>, Shut> {
        if !self.route.counts() || (self.route.is_endless() && named.session.is_none()) {
            return worker.enter().map(|_| None).ok_or(Shut::Closed);
        }
        match room.take_if(|room| room.worker().id == worker.id) {
            Some(_) if worker.is_closed() => Err(Shut::Closed),
            Some(room) => Ok(Some(room)),
            None => match worker.enter_if_room() {
                Entry::Entered(in_flight) => Ok(Some(in_flight)),
                Entry::Full => Err(Shut::Full),
                Entry::Closed => Err(Shut::Closed),
            },
        }
    }

    /// Waits in line for room at the session's worker, or at any. `None`: that worker has exited.
    async fn queue(&self, worker: Option<&Arc<Worker>>) -> Result<Option<InFlight>, Refusal> {
        let Exchange { core, server, body, .. } = self.exchange;
        let turn = worker.map_or_else(|| server.workers.queue(), Worker::queue);
        let Some(mut turn) = turn else { return Err(self.full(worker, None)) };
        let limit = server.settings().queue_timeout;
        let exited = async {
            match worker {
                Some(worker) => worker.exited().cancelled().await,
                None => std::future::pending().await,
            }
        };
        let _waiting = server.waiting.enter();
        let room = tokio::select! {
            biased;
            () = core.shared.stop.begun.cancelled() => Err(Refusal::Stopping),
            // Those who have a session there go on until it is over.
            () = server.removed.cancelled(), if worker.is_none() => {
                Err(Refusal::Removed { server: server.name.clone() })
            }
            room = turn.room() => Ok(Some(room)),
            () = exited => Ok(None),
            () = sleep_until(self.deadline(limit)) => Err(self.full(worker, Some(limit))),
            () = body.read_ahead() => Err(Refusal::BROKEN_BODY),
        };
        self.exchange.now.set(std::time::Instant::now());
        room
    }

    fn full(&self, worker: Option<&Arc<Worker>>, waited: Option<Duration>) -> Refusal {
        Refusal::Full {
            server: self.exchange.server.name.clone(),
            slot: worker.map(|worker| worker.id.slot),
            waited: waited.map(|waited| waited.as_secs()),
        }
    }

    /// Until when the request waits, for whatever.
    fn deadline(&self, limit: Duration) -> Instant {
        let deadline = self.deadline.get().unwrap_or_else(|| Instant::now() + limit);
        self.deadline.set(Some(deadline));
        deadline
    }

    /// Waits until a worker comes or goes, reading the body on, so that the client's leaving is seen. The first
    /// call only begins to watch: a worker may have come since the caller looked.
    async fn pause(&self, changes: &mut Option<watch::Receiver<u64>>) -> Result<(), Refusal> {
        let Exchange { core, server, body, .. } = self.exchange;
        let Some(changes) = changes else {
            *changes = Some(server.workers.changes());
            return Ok(());
        };
        let limit = server.settings().queue_timeout;
        let deadline = self.deadline(limit);
        let _waiting = server.waiting.enter();
        let news = tokio::select! {
            biased;
            () = core.shared.stop.begun.cancelled() => Err(Refusal::Stopping),
            () = server.removed.cancelled() => Err(Refusal::Removed { server: server.name.clone() }),
            changed = timeout_at(deadline, changes.changed()) => match changed {
                Ok(Ok(())) => Ok(()),
                // No news in time, or the supervisor is gone and none will come.
                _ => Err(no_worker(server, limit)),
            },
            () = body.read_ahead() => Err(Refusal::BROKEN_BODY),
        };
        self.exchange.now.set(std::time::Instant::now());
        news
    }
}

fn no_worker(server: &ServerState, waited: Duration) -> Refusal {
    Refusal::NoWorker { server: server.name.clone(), waited: waited.as_secs() }
}
