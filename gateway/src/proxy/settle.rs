//! The guard that settles a request, however it ends.
//!
//! hyper drops a handler whose client has left, so what a request changed is given back by `Drop`: the guard is
//! made at dispatch and moves into the reply's body or the tunnel.

use std::{sync::Arc, time::Instant};

use super::state::{ServerState, Shared};
use crate::{
    session::{HeadEffects, Refusal, Reply, Said, SessionId, Ticket},
    workers::{InFlight, Worker},
};

/// One request at one worker.
#[derive(Debug)]
pub(super) struct Settlement {
    shared: Arc<Shared>,
    server: Arc<ServerState>,
    worker: Arc<Worker>,
    ticket: Option<Ticket>,
    /// `None` for a stream without an end that belongs to no session.
    _in_flight: Option<InFlight>,
}

impl Settlement {
    pub(super) fn new(
        shared: &Arc<Shared>,
        server: &Arc<ServerState>,
        worker: Arc<Worker>,
        ticket: Ticket,
        in_flight: Option<InFlight>,
    ) -> Self {
        let (shared, server) = (shared.clone(), server.clone());
        Self { shared, server, worker, ticket: Some(ticket), _in_flight: in_flight }
    }

    pub(super) fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// No byte reached the worker. Returns whether another worker may be chosen.
    pub(super) fn withdraw(mut self) -> bool {
        let now = self.shared.clock.now();
        self.ticket.take().is_none_or(|ticket| self.server.sessions.withdraw(ticket, now))
    }

    /// Settles what the reply's head decides; to be called before the head goes out.
    pub(super) fn reply(&mut self, reply: &Reply) -> HeadEffects {
        self.worker.note_answer();
        let now = self.shared.clock.now();
        self.ticket.as_mut().map_or_else(HeadEffects::default, |t| self.server.sessions.reply(t, reply, now))
    }

    /// The reply's body says that the episode is over; to be called before its last byte goes out.
    pub(super) fn episode_over(&mut self) {
        if let Some(ticket) = &mut self.ticket {
            self.server.sessions.episode_over(ticket);
        }
    }

    /// The session that the request belongs to.
    pub(super) fn session(&self) -> Option<&SessionId> {
        self.ticket.as_ref()?.session()
    }

    /// An answer, or a message, says something about a session; to be called before its last byte goes out.
    pub(super) fn said(&mut self, said: &Said) {
        let now = self.shared.clock.now();
        if let Some(ticket) = &mut self.ticket {
            self.server.sessions.said(ticket, said, now);
        }
    }

    /// What the client gets if the worker has exited under this request; `None` if it owned no session.
    pub(super) fn refusal_after_exit(&self) -> Option<Refusal> {
        self.ticket.as_ref().and_then(|ticket| self.server.sessions.refusal_after_exit(ticket))
    }

    /// The request is done.
    pub(super) fn finish(mut self, now: Instant) {
        self.give_back(now);
    }

    /// The worker goes, and the session with it.
    pub(super) fn lost(mut self) {
        let now = self.shared.clock.now();
        if let Some(ticket) = self.ticket.take() {
            self.server.sessions.lose_session(ticket, now);
        }
    }

    fn give_back(&mut self, now: Instant) {
        if let Some(ticket) = self.ticket.take() {
            self.server.sessions.finish(ticket, self.shared.clock.at(now));
        }
    }
}

impl Drop for Settlement {
    fn drop(&mut self) {
        if self.ticket.is_some() {
            self.give_back(Instant::now());
        }
    }
}
