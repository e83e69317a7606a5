//! What happens without a request: a worker's exit, and time.

use std::sync::atomic::Ordering;

use dashmap::mapref::entry::Entry as MapEntry;

use super::{
    Millis, Refusal, SessionId, SessionState, SessionTable, Ticket,
    record::{Entry, Record},
    table::Removed,
};
use crate::worker_id::WorkerId;

impl SessionTable {
    /// The worker's process exited: from now on its sessions' requests get 410, and it will own no others. Takes no
    /// time; [`SessionTable::owner_exited`] is still to be called.
    pub fn mark_exited(&self, worker: WorkerId) {
        self.owners.exit(worker);
    }

    /// The worker's process exited: its claimed and open sessions are lost, and it will own no others. To be called
    /// once, before anything learns of the exit by other means; with a great many sessions, where nobody should wait
    /// for it (about a second for each million), [`SessionTable::mark_exited`] first and this on a thread of its own.
    ///
    /// Goes through the table shard by shard; a request meets either the record or the loss.
    pub fn owner_exited(&self, worker: WorkerId, now: Millis) {
        let owner = self.owners.exit(worker);
        if owner.count(SessionState::Claimed) + owner.count(SessionState::Open) == 0
            && self.sessions.is_empty()
        {
            return;
        }
        let mut with_aliases = Vec::new();
        self.sessions.retain(|id, entry| match entry {
            Entry::Session(record) if record.is_owned_by(worker) && record.state() != SessionState::Ended => {
                self.lose(id, record, now);
                record.leave();
                self.timers.clear(id, record.timer);
                if let Some(aliases) = record.aliases.take() {
                    with_aliases.push((id.clone(), aliases));
                }
                false
            }
            _ => true,
        });
        for (id, aliases) in with_aliases {
            for alias in aliases.0 {
                self.remove_alias(&alias, &id);
            }
        }
    }

    /// Enters a loss under all of the session's IDs, inside its record's lock.
    pub(super) fn lose(&self, id: &SessionId, record: &Record, now: Millis) {
        let owner = record.owner.id;
        let untouched = record.state() == SessionState::Claimed && !record.used && record.in_flight == 1;
        self.losses.insert(id.clone(), owner, untouched, now);
        for alias in record.aliases() {
            self.losses.insert(alias.clone(), owner, false, now);
        }
        self.totals.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// The refusal for a request whose worker exited under it: 410 if it had a session there. `None` if it had none
    /// (502 then), or if the worker has not exited as far as the table knows.
    pub fn refusal_after_exit(&self, ticket: &Ticket) -> Option<Refusal> {
        // A session that nobody has heard of can be asked for again.
        let session = ticket.session.as_ref().filter(|_| !ticket.unnamed)?;
        self.owners.has_exited(ticket.worker).then(|| Refusal::SessionLost(session.clone()))
    }

    /// Forgets and expires what is due, and nothing that has requests in flight. Does work in proportion to what is due;
    /// to be called about once a second.
    pub fn expire(&self, now: Millis) {
        self.timers.each_due(now, |id| self.look(id, now));
        self.losses.tidy();
    }

    fn look(&self, id: SessionId, now: Millis) {
        let removed = self.remove_if_due(id, now);
        if let Some(removed) = removed {
            removed.finish(self);
        }
    }

    fn remove_if_due(&self, id: SessionId, now: Millis) -> Option<Removed> {
        let MapEntry::Occupied(mut entry) = self.sessions.entry(id) else { return None };
        let Entry::Session(record) = entry.get_mut() else { return None };
        let deadline = record.deadline(&self.policy, now);
        if record.in_flight > 0 || now < deadline {
            // The last request in flight may end without moving `last`.
            record.reset_timer |= record.in_flight > 0;
            let mut timer = record.timer;
            self.timers.set(entry.key(), &mut timer, deadline);
            if let Entry::Session(record) = entry.get_mut() {
                record.timer = timer;
            }
            return None;
        }
        if let Entry::Session(record) = entry.get()
            && record.state() == SessionState::Open
        {
            self.lose(entry.key(), record, now);
            self.totals.expired.fetch_add(1, Ordering::Relaxed);
        } else {
            self.totals.forgotten.fetch_add(1, Ordering::Relaxed);
        }
        self.remove(entry)
    }
}
