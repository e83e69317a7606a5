//! Random histories against a simple model: one map, no timers, no shards.

mod ops;

use std::collections::{BTreeMap, BTreeSet};

use http::{Method, StatusCode};
use proptest::{collection::vec, prelude::*, sample::select};

use super::super::{
    By, Dispatch, Named, Reply, Route, RouteClass, Rule, Says, SessionState, SessionTable, Ticket,
};
use super::{config, id};
use crate::{
    config::{Kind, Protocol},
    worker_id::WorkerId,
};
use ops::{IDLE, NAMES, Op, RETENTION, ROUTES, STATUSES, WINDOW, class, op};

/// A session, as design and table of events have it.
#[derive(Clone, Debug)]
struct Modelled {
    owner: WorkerId,
    state: SessionState,
    fenced: bool,
    used: bool,
    by_body: bool,
    by_reset: bool,
    in_flight: u32,
    last: u64,
}

struct Sent {
    ticket: Ticket,
    route: Route,
    /// By the model.
    session: Option<&'static str>,
    worker: WorkerId,
    by_body: bool,
    no_route: bool,
    succeeded: bool,
    answered: bool,
}

struct World {
    protocol: Protocol,
    rule: Rule,
    table: SessionTable,
    now: u64,
    ready: [u32; 2],
    dead: BTreeSet<WorkerId>,
    sent: Vec<Sent>,
    model: BTreeMap<&'static str, Modelled>,
    /// Until when, and which worker's claim it was that nothing had come of.
    lost: BTreeMap<&'static str, (u64, Option<WorkerId>)>,
    totals: [u64; 4],
}

const LOST: usize = 0;
const EXPIRED: usize = 1;
const FORGOTTEN: usize = 2;
const WITHDRAWN: usize = 3;

impl World {
    fn new(protocol: Protocol) -> Self {
        let mut config = config(Kind::Resources);
        config.settings.protocol = Some(protocol);
        Self {
            protocol,
            rule: Rule::new(&config),
            table: SessionTable::new(&config),
            now: 0,
            ready: [1, 1],
            dead: BTreeSet::new(),
            sent: Vec::new(),
            model: BTreeMap::new(),
            lost: BTreeMap::new(),
            totals: [0; 4],
        }
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Send { name, route } => self.send(name.map(|name| NAMES[name]), ROUTES[route]),
            Op::Answer { which, status, cookie, says } => {
                self.answer(which, STATUSES[status], cookie.map(|name| NAMES[name]), says);
            }
            Op::Over(which) => self.over(which),
            Op::Finish(which) => self.take_back(which, false),
            Op::Withdraw(which) => self.take_back(which, true),
            Op::Exit(slot) => self.exit(slot),
            Op::Pass(tenths) => self.pass(tenths * 100),
        }
        self.compare();
    }

    fn is_lost(&self, name: &str) -> bool {
        self.lost.get(name).is_some_and(|(until, _)| self.now < *until)
    }

    fn load(&self, worker: WorkerId) -> usize {
        let counts = |session: &&Modelled| session.owner == worker && session.state != SessionState::Ended;
        self.model.values().filter(counts).count()
    }

    fn send(&mut self, name: Option<&'static str>, path: &str) {
        let route = self.rule.route(&Method::POST, path);
        assert_eq!(route.class, class(self.protocol, path), "{path}");
        let by_body = route.is_naming() && name.is_some();
        let named = Named {
            session: name.map(id),
            by_body,
            can_add: true,
            adopts: route.class != RouteClass::SessionLess,
            ..Named::nothing(By::Sessions)
        };
        let ready = [0, 1].map(|slot| WorkerId { slot, generation: self.ready[slot as usize] });
        let best = |load: &dyn Fn(WorkerId) -> usize| {
            ready.into_iter().min_by_key(|worker| (load(*worker), worker.slot))
        };
        let table = &self.table;
        let found = table.dispatch(&named, route, self.now, &mut |_| best(&|worker| table.load(worker)));
        let chosen = best(&|worker| self.load(worker)).unwrap();
        let session_less = route.class == RouteClass::SessionLess;
        let known = name.and_then(|name| self.model.get(name)).cloned();
        let expected = match (name, known) {
            (_, Some(known)) if session_less => {
                Ok(if self.dead.contains(&known.owner) { chosen } else { known.owner })
            }
            (_, Some(known)) if known.fenced && route.starts => Err("session_closed"),
            (_, Some(known)) if self.dead.contains(&known.owner) => Err("session_lost"),
            (_, Some(known)) => Ok(known.owner),
            (Some(name), None) if !session_less && self.is_lost(name) => Err("session_lost"),
            _ => Ok(chosen),
        };
        let ticket = match found {
            Ok(Dispatch::To(ticket)) => {
                assert_eq!(Ok(ticket.worker), expected);
                ticket
            }
            Err(refusal) => return assert_eq!(Err(refusal.code()), expected),
            Ok(Dispatch::NoWorker) => panic!("there are always two"),
        };
        let worker = ticket.worker;
        let session = name.filter(|_| !session_less);
        if let Some(name) = session {
            self.claim(name, worker);
        }
        self.sent.push(Sent {
            ticket,
            route,
            session,
            worker,
            by_body,
            no_route: false,
            succeeded: false,
            answered: false,
        });
    }

    fn claim(&mut self, name: &'static str, owner: WorkerId) {
        let new = Modelled {
            owner,
            state: SessionState::Claimed,
            fenced: false,
            used: false,
            by_body: false,
            by_reset: false,
            in_flight: 0,
            last: self.now,
        };
        self.model.entry(name).or_insert(new).in_flight += 1;
    }

    fn answer(&mut self, which: usize, status: StatusCode, cookie: Option<&'static str>, says: Option<Says>) {
        let Some(which) = which.checked_rem(self.sent.len()) else { return };
        if self.sent[which].answered {
            return;
        }
        // A server that sets no other cookie than the session's: aliases have tests of their own.
        let cookie =
            if self.sent[which].session.is_some() { cookie.and(self.sent[which].session) } else { cookie };
        let reply = Reply { status, cookie: cookie.map(id), sets_cookie: cookie.is_some(), says };
        let effects = self.table.reply(&mut self.sent[which].ticket, &reply, self.now);
        let (route, worker) = (self.sent[which].route, self.sent[which].worker);
        let session_less = route.class == RouteClass::SessionLess || status == StatusCode::NOT_FOUND;
        let sent = &mut self.sent[which];
        (sent.answered, sent.no_route, sent.succeeded) =
            (true, status == StatusCode::NOT_FOUND, status.is_success());
        assert_eq!(effects.drop_cookie, session_less && cookie.is_some());
        if session_less {
            return;
        }
        if sent.session.is_none()
            && let Some(name) = cookie
            && !self.dead.contains(&worker)
            && self.model.get(name).map_or(!self.is_lost(name), |known| known.owner == worker)
        {
            self.sent[which].session = Some(name);
            self.claim(name, worker);
        }
        let by_body = self.sent[which].by_body;
        let (session, ok) = (self.sent[which].session, status.is_success());
        assert_eq!(
            effects.add_cookie.map(|id| id.to_string()),
            session.filter(|_| ok && route.starts && cookie.is_none()).map(str::to_owned)
        );
        let Some(known) = self.owned(session, worker) else { return };
        known.used |= cookie.is_some();
        if !ok {
            return;
        }
        let ends = match route.class {
            RouteClass::CloseSession | RouteClass::Close => true,
            _ if says == Some(Says::Ended) => true,
            RouteClass::Verify => says != Some(Says::Open) && !known.by_body,
            _ => false,
        };
        if ends {
            known.state = SessionState::Ended;
            known.fenced |= route.class == RouteClass::CloseSession;
        } else if route.starts && !known.fenced {
            let seed_by_body = by_body && route.class == RouteClass::Seed;
            if known.state == SessionState::Open {
                known.by_body |= seed_by_body;
            } else {
                (known.by_body, known.by_reset) = (seed_by_body, route.class == RouteClass::Reset);
            }
            known.state = SessionState::Open;
        }
    }

    /// The session, if its owner is this living worker.
    fn owned(&mut self, session: Option<&'static str>, worker: WorkerId) -> Option<&mut Modelled> {
        let dead = self.dead.contains(&worker);
        self.model.get_mut(session?).filter(|known| known.owner == worker && !dead)
    }

    fn over(&mut self, which: usize) {
        let Some(which) = which.checked_rem(self.sent.len()) else { return };
        if self.sent[which].route.class != RouteClass::Step {
            return;
        }
        self.table.episode_over(&mut self.sent[which].ticket);
        let Sent { session, worker, succeeded, .. } = self.sent[which];
        if let Some(known) = self.owned(session, worker).filter(|known| known.by_reset && succeeded)
            && known.state == SessionState::Open
        {
            known.state = SessionState::Ended;
        }
    }

    fn take_back(&mut self, which: usize, unsent: bool) {
        let Some(which) = which.checked_rem(self.sent.len()) else { return };
        if unsent && self.sent[which].answered {
            return;
        }
        let sent = self.sent.swap_remove(which);
        let free = match unsent {
            true => Some(self.table.withdraw(sent.ticket, self.now)),
            false => {
                self.table.finish(sent.ticket, self.now);
                None
            }
        };
        let (session, worker) = (sent.session, sent.worker);
        let mut stays = false;
        if let Some(name) = session
            && let Some(known) = self.model.get_mut(name).filter(|known| known.owner == worker)
        {
            known.in_flight -= 1;
            if !unsent && !sent.no_route {
                known.last = self.now;
                known.used |= sent.route.starts || sent.route.ends;
            }
            if known.state == SessionState::Claimed && !known.used && known.in_flight == 0 {
                self.model.remove(name);
                self.totals[WITHDRAWN] += 1;
            } else {
                stays = true;
            }
        } else if let Some(name) = session
            && unsent
            && self.lost.get(name).is_some_and(|(_, untouched)| *untouched == Some(worker))
        {
            self.lost.remove(name);
        }
        if let Some(free) = free {
            assert_eq!(free, !stays);
        }
    }

    fn exit(&mut self, slot: u16) {
        let worker = WorkerId { slot, generation: self.ready[slot as usize] };
        self.table.owner_exited(worker, self.now);
        self.ready[slot as usize] += 1;
        self.dead.insert(worker);
        let lost = |session: &Modelled| session.owner == worker && session.state != SessionState::Ended;
        for (name, session) in self.model.clone().into_iter().filter(|(_, session)| lost(session)) {
            let untouched = session.state == SessionState::Claimed && !session.used && session.in_flight == 1;
            self.lost.insert(name, (self.now + RETENTION, untouched.then_some(worker)));
            self.model.remove(name);
            self.totals[LOST] += 1;
        }
        for sent in &self.sent {
            let refusal = self.table.refusal_after_exit(&sent.ticket);
            assert_eq!(refusal.is_some(), sent.session.is_some() && self.dead.contains(&sent.worker));
        }
    }

    fn pass(&mut self, millis: u64) {
        self.now += millis;
        self.table.expire(self.now);
        for (name, session) in self.model.clone() {
            let lifetime = if session.state == SessionState::Open { IDLE } else { WINDOW };
            if session.in_flight > 0 || self.now < session.last + lifetime {
                continue;
            }
            self.model.remove(name);
            if session.state == SessionState::Open {
                self.lost.insert(name, (self.now + RETENTION, None));
                self.totals[LOST] += 1;
                self.totals[EXPIRED] += 1;
            } else {
                self.totals[FORGOTTEN] += 1;
            }
        }
    }

    /// Every invariant, and that table and model are of one mind.
    fn compare(&self) {
        for name in NAMES {
            let found = self.table.find(&id(name), self.now);
            let expected = self.model.get(name);
            let found = found.map(|it| (it.owner, it.state, it.fenced, it.in_flight));
            assert_eq!(found, expected.map(|it| (it.owner, it.state, it.fenced, it.in_flight)), "{name}");
            assert!(found.is_none_or(|(_, state, fenced, _)| !fenced || state == SessionState::Ended));
            let lost = self.table.losses.contains(&id(name), self.now);
            assert_eq!(lost && found.is_none(), self.is_lost(name) && expected.is_none(), "{name} is lost");
        }
        let counts = self.table.counts();
        for (n, state) in SessionState::ALL.into_iter().enumerate() {
            let counted: usize = counts.workers.iter().map(|it| [it.claimed, it.open, it.ended][n]).sum();
            assert_eq!(counted, self.model.values().filter(|it| it.state == state).count(), "{state:?}");
        }
        let totals =
            [counts.lost_total, counts.expired_total, counts.forgotten_total, counts.withdrawn_total];
        assert_eq!(totals, self.totals);
        assert_eq!(self.table.timers.len(), self.model.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_table_does_what_the_model_does(protocol in select(&Protocol::ALL), ops in vec(op(), 1..120)) {
        let mut world = World::new(protocol);
        ops.into_iter().for_each(|op| world.step(op));
        // In the end nothing is left in flight, and after the longest time nothing at all.
        while !world.sent.is_empty() {
            world.step(Op::Finish(0));
        }
        prop_assert!(world.model.values().all(|session| session.in_flight == 0));
        world.step(Op::Pass(IDLE / 100));
        prop_assert_eq!(world.table.sessions.len(), 0);
    }
}
