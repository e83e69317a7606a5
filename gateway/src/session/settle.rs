//! Settling: what replies, and the ends of requests, change.

use std::sync::atomic::Ordering;

use dashmap::mapref::entry::Entry as MapEntry;
use http::StatusCode;

use super::{
    HeadEffects, Millis, Reply, Route, RouteClass, Says, SessionId, SessionState, SessionTable, Ticket,
    record::{Entry, Record},
    table::UsedBy,
    ticket::Socket,
};

/// What a reply does to its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    Open,
    End {
        fence: bool,
    },
    /// Ends the session unless a body ID seeded it.
    EndUnlessSeededByBody,
}

impl Change {
    /// `begins`: the reply named the session, and did so with its beginning.
    fn of(route: Route, reply: &Reply, begins: bool) -> Self {
        if !reply.status.is_success() {
            return Self::Nothing;
        }
        match route.class {
            RouteClass::CloseSession => Self::End { fence: true },
            _ if route.ends || reply.says == Some(Says::Ended) => Self::End { fence: false },
            _ if route.starts || begins => Self::Open,
            RouteClass::Verify if reply.says != Some(Says::Open) => Self::EndUnlessSeededByBody,
            _ => Self::Nothing,
        }
    }

    fn apply(self, record: &mut Record, ticket: &Ticket) {
        match self {
            Self::Nothing => {}
            Self::Open => {
                let by_body = ticket.by_body && ticket.route.class == RouteClass::Seed;
                record.open(by_body, ticket.route.class == RouteClass::Reset);
            }
            Self::End { fence } => record.end(fence),
            Self::EndUnlessSeededByBody if record.seeded_by_body => {}
            Self::EndUnlessSeededByBody => record.end(false),
        }
    }
}

impl SessionTable {
    /// A reply's head came; to be settled before it goes to the client. Not for a reply of the gateway's own.
    pub fn reply(&self, ticket: &mut Ticket, reply: &Reply, now: Millis) -> HeadEffects {
        ticket.succeeded = reply.status.is_success();
        if !self.policy.names_sessions {
            return HeadEffects::default();
        }
        if ticket.socket != Socket::None && reply.status == StatusCode::SWITCHING_PROTOCOLS {
            self.socket_opened(ticket);
            return HeadEffects::default();
        }
        ticket.no_route = reply.is_no_route();
        if ticket.no_route || ticket.route.class == RouteClass::SessionLess {
            return HeadEffects { drop_cookie: reply.sets_cookie, ..HeadEffects::default() };
        }
        let (mut begins, mut clashes) = (false, false);
        if self.policy.replies_start && reply.cookie.is_some() && ticket.session != reply.cookie {
            self.leave_for_another(ticket, now);
            begins = true;
        }
        match (&ticket.session, &reply.cookie) {
            (None, Some(cookie)) if ticket.adopts => {
                clashes = !self.adopt(ticket, cookie, now) && begins;
            }
            (Some(first), Some(cookie)) if ticket.route.class != RouteClass::Mcp && first != cookie => {
                self.add_alias(first, ticket, cookie, now);
            }
            _ => {}
        }
        self.change(ticket, reply, begins);
        let add = ticket.route.starts && ticket.succeeded && ticket.can_add && !reply.sets_cookie;
        HeadEffects { add_cookie: ticket.session.clone().filter(|_| add), drop_cookie: false, clashes }
    }

    /// The reply of a request that named a session begins another one: as if the request had named none.
    fn leave_for_another(&self, ticket: &mut Ticket, now: Millis) {
        if let Some(first) = ticket.session.take() {
            self.leave(first, ticket, now, false);
            ticket.unused = true;
        }
    }

    /// Carries out what a reply does to its session's record.
    fn change(&self, ticket: &mut Ticket, reply: &Reply, begins: bool) {
        let Some(id) = &ticket.session else { return };
        let change = Change::of(ticket.route, reply, begins);
        let uses = ticket.unused && self.uses(ticket, reply);
        if change == Change::Nothing && !uses {
            return;
        }
        self.with_record(id, ticket, |record| {
            record.used |= uses;
            change.apply(record, ticket);
        });
    }

    /// Whether a reply shows that the worker has the session.
    fn uses(&self, ticket: &Ticket, reply: &Reply) -> bool {
        match self.policy.used_by {
            // One that asks for a session has none until the body says so.
            _ if ticket.unnamed => false,
            _ if ticket.route.class == RouteClass::Mcp => ticket.succeeded,
            UsedBy::Cookie => reply.sets_cookie,
            UsedBy::AnyBelow500 => reply.status < StatusCode::INTERNAL_SERVER_ERROR,
            UsedBy::Success => ticket.succeeded,
        }
    }

    /// Lets a request that named no session belong to the one in its reply. Returns `false` if that is another worker's.
    fn adopt(&self, ticket: &mut Ticket, cookie: &SessionId, now: Millis) -> bool {
        let mut first = self.first_id(cookie).unwrap_or_else(|| cookie.clone());
        if first != *cookie && !self.sessions.contains_key(&first) {
            // Left over from a session that has just been forgotten.
            self.remove_alias(cookie, &first);
            first = cookie.clone();
        }
        let counted = ticket.route.counts();
        match self.sessions.entry(first.clone()) {
            MapEntry::Occupied(mut entry) => {
                // Another worker's session by the same name cannot become this worker's.
                let Entry::Session(record) = entry.get_mut() else { return true };
                if !record.is_owned_by(ticket.worker) {
                    return false;
                }
                if record.owner.has_exited() {
                    return true;
                }
                record.in_flight += u32::from(counted);
            }
            MapEntry::Vacant(_) if self.losses.contains(&first, now) => return true,
            MapEntry::Vacant(entry) => {
                let Some(owner) = self.owners.living(ticket.worker) else { return true };
                self.insert_claim(entry, owner, now, counted);
            }
        }
        ticket.counted = counted;
        ticket.session = Some(first);
        true
    }

    /// Makes the ID in a reply's cookie another ID of the request's session, if nothing else is known by it.
    fn add_alias(&self, first: &SessionId, ticket: &Ticket, alias: &SessionId, now: Millis) {
        if self.sessions.contains_key(alias) || self.losses.contains(alias, now) {
            return;
        }
        // The record first: whoever takes it out knows the alias then.
        let mut oldest = None;
        if !self.with_record(first, ticket, |record| oldest = record.add_alias(alias.clone())) {
            return;
        }
        if let Some(oldest) = oldest {
            self.remove_alias(&oldest, first);
        }
        let added = match self.sessions.entry(alias.clone()) {
            MapEntry::Vacant(entry) => {
                entry.insert(Entry::Alias(Box::new(first.clone())));
                true
            }
            MapEntry::Occupied(entry) => matches!(entry.get(), Entry::Alias(known) if **known == *first),
        };
        if !added {
            self.with_record(first, ticket, |record| record.remove_alias(alias));
        } else if !self.with_record(first, ticket, |_| ()) {
            self.remove_alias(alias, first);
        }
    }

    /// Changes the record that a ticket is entered in; `false` if it is gone, with its worker.
    pub(super) fn with_record(
        &self,
        id: &SessionId,
        ticket: &Ticket,
        change: impl FnOnce(&mut Record),
    ) -> bool {
        match self.sessions.get_mut(id).as_deref_mut() {
            Some(Entry::Session(record))
                if record.is_owned_by(ticket.worker) && !record.owner.has_exited() =>
            {
                change(record);
                true
            }
            _ => false,
        }
    }

    /// A watched reply said that the episode is over; to be called before its last byte goes out.
    ///
    /// Acts only on a 2xx reply, of a session that `/reset` began.
    pub fn episode_over(&self, ticket: &mut Ticket) {
        let Some(id) = &ticket.session else { return };
        if ticket.succeeded {
            self.with_record(id, ticket, |record| {
                if record.begun_by_reset && record.state() == SessionState::Open {
                    record.end(false);
                }
            });
        }
    }

    /// The request ended, with a reply or without. At least one of its bytes may have reached the worker.
    pub fn finish(&self, ticket: Ticket, now: Millis) {
        let route = ticket.route;
        let used = !ticket.no_route && (route.starts || route.ends);
        self.close(ticket, now, used);
    }

    /// No byte reached the worker: dispatch the request again.
    ///
    /// Returns whether it may get another worker then. If not, the session is this worker's by other requests, and the
    /// next dispatch says the same worker, or 410.
    pub fn withdraw(&self, ticket: Ticket, now: Millis) -> bool {
        let (worker, session) = (ticket.worker, ticket.session.clone());
        let stays = self.close(Ticket { no_route: true, ..ticket }, now, false);
        if let Some(session) = session.filter(|_| !stays)
            && self.losses.undo(&session, worker)
        {
            self.totals.undone.fetch_add(1, Ordering::Relaxed);
        }
        !stays
    }

    /// Takes a ticket back. Returns whether the worker still owns the session.
    fn close(&self, mut ticket: Ticket, now: Millis, used: bool) -> bool {
        ticket.session.take().is_some_and(|id| self.leave(id, &ticket, now, used))
    }

    /// The request ended since its worker goes, and the session with it, before the process has exited: it is lost now.
    pub fn lose_session(&self, mut ticket: Ticket, now: Millis) {
        let Some(id) = ticket.session.take() else { return };
        let MapEntry::Occupied(mut entry) = self.sessions.entry(id) else { return };
        let Entry::Session(record) = entry.get_mut() else { return };
        if !record.is_owned_by(ticket.worker) {
            return;
        }
        record.in_flight -= u32::from(ticket.counted);
        record.used = true;
        // One whose worker has exited meanwhile is taken by the sweep that is on its way; one that has ended is no loss.
        if record.is_lost() || record.state() == SessionState::Ended {
            return;
        }
        if let Entry::Session(record) = entry.get() {
            self.lose(entry.key(), record, now);
        }
        if let Some(removed) = self.remove(entry) {
            removed.finish(self);
        }
    }

    /// Takes a request out of its session's record. Returns whether the worker still owns the session.
    fn leave(&self, id: SessionId, ticket: &Ticket, now: Millis, used: bool) -> bool {
        let MapEntry::Occupied(mut entry) = self.sessions.entry(id) else { return false };
        let Entry::Session(record) = entry.get_mut() else { return false };
        if !record.is_owned_by(ticket.worker) {
            return false;
        }
        record.in_flight -= u32::from(ticket.counted);
        record.used |= used;
        if !ticket.no_route {
            record.last = now;
        }
        if record.is_lost() && !ticket.no_route {
            // It is counted and remembered by the sweep that is on its way, which is not to take it for untouched.
            record.used = true;
            return true;
        }
        let is_void = record.is_void();
        let is_over = socket_over(record, ticket.socket, ticket.unnamed);
        if is_void {
            record.owner.taken.fetch_sub(1, Ordering::Relaxed);
        }
        if is_void || is_over {
            let removed = self.remove(entry);
            self.totals.withdrawn.fetch_add(u64::from(is_void), Ordering::Relaxed);
            if let Some(removed) = removed {
                removed.finish(self);
            }
            return false;
        }
        if record.reset_timer && record.in_flight == 0 {
            record.reset_timer = false;
            let deadline = record.deadline(&self.policy, now);
            let mut timer = record.timer;
            self.timers.set(entry.key(), &mut timer, deadline);
            if let Entry::Session(record) = entry.get_mut() {
                record.timer = timer;
            }
        }
        true
    }
}

/// A WebSocket's end, if the ticket is one: ends its session, or detaches from it. Whether nobody can ask for the session
/// any more, since it never had an ID but the gateway's own.
fn socket_over(record: &mut Record, socket: Socket, unnamed: bool) -> bool {
    match socket {
        Socket::Owns if unnamed => return true,
        Socket::Owns => record.end(false),
        Socket::Attached => record.detach(),
        Socket::None | Socket::Attaches => {}
    }
    false
}
