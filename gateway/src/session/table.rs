//! The table: who owns which session, and where a request goes.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::{
    DashMap,
    mapref::entry::{Entry as MapEntry, OccupiedEntry, VacantEntry},
};

use super::{
    By, Dispatch, Millis, Named, Refusal, Route, RouteClass, SessionId, SessionState, Ticket,
    expiry::Timers,
    losses::Losses,
    owners::{Owner, Owners},
    record::{Entry, Record},
    rule::names_sessions,
};
use crate::{
    config::{Kind, ServerConfig, ServerSettings},
    worker_id::WorkerId,
};

/// A server's sessions and their owners.
#[derive(Debug)]
pub struct SessionTable {
    pub(super) sessions: DashMap<SessionId, Entry, foldhash::quality::RandomState>,
    pub(super) owners: Owners,
    pub(super) losses: Losses,
    pub(super) timers: Timers,
    pub(super) policy: Policy,
    pub(super) totals: Totals,
    /// Held while a worker with room is chosen and claimed, where there is a limit.
    admission: Mutex<()>,
}

/// What the config says of sessions' lives.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) names_sessions: bool,
    pub(super) used_by: UsedBy,
    /// A session that a reply names is open with it, and not just claimed.
    pub(super) replies_start: bool,
    /// Whether starts open sessions; else a claim lives as long as an open session.
    has_starts: bool,
    /// The most sessions of a worker. A reload changes it.
    max_sessions: AtomicUsize,
    /// From the last use on, by state. A reload changes them.
    lifetimes: [AtomicU64; 3],
}

/// Which reply shows that the worker has the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsedBy {
    /// One that sets its cookie.
    Cookie,
    /// Any below 500: opaque cookies are often chosen by the client.
    AnyBelow500,
    /// A 2xx: servers whose sessions are named by a header refuse those that they do not know.
    Success,
}

impl UsedBy {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Generic => Self::AnyBelow500,
            Kind::Ors | Kind::Mcp => Self::Success,
            Kind::Resources | Kind::Agent | Kind::Environment | Kind::Model | Kind::OpenEnv => Self::Cookie,
        }
    }
}

impl Policy {
    fn new(config: &ServerConfig) -> Self {
        let settings = &config.settings;
        let policy = Self {
            names_sessions: names_sessions(config),
            used_by: UsedBy::of(config.kind),
            replies_start: config.kind == Kind::Mcp,
            has_starts: config.kind != Kind::Generic || !settings.session_start_routes.is_empty(),
            max_sessions: AtomicUsize::default(),
            lifetimes: Default::default(),
        };
        // There are no sessions yet.
        let _ = policy.set_limits(settings);
        policy
    }

    /// Returns whether a session may be due earlier than its timer is set.
    fn set_limits(&self, settings: &ServerSettings) -> bool {
        let most = settings.max_sessions_per_worker.unwrap_or(usize::MAX);
        self.max_sessions.store(most, Ordering::Relaxed);
        let window = millis(settings.session_close_retry_window);
        let idle = millis(settings.session_idle_timeout);
        let all = [if self.has_starts { window } else { idle }, idle, window];
        let mut is_shorter = false;
        for (lifetime, new) in self.lifetimes.iter().zip(all) {
            is_shorter |= new < lifetime.swap(new, Ordering::Relaxed);
        }
        is_shorter
    }

    fn max_sessions(&self) -> usize {
        self.max_sessions.load(Ordering::Relaxed)
    }

    /// How long after its last use a session of this state is forgotten or, if open, lost.
    pub(super) fn lifetime(&self, state: SessionState) -> Millis {
        self.lifetimes[state as usize].load(Ordering::Relaxed)
    }
}

/// Counted since the start.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) lost: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) forgotten: AtomicU64,
    pub(super) withdrawn: AtomicU64,
    pub(super) undone: AtomicU64,
}

/// Whole milliseconds; what is too long for them is for ever.
pub(super) fn millis(duration: Duration) -> Millis {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How often a shard's lock is taken again because an alias led on. One is usual, more only while sessions come and go.
const MAX_HOPS: usize = 8;

/// How often a choice that turns out to have exited is made again.
const MAX_CHOICES: usize = 4;

/// More than DashMap's own four a core, so that the sweep after an exit holds each for a short time.
const SHARDS: usize = 128;

impl SessionTable {
    /// An empty table.
    pub fn new(config: &ServerConfig) -> Self {
        let settings = &config.settings;
        Self {
            sessions: DashMap::with_hasher_and_shard_amount(Default::default(), SHARDS),
            owners: Owners::default(),
            losses: Losses::new(settings.lost_session_retention, settings.max_lost_sessions),
            timers: Timers::new(),
            policy: Policy::new(config),
            totals: Totals::default(),
            admission: Mutex::default(),
        }
    }

    /// Goes by these settings' close-retry window, idle timeout and `max_sessions_per_worker` from now on. Returns whether
    /// a time is shorter now: then [`SessionTable::set_timers_anew`] is to be called.
    #[must_use]
    pub fn set_limits(&self, settings: &ServerSettings) -> bool {
        self.policy.set_limits(settings)
    }

    /// Sets every session's timer by the times that hold now. Goes through the whole table, shard by shard: with a great
    /// many sessions on a thread of its own.
    pub fn set_timers_anew(&self, now: Millis) {
        for mut entry in self.sessions.iter_mut() {
            let (id, Entry::Session(record)) = entry.pair_mut() else { continue };
            let deadline = record.deadline(&self.policy, now);
            self.timers.set(id, &mut record.timer, deadline);
        }
    }

    /// Finds or chooses the owner and claims the session provisionally.
    ///
    /// `choose` picks a ready worker. It may be called inside of a lock: it must not call the table, but for
    /// [`SessionTable::load`], and must not block.
    ///
    /// # Errors
    /// What the rule refuses.
    pub fn dispatch(
        &self,
        named: &Named,
        route: Route,
        now: Millis,
        choose: &mut dyn FnMut(By) -> Option<WorkerId>,
    ) -> Result<Dispatch, Refusal> {
        let Some(session) = &named.session else { return Ok(self.balance(named, route, choose)) };
        if route.class == RouteClass::SessionLess {
            return Ok(match self.living_owner(session) {
                Some(worker) => Dispatch::To(Ticket::new(worker, named, route)),
                None => self.balance(named, route, choose),
            });
        }
        self.check_match(named, now)?;
        let mut id = session.clone();
        let mut alias = None;
        for _ in 0..MAX_HOPS {
            match self.sessions.entry(id.clone()) {
                MapEntry::Occupied(mut entry) => match entry.get_mut() {
                    Entry::Session(record) => return join(record, id, named, route),
                    Entry::Alias(first) => alias = Some(std::mem::replace(&mut id, SessionId::clone(first))),
                },
                MapEntry::Vacant(_) if self.losses.contains(&id, now) => {
                    return Err(Refusal::SessionLost(session.clone()));
                }
                MapEntry::Vacant(entry) => match alias.take() {
                    None if named.only_known => {
                        drop(entry);
                        return Ok(self.balance(named, route, choose));
                    }
                    None => return Ok(self.claim(entry, named, route, now, choose)),
                    // Left over from a session that has just been forgotten.
                    Some(stale) => {
                        drop(entry);
                        self.remove_alias(&stale, &id);
                        id = stale;
                    }
                },
            }
        }
        Ok(Dispatch::NoWorker)
    }

    /// A request that names no session. Its worker's exit is seen by the connection.
    fn balance(
        &self,
        named: &Named,
        route: Route,
        choose: &mut dyn FnMut(By) -> Option<WorkerId>,
    ) -> Dispatch {
        match self.pick(named.by, choose) {
            Some(owner) => Dispatch::To(Ticket::new(owner.id, named, route)),
            None => Dispatch::NoWorker,
        }
    }

    /// The first request for a session: a worker is chosen and becomes its owner.
    fn claim(
        &self,
        entry: VacantEntry<'_, SessionId, Entry>,
        named: &Named,
        route: Route,
        now: Millis,
        choose: &mut dyn FnMut(By) -> Option<WorkerId>,
    ) -> Dispatch {
        let limited = self.policy.max_sessions() < usize::MAX;
        let _turn = limited.then(|| self.admission.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(owner) = self.pick(By::Sessions, choose) else { return Dispatch::NoWorker };
        let mut ticket = Ticket::new(owner.id, named, route);
        ticket.counted = route.counts();
        ticket.session = Some(self.insert_claim(entry, owner, now, ticket.counted));
        Dispatch::To(ticket)
    }

    /// Enters a claim and sets its timer. The owner was seen alive inside this lock.
    pub(super) fn insert_claim(
        &self,
        entry: VacantEntry<'_, SessionId, Entry>,
        owner: Arc<Owner>,
        now: Millis,
        counted: bool,
    ) -> SessionId {
        let id = entry.key().clone();
        let mut record = Record::claim(owner, now, counted);
        self.timers.set(
            &id,
            &mut record.timer,
            now.saturating_add(self.policy.lifetime(SessionState::Claimed)),
        );
        entry.insert(Entry::Session(record));
        id
    }

    fn pick(&self, by: By, choose: &mut dyn FnMut(By) -> Option<WorkerId>) -> Option<Arc<Owner>> {
        for _ in 0..MAX_CHOICES {
            let living = self.owners.living(choose(by)?);
            if living.is_some() {
                return living;
            }
        }
        None
    }

    /// Refuses a cookie and a body that name different sessions.
    fn check_match(&self, named: &Named, now: Millis) -> Result<(), Refusal> {
        let (Some(cookie), Some(body)) = (&named.cookie, &named.session) else { return Ok(()) };
        let first = self.first_id(cookie);
        let is_known = first.is_some() || self.losses.contains(cookie, now);
        if named.unchecked && !is_known {
            return Ok(());
        }
        let same = first.as_ref().unwrap_or(cookie) == self.first_id(body).as_ref().unwrap_or(body);
        if same {
            Ok(())
        } else {
            Err(Refusal::SessionMismatch { cookie: cookie.clone(), body: body.clone() })
        }
    }

    /// The first ID of a session that the table knows.
    pub(super) fn first_id(&self, id: &SessionId) -> Option<SessionId> {
        self.sessions.get(id).map(|entry| match entry.value() {
            Entry::Session(_) => id.clone(),
            Entry::Alias(first) => SessionId::clone(first),
        })
    }

    /// The session's owner, if it has one that lives.
    fn living_owner(&self, id: &SessionId) -> Option<WorkerId> {
        let first = self.first_id(id)?;
        match self.sessions.get(&first)?.value() {
            Entry::Session(record) if !record.owner.has_exited() => Some(record.owner.id),
            _ => None,
        }
    }

    pub(super) fn remove_alias(&self, alias: &SessionId, first: &SessionId) {
        self.sessions.remove_if(alias, |_, entry| matches!(entry, Entry::Alias(known) if **known == *first));
    }

    /// Takes a record out, inside its lock. Its aliases go afterwards, outside of it: [`Removed::finish`].
    pub(super) fn remove(&self, entry: OccupiedEntry<'_, SessionId, Entry>) -> Option<Removed> {
        let (id, Entry::Session(record)) = entry.remove_entry() else { return None };
        record.leave();
        self.timers.clear(&id, record.timer);
        Some(Removed { id, record })
    }

    /// Whether a worker may take one more session; to be asked by [`SessionTable::dispatch`]'s `choose`.
    pub fn has_room(&self, worker: WorkerId) -> bool {
        self.load(worker) < self.policy.max_sessions()
    }

    /// The refusal for a new session where none of these workers has room; `None` if one has, or there are none.
    pub fn refusal_if_full(&self, ready: impl Iterator<Item = WorkerId>) -> Option<Refusal> {
        let limit = self.policy.max_sessions();
        let loads: Vec<_> = ready.map(|worker| self.load(worker)).collect();
        let full = !loads.is_empty() && loads.iter().all(|load| *load >= limit);
        full.then(|| Refusal::CapacityReached {
            active: loads.iter().sum(),
            max: limit.saturating_mul(loads.len()),
        })
    }

    /// Claimed and open sessions of one worker.
    pub fn load(&self, worker: WorkerId) -> usize {
        self.owners
            .known(worker)
            .map_or(0, |owner| owner.count(SessionState::Claimed) + owner.count(SessionState::Open))
    }

    /// How many sessions a worker has had, those that are over among them.
    pub fn taken(&self, worker: WorkerId) -> u64 {
        self.owners.known(worker).map_or(0, |owner| owner.taken.load(Ordering::Relaxed))
    }

    /// Sessions of one worker by state: claimed, open, ended.
    pub fn of_worker(&self, worker: WorkerId) -> [usize; 3] {
        let owner = self.owners.known(worker);
        owner.map_or([0; 3], |owner| SessionState::ALL.map(|state| owner.count(state)))
    }
}

/// A record that was taken out.
pub(super) struct Removed {
    pub(super) id: SessionId,
    pub(super) record: Record,
}

impl Removed {
    /// Takes the aliases out. Must be called outside of the record's lock: they are in shards of their own.
    pub(super) fn finish(self, table: &SessionTable) {
        for alias in self.record.aliases() {
            table.remove_alias(alias, &self.id);
        }
    }
}

/// A further request for a session that has an owner.
fn join(record: &mut Record, id: SessionId, named: &Named, route: Route) -> Result<Dispatch, Refusal> {
    if record.fenced && route.starts {
        return Err(Refusal::SessionClosed(named.session.clone().unwrap_or(id)));
    }
    if record.owner.has_exited() {
        return Err(Refusal::SessionLost(named.session.clone().unwrap_or(id)));
    }
    let mut ticket = Ticket::new(record.owner.id, named, route);
    ticket.counted = route.counts();
    // A request that does not count may outlive the record, and meet another under the same ID.
    ticket.unused = !ticket.counted || (!record.used && record.state() == SessionState::Claimed);
    record.in_flight += u32::from(ticket.counted);
    ticket.session = Some(id);
    Ok(Dispatch::To(ticket))
}
