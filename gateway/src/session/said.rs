//! What OpenEnv's answers and WebSockets change.

use dashmap::mapref::entry::Entry as MapEntry;

use super::{
    Millis, Said, SessionId, SessionTable, Ticket,
    record::{Entry, Record},
    ticket::Socket,
};

impl SessionTable {
    /// An answer, or a WebSocket's message, says something about a session; to be called before its last byte goes out.
    pub fn said(&self, ticket: &mut Ticket, said: &Said, now: Millis) {
        if !self.policy.names_sessions {
            return;
        }
        match said {
            Said::Created(id) if ticket.unnamed => self.name(ticket, id, now),
            Said::Created(_) => {}
            Said::Closed(id) => {
                self.with_record(id, ticket, |record| record.end(false));
            }
            Said::Closing(id) => {
                self.with_record(id, ticket, Record::close_on_detach);
            }
        }
    }

    /// A WebSocket was accepted: its own session is open, or it is attached to another.
    pub(super) fn socket_opened(&self, ticket: &mut Ticket) {
        let Some(id) = ticket.session.clone() else { return };
        let mut attached = false;
        self.with_record(&id, ticket, |record| {
            record.used = true;
            match ticket.socket {
                Socket::Owns => record.open(false, false),
                _ => attached = record.attach(),
            }
        });
        if attached {
            ticket.socket = Socket::Attached;
        }
    }

    /// The server told its own ID for a session that had the gateway's alone: it takes that one's place.
    fn name(&self, ticket: &mut Ticket, id: &SessionId, now: Millis) {
        let Some(own) = ticket.session.clone() else { return };
        if self.sessions.contains_key(id) || self.losses.contains(id, now) {
            tracing::warn!(session = id.shortened(), "a server created a session whose ID is in use");
            return;
        }
        let Some((_, Entry::Session(mut record))) =
            self.sessions.remove_if(&own, |_, entry| matches!(entry, Entry::Session(_)))
        else {
            return;
        };
        self.timers.clear(&own, record.timer);
        record.timer = super::expiry::NO_TIMER;
        record.used = true;
        record.open(false, false);
        (ticket.session, ticket.unnamed) = (Some(id.clone()), false);
        match self.sessions.entry(id.clone()) {
            // Seen inside the shard's lock: else the sweep after its exit has been here, or will be.
            MapEntry::Vacant(_) if record.owner.has_exited() => {
                self.lose(id, &record, now);
                record.leave();
            }
            MapEntry::Vacant(entry) => {
                let deadline = record.deadline(&self.policy, now);
                self.timers.set(id, &mut record.timer, deadline);
                entry.insert(Entry::Session(record));
            }
            MapEntry::Occupied(_) => {
                record.leave();
                ticket.session = None;
            }
        }
    }
}
