//! The way to a request's worker: the rule's decision, the wait where no worker is ready, another where one cannot be
//! reached.

use std::{cell::Cell, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{Refusal, exchange::Exchange, forward, pick::pick, settle::Settlement, state::ServerState};
use crate::{
    session::{Dispatch, Named, Route},
    worker_id::WorkerId,
};

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
        loop {
            let named = name()?;
            if let Some(settlement) = self.dispatch(&named)? {
                return Ok((named, settlement));
            }
            self.pause(&mut changes).await?;
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
        let name = &self.exchange.server.config.name;
        if !settlement.withdraw() {
            forward::has_exited(&worker).await;
        }
        let mut changes = None;
        loop {
            match self.dispatch(&named)? {
                Some(settlement) if self.excluded.contains(&settlement.worker().id) => {
                    tracing::warn!(server = name, slot = worker.id.slot, %error, "an owner cannot be reached");
                    settlement.withdraw();
                    let what = format!("worker {} of server {name} cannot be reached: {error}", worker.id);
                    return Err(Refusal::WorkerError(what));
                }
                Some(settlement) => return Ok((named, settlement)),
                None => self.pause(&mut changes).await?,
            }
        }
    }

    /// One decision of the rule; `None` if no worker is ready.
    fn dispatch(&self, named: &Named) -> Result<Option<Settlement>, Refusal> {
        let Exchange { core, server, .. } = self.exchange;
        loop {
            let now = core.shared.clock.at(self.exchange.now.get());
            let mut choose =
                |by| pick(&server.workers.ready(), &self.excluded, by, |worker| server.sessions.load(worker));
            match server.sessions.dispatch(named, self.route, now, &mut choose)? {
                Dispatch::NoWorker => return Ok(None),
                Dispatch::To(ticket) => match server.workers.get(ticket.worker) {
                    Some(worker) => {
                        let counts =
                            self.route.counts() && (!self.route.is_endless() || named.session.is_some());
                        return Ok(Some(Settlement::new(&core.shared, server, worker, ticket, counts)));
                    }
                    // It left between the choice and now; the table is told of it before anyone else is.
                    None => {
                        let gone = ticket.worker;
                        server.sessions.withdraw(ticket, now);
                        server.sessions.mark_exited(gone);
                    }
                },
            }
        }
    }

    /// Waits until a worker comes or goes, reading the body on, so that the client's leaving is seen. The first
    /// call only begins to watch: a worker may have come since the caller looked.
    async fn pause(&self, changes: &mut Option<watch::Receiver<u64>>) -> Result<(), Refusal> {
        let Exchange { core, server, body, .. } = self.exchange;
        let Some(changes) = changes else {
            *changes = Some(server.workers.changes());
            return Ok(());
        };
        let limit = server.config.settings.queue_timeout;
        let deadline = self.deadline.get().unwrap_or_else(|| Instant::now() + limit);
        self.deadline.set(Some(deadline));
        let _waiting = server.waiting.enter();
        let news = tokio::select! {
            biased;
            () = core.shared.stop.begun.cancelled() => Err(Refusal::Stopping),
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
    Refusal::NoWorker { server: server.config.name.clone(), waited: waited.as_secs() }
}
