//! One session's record.

use std::sync::{Arc, atomic::Ordering};

use super::{
    Millis, SessionId,
    expiry::{NO_TIMER, TimerHandle},
    owners::Owner,
    table::Policy,
};
use crate::worker_id::WorkerId;

/// Where a session that has an owner is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Requests name it, no start was answered with 2xx.
    Claimed,
    /// Started.
    Open,
    /// Ended; remembered for the close-retry window.
    Ended,
}

impl SessionState {
    /// All states, in the order of a session's life.
    pub const ALL: [Self; 3] = [Self::Claimed, Self::Open, Self::Ended];

    /// The metrics' label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Open => "open",
            Self::Ended => "ended",
        }
    }
}

/// What the table has under an ID.
#[derive(Debug)]
pub(super) enum Entry {
    Session(Record),
    /// Another ID of the session with this one. Boxed, since most entries are sessions and pay for its size.
    Alias(Box<SessionId>),
}

/// A session's record. The owner's counters follow `state`: every change goes through [`Record::enter`], the record's
/// making through [`Record::claim`], its end through [`Record::leave`].
#[derive(Debug)]
pub(super) struct Record {
    pub(super) owner: Arc<Owner>,
    /// When the last request that moves the timer ended, or the claim was made.
    pub(super) last: Millis,
    pub(super) aliases: Option<Box<Aliases>>,
    /// Requests that are dispatched and not finished; while there are any the record is neither forgotten nor expired.
    pub(super) in_flight: u32,
    pub(super) timer: TimerHandle,
    state: SessionState,
    /// Closed for good: no start opens it. Only ended sessions are fenced.
    pub(super) fenced: bool,
    /// A reply used the session, or a start or close was sent: the claim is not withdrawn.
    pub(super) used: bool,
    /// A body ID seeded it, so its `/verify` does not end it.
    pub(super) seeded_by_body: bool,
    /// `/reset` began it, so its terminal `/step` ends it.
    pub(super) begun_by_reset: bool,
    /// The state has changed, so the deadline may have come nearer than the timer is set.
    pub(super) reset_timer: bool,
    /// WebSockets that are attached to it.
    pub(super) attached: Attached,
}

/// How many WebSockets are attached to a session (a server takes one, and refuses others only once they are open), and
/// whether it is to end when the last one detaches. One byte, since a record has no room for two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Attached(u8);

impl Attached {
    const CLOSING: u8 = 1 << 7;
    const COUNT: u8 = !Self::CLOSING;

    /// One more; `false` if there are as many as can be counted.
    fn add(&mut self) -> bool {
        let room = self.0 & Self::COUNT < Self::COUNT;
        self.0 += u8::from(room);
        room
    }

    /// One less. Whether that is the detach that ends the session.
    fn remove(&mut self) -> bool {
        self.0 -= u8::from(self.0 & Self::COUNT > 0);
        self.0 == Self::CLOSING
    }

    /// The session is to end with the last detach. Whether that has been.
    fn close(&mut self) -> bool {
        self.0 |= Self::CLOSING;
        self.0 == Self::CLOSING
    }
}

/// A session's other IDs, newest last.
#[derive(Debug, Default)]
pub(super) struct Aliases(pub(super) Vec<SessionId>);

/// How many other IDs a session may have. A server that changes its opaque cookie on every reply makes one each time.
pub(super) const MAX_ALIASES: usize = 16;

impl Record {
    /// A new record, claimed and with one request in flight if that counts.
    pub(super) fn claim(owner: Arc<Owner>, now: Millis, counted: bool) -> Self {
        owner.sessions[SessionState::Claimed as usize].fetch_add(1, Ordering::Relaxed);
        owner.taken.fetch_add(1, Ordering::Relaxed);
        Self {
            owner,
            last: now,
            aliases: None,
            in_flight: u32::from(counted),
            timer: NO_TIMER,
            state: SessionState::Claimed,
            fenced: false,
            used: false,
            seeded_by_body: false,
            begun_by_reset: false,
            reset_timer: false,
            attached: Attached::default(),
        }
    }

    pub(super) fn state(&self) -> SessionState {
        self.state
    }

    fn enter(&mut self, state: SessionState) {
        if self.state != state {
            // In this order, so that nobody finds a session in neither count, and a place where there is none.
            self.owner.sessions[state as usize].fetch_add(1, Ordering::Relaxed);
            self.owner.sessions[self.state as usize].fetch_sub(1, Ordering::Relaxed);
            self.state = state;
            self.reset_timer = true;
        }
    }

    /// A start answered 2xx. A fenced session stays ended.
    pub(super) fn open(&mut self, by_body: bool, by_reset: bool) {
        if self.fenced {
            return;
        }
        if self.state == SessionState::Open {
            self.seeded_by_body |= by_body;
        } else {
            self.seeded_by_body = by_body;
            self.begun_by_reset = by_reset;
            self.enter(SessionState::Open);
        }
    }

    pub(super) fn end(&mut self, fence: bool) {
        self.fenced |= fence;
        self.enter(SessionState::Ended);
    }

    /// A WebSocket attaches; `false` if it is not counted.
    pub(super) fn attach(&mut self) -> bool {
        self.attached.add()
    }

    /// A WebSocket that was counted detaches, which ends a session that is closing.
    pub(super) fn detach(&mut self) {
        if self.attached.remove() {
            self.end(false);
        }
    }

    /// The session ends with the detach of its WebSocket: at once, if it has none (the answer that says so may have been
    /// overtaken by the detach).
    pub(super) fn close_on_detach(&mut self) {
        if self.attached.close() {
            self.end(false);
        }
    }

    /// Takes the record out of its owner's count.
    pub(super) fn leave(&self) {
        self.owner.sessions[self.state as usize].fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn is_owned_by(&self, worker: WorkerId) -> bool {
        self.owner.id == worker
    }

    /// Its owner has exited, and nothing ended it before.
    pub(super) fn is_lost(&self) -> bool {
        self.owner.has_exited() && self.state != SessionState::Ended
    }

    /// Claimed, unused and without a request: as if it had never been.
    pub(super) fn is_void(&self) -> bool {
        self.state == SessionState::Claimed && !self.used && self.in_flight == 0
    }

    /// When the record is due to be forgotten or expired; `now` while requests are in flight counts as its last use.
    pub(super) fn deadline(&self, policy: &Policy, now: Millis) -> Millis {
        let last = if self.in_flight > 0 { now } else { self.last };
        last.saturating_add(policy.lifetime(self.state))
    }

    pub(super) fn aliases(&self) -> &[SessionId] {
        self.aliases.as_ref().map_or(&[], |aliases| &aliases.0)
    }

    /// Adds an alias; returns the oldest one if it has to give way.
    pub(super) fn add_alias(&mut self, alias: SessionId) -> Option<SessionId> {
        let aliases = &mut self.aliases.get_or_insert_default().0;
        if aliases.contains(&alias) {
            return None;
        }
        let oldest = (aliases.len() == MAX_ALIASES).then(|| aliases.remove(0));
        aliases.push(alias);
        oldest
    }

    pub(super) fn remove_alias(&mut self, alias: &SessionId) {
        if let Some(aliases) = &mut self.aliases {
            aliases.0.retain(|known| known != alias);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_detach_ends_a_session_that_is_closing() {
        let mut attached = Attached::default();
        assert!(attached.add() && attached.add());
        assert!(!attached.close() && !attached.remove() && attached.remove());
        let mut attached = Attached::default();
        assert_eq!((0..200).filter(|_| attached.add()).count(), 127);
        assert!((0..127).all(|_| !attached.remove()), "nobody asked for an end");
        assert!(attached.close());
    }

    #[test]
    fn a_session_fits_into_80_bytes_with_its_id() {
        assert!(size_of::<(SessionId, Entry)>() <= 80, "{}", size_of::<(SessionId, Entry)>());
    }
}
