//! The same invariants under real threads.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread,
};

use http::{Method, StatusCode};

use super::super::{
    By, Dispatch, Named, Reply, Route, RouteClass, Rule, SessionId, SessionState, SessionTable, Ticket,
};
use super::{config, id};
use crate::{config::Kind, worker_id::WorkerId};

fn worker(slot: u16, generation: u32) -> WorkerId {
    WorkerId { slot, generation }
}

fn naming(session: SessionId) -> Named {
    Named { session: Some(session), by_body: true, adopts: true, ..Named::nothing(By::Sessions) }
}

/// Which workers hold requests of which session, kept outside of the table: a worker is entered after its dispatch
/// and taken out before its request is given back, so what is here at one time was in flight at one time. Without
/// event streams, which do not count: their session may be forgotten meanwhile, and another one begin.
#[derive(Default)]
struct Witness {
    held: Mutex<BTreeMap<String, Vec<WorkerId>>>,
    dead: Mutex<BTreeSet<WorkerId>>,
}

impl Witness {
    fn enter(&self, ticket: &Ticket) {
        let Some(session) = ticket.session().filter(|_| ticket.counted) else { return };
        let mut held = self.held.lock().unwrap();
        let workers = held.entry(session.to_string()).or_default();
        workers.push(ticket.worker);
        let dead = self.dead.lock().unwrap();
        let living: BTreeSet<_> = workers.iter().filter(|worker| !dead.contains(worker)).collect();
        assert!(living.len() <= 1, "{session} has several owners: {living:?}");
    }

    fn leave(&self, ticket: &Ticket) {
        let Some(session) = ticket.session().filter(|_| ticket.counted) else { return };
        let mut held = self.held.lock().unwrap();
        let workers = held.get_mut(session.as_str()).unwrap();
        let place = workers.iter().position(|worker| *worker == ticket.worker).unwrap();
        workers.swap_remove(place);
    }
}

struct Arena {
    kind: Kind,
    table: SessionTable,
    rule: Rule,
    witness: Witness,
    ready: [AtomicU32; 3],
    now: AtomicU64,
    stop: AtomicBool,
}

impl Arena {
    fn choose(&self) -> Option<WorkerId> {
        let slot = fastrand::u16(..3);
        Some(worker(slot, self.ready[slot as usize].load(Ordering::SeqCst)))
    }

    /// One request from its dispatch to its end, with random choices on the way.
    fn request(&self, random: &mut fastrand::Rng) {
        let (method, path) = random.choice(requests(self.kind)).copied().unwrap();
        let route = self.rule.route(&method.parse::<Method>().unwrap(), path);
        let name = id(&random.u8(..24).to_string());
        let named = if random.u8(..8) == 0 {
            Named { adopts: self.kind != Kind::Ors, ..Named::nothing(By::Sessions) }
        } else {
            Named { by_body: self.kind == Kind::Resources, ..naming(name.clone()) }
        };
        let now = self.now.load(Ordering::SeqCst);
        let Ok(Dispatch::To(mut ticket)) = self.table.dispatch(&named, route, now, &mut |_| self.choose())
        else {
            return;
        };
        self.witness.enter(&ticket);
        if random.u8(..8) == 0 {
            self.witness.leave(&ticket);
            self.table.withdraw(ticket, now);
            return;
        }
        if random.u8(..8) != 0 {
            self.answer(&mut ticket, route, name, random);
        }
        if random.bool() {
            thread::yield_now();
        }
        self.witness.leave(&ticket);
        self.table.finish(ticket, self.now.load(Ordering::SeqCst));
    }

    fn answer(&self, ticket: &mut Ticket, route: Route, name: SessionId, random: &mut fastrand::Rng) {
        let cookie = match random.u8(..4) {
            0 => None,
            _ if self.kind == Kind::Ors => None,
            // Another ID: an alias to be.
            1 => Some(id(&format!("alias {}", random.u8(..40)))),
            _ => Some(ticket.session().cloned().unwrap_or(name)),
        };
        let status = random.choice([StatusCode::OK, StatusCode::OK, StatusCode::NOT_FOUND]).unwrap();
        // A reply may move an MCP request to another session; any other one may get its first by it.
        if self.kind == Kind::Mcp {
            self.witness.leave(ticket);
        }
        let stays = self.kind != Kind::Mcp && ticket.session().is_some();
        let sets_cookie = self.kind == Kind::Resources && cookie.is_some();
        let reply = Reply { status, sets_cookie, cookie, says: None };
        self.table.reply(ticket, &reply, self.now.load(Ordering::SeqCst));
        if !stays {
            self.witness.enter(ticket);
        }
        if route.class == RouteClass::Step {
            self.table.episode_over(ticket);
        }
    }

    /// A worker exits every now and then; time goes by.
    fn disturb(&self, random: &mut fastrand::Rng) {
        while !self.stop.load(Ordering::SeqCst) {
            let now = self.now.fetch_add(random.u64(..20_000), Ordering::SeqCst);
            self.table.expire(now);
            if random.u8(..4) == 0 {
                let slot = random.u16(..3);
                let gone = worker(slot, self.ready[slot as usize].load(Ordering::SeqCst));
                self.witness.dead.lock().unwrap().insert(gone);
                self.table.owner_exited(gone, now);
                self.ready[slot as usize].fetch_add(1, Ordering::SeqCst);
            }
            self.check_fences(now);
            thread::yield_now();
        }
    }

    fn check_fences(&self, now: u64) {
        for session in self.table.list(usize::MAX, &Default::default(), now) {
            assert!(!session.fenced || session.state == SessionState::Ended, "{session:?}");
            assert!(!session.owner_exited || session.state == SessionState::Ended, "{session:?}");
        }
    }
}

fn requests(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::Ors => &[("POST", "/create"), ("POST", "/delete"), ("POST", "/env/call"), ("POST", "/ping")],
        Kind::Mcp => &[("POST", "/mcp"), ("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp")],
        _ => &[
            ("POST", "/seed_session"),
            ("POST", "/reset"),
            ("POST", "/step"),
            ("POST", "/verify"),
            ("POST", "/close_session"),
            ("POST", "/close"),
            ("POST", "/tool"),
        ],
    }
}

#[test]
fn invariants_hold_under_threads() {
    invariants_hold(Kind::Resources, 20_000);
}

#[test]
fn invariants_hold_under_threads_with_sessions_in_a_header() {
    invariants_hold(Kind::Ors, 10_000);
    invariants_hold(Kind::Mcp, 10_000);
}

fn invariants_hold(kind: Kind, requests: usize) {
    let mut config = config(kind);
    // Losses are few and short, so that IDs come back.
    config.settings.max_lost_sessions = 8;
    config.settings.lost_session_retention = std::time::Duration::from_secs(30);
    let arena = Arena {
        kind,
        table: SessionTable::new(&config),
        rule: Rule::new(&config),
        witness: Witness::default(),
        ready: [const { AtomicU32::new(1) }; 3],
        now: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let disturbing = scope.spawn(|| arena.disturb(&mut fastrand::Rng::with_seed(99)));
        let requesting: Vec<_> = (0..4)
            .map(|seed| {
                let arena = &arena;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    (0..requests).for_each(|_| arena.request(&mut random));
                })
            })
            .collect();
        let results: Vec<_> = requesting.into_iter().map(|thread| thread.join()).collect();
        arena.stop.store(true, Ordering::SeqCst);
        disturbing.join().unwrap();
        results.into_iter().for_each(|result| result.unwrap());
    });
    let now = arena.now.load(Ordering::SeqCst);
    for session in arena.table.list(usize::MAX, &Default::default(), now) {
        assert_eq!(session.in_flight, 0, "{session:?}");
    }
    let end = now + 100 * 86_400_000;
    arena.table.expire(end);
    assert_eq!(arena.table.sessions.len(), 0, "no session and no alias is left over");
    assert_eq!(arena.table.timers.len(), 0);
    for slot in 0..3 {
        for generation in 1..=arena.ready[slot as usize].load(Ordering::SeqCst) {
            assert_eq!(arena.table.load(worker(slot, generation)), 0);
        }
    }
    assert!(arena.table.counts().workers.iter().all(|it| (it.claimed, it.open, it.ended) == (0, 0, 0)));
}

/// A worker that is chosen and exits at the same time gets no session that outlives the sweep.
#[test]
fn no_claim_slips_in_behind_the_sweep() {
    let config = config(Kind::Resources);
    let rule = Rule::new(&config);
    let route = rule.route(&Method::POST, "/seed_session");
    let table = SessionTable::new(&config);
    for generation in 1..=500 {
        let (gone, next) = (worker(0, generation), worker(0, generation + 1));
        let start = Barrier::new(3);
        thread::scope(|scope| {
            for part in 0..2 {
                let (start, table) = (&start, &table);
                scope.spawn(move || {
                    start.wait();
                    for n in 0..20 {
                        let named = naming(id(&format!("{generation} {part} {n}")));
                        let mut choices = [gone, next].into_iter();
                        let sent = table.dispatch(&named, route, 0, &mut |_| choices.next());
                        let Ok(Dispatch::To(ticket)) = sent else { panic!("{sent:?}") };
                        table.finish(ticket, 0);
                    }
                });
            }
            scope.spawn(|| {
                start.wait();
                table.owner_exited(gone, 0);
            });
        });
        assert_eq!(table.load(gone), 0);
        let left = table.list(usize::MAX, &Default::default(), 0);
        assert!(left.iter().all(|session| session.owner == next), "{left:?}");
    }
}

/// Two first requests for a session reach one worker, however they meet.
#[test]
fn first_requests_at_the_same_time_meet_at_one_worker() {
    let config = config(Kind::Resources);
    let rule = Rule::new(&config);
    let route = rule.route(&Method::POST, "/seed_session");
    let table = SessionTable::new(&config);
    for round in 0..500 {
        let start = Barrier::new(2);
        let send = |slot: u16| {
            start.wait();
            let sent =
                table.dispatch(&naming(id(&round.to_string())), route, 0, &mut |_| Some(worker(slot, 1)));
            let Ok(Dispatch::To(ticket)) = sent else { panic!("{sent:?}") };
            ticket
        };
        let (first, second) = thread::scope(|scope| {
            let (first, second) = (scope.spawn(|| send(0)), scope.spawn(|| send(1)));
            (first.join().unwrap(), second.join().unwrap())
        });
        assert_eq!(first.worker, second.worker);
        table.finish(first, 0);
        table.finish(second, 0);
    }
    assert_eq!(table.load(worker(0, 1)) + table.load(worker(1, 1)), 500);
}
