//! Random histories of OpenEnv's sessions against a simple model: one list, no shards.

use std::collections::BTreeSet;

use http::{HeaderMap, Method, StatusCode};
use proptest::{collection::vec, prelude::*};

use super::super::{By, Dispatch, Named, Route, Rule, Said, SessionState, SessionTable, Ticket};
use super::{UNIX, config, id};
use crate::{config::Kind, worker_id::WorkerId};

/// How many sessions a worker may have.
const LIMIT: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    /// A plain WebSocket.
    Open,
    Create,
    /// A WebSocket that attaches to one of the sessions that ever had a name.
    Attach(usize),
    Call(usize),
    /// The worker accepts a WebSocket, or refuses it.
    Upgrade(usize, bool),
    /// The worker tells a new session's name.
    Tell(usize),
    /// The worker says that a session was closed, or is to close.
    Close(usize, usize, bool),
    Finish(usize),
    Withdraw(usize),
    Exit(u16),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Open),
        4 => Just(Op::Create),
        4 => any::<usize>().prop_map(Op::Attach),
        3 => any::<usize>().prop_map(Op::Call),
        6 => (any::<usize>(), prop::bool::weighted(0.9)).prop_map(|(which, takes)| Op::Upgrade(which, takes)),
        6 => any::<usize>().prop_map(Op::Tell),
        3 => (any::<usize>(), any::<usize>(), any::<bool>())
            .prop_map(|(which, name, now)| Op::Close(which, name, now)),
        8 => any::<usize>().prop_map(Op::Finish),
        1 => any::<usize>().prop_map(Op::Withdraw),
        1 => (0..2_u16).prop_map(Op::Exit),
    ]
}

#[derive(Clone, Debug)]
struct Modelled {
    owner: WorkerId,
    state: SessionState,
    named: bool,
    attached: u32,
    closing: bool,
    /// Lost, or never used.
    gone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Socket,
    Create,
    Attach,
    Attached,
    Call,
}

struct Sent {
    ticket: Ticket,
    role: Role,
    /// Its place in the model.
    session: Option<usize>,
    upgraded: bool,
}

struct World {
    rule: Rule,
    table: SessionTable,
    ready: [u32; 2],
    dead: BTreeSet<WorkerId>,
    /// By number, which is a named one's name.
    model: Vec<Modelled>,
    sent: Vec<Sent>,
}

fn name(session: usize) -> String {
    format!("s{session}")
}

impl World {
    fn new() -> Self {
        let mut config = config(Kind::OpenEnv);
        config.settings.max_sessions_per_worker = Some(LIMIT);
        let (rule, table) = (Rule::new(&config), SessionTable::new(&config));
        Self { rule, table, ready: [1, 1], dead: BTreeSet::new(), model: Vec::new(), sent: Vec::new() }
    }

    fn workers(&self) -> [WorkerId; 2] {
        [0, 1].map(|slot| WorkerId { slot, generation: self.ready[usize::from(slot)] })
    }

    fn load(&self, worker: WorkerId) -> usize {
        let counts = |it: &&Modelled| it.owner == worker && !it.gone && it.state != SessionState::Ended;
        self.model.iter().filter(counts).count()
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Open => self.begin(Role::Socket),
            Op::Create => self.begin(Role::Create),
            Op::Attach(which) => self.name(which, Role::Attach),
            Op::Call(which) => self.name(which, Role::Call),
            Op::Upgrade(which, takes) => self.upgrade(which, takes),
            Op::Tell(which) => self.tell(which),
            Op::Close(which, session, now) => self.close(which, session, now),
            Op::Finish(which) => self.take_back(which, false),
            Op::Withdraw(which) => self.take_back(which, true),
            Op::Exit(slot) => self.exit(slot),
        }
        self.compare();
    }

    fn named(&self, request: Role, session: Option<usize>) -> (Route, Named) {
        let (method, path) = match request {
            Role::Socket | Role::Attach => (Method::GET, "/ws"),
            _ => (Method::POST, "/mcp"),
        };
        let route = self.rule.route(&method, path);
        let route = if method == Method::GET { route.upgraded() } else { route };
        let query = session.map(|session| format!("session_id={}", name(session)));
        let body = match session {
            Some(session) => format!(r#"{{"params": {{"session_id": "{}"}}}}"#, name(session)),
            None => r#"{"method": "openenv/session/create"}"#.into(),
        };
        let body = self.rule.reads_body(route).then_some(body.as_bytes());
        let named = self.rule.name(route, &HeaderMap::new(), query.as_deref(), body, UNIX).unwrap();
        (route, named)
    }

    /// A request that asks for a session of its own.
    fn begin(&mut self, role: Role) {
        let (route, named) = self.named(role, None);
        let workers = self.workers();
        let room = workers.into_iter().filter(|worker| self.load(*worker) < LIMIT);
        let expected = room.min_by_key(|worker| (self.load(*worker), worker.slot));
        let table = &self.table;
        let mut choose = |by| {
            assert_eq!(by, By::Sessions);
            let fit = workers.into_iter().filter(|worker| table.has_room(*worker));
            fit.min_by_key(|worker| (table.load(*worker), worker.slot))
        };
        let found = table.dispatch(&named, route, 0, &mut choose).unwrap();
        let Dispatch::To(ticket) = found else {
            assert_eq!(expected, None);
            assert_eq!(table.refusal_if_full(workers.into_iter()).unwrap().code(), "capacity_reached");
            return;
        };
        assert_eq!(Some(ticket.worker), expected);
        let (owner, state) = (ticket.worker, SessionState::Claimed);
        let new = Modelled { owner, state, named: false, attached: 0, closing: false, gone: false };
        self.model.push(new);
        let session = Some(self.model.len() - 1);
        self.sent.push(Sent { ticket, role, session, upgraded: false });
    }

    /// A request that names a session.
    fn name(&mut self, which: usize, role: Role) {
        let Some(session) = which.checked_rem(self.model.len()) else { return };
        let (route, named) = self.named(role, Some(session));
        let workers = self.workers();
        let found = self.table.dispatch(&named, route, 0, &mut |by| {
            assert_eq!(by, By::InFlight);
            Some(workers[0])
        });
        let known = &self.model[session];
        let (ticket, session) = match found {
            Err(refusal) => {
                assert!(known.named && self.dead.contains(&known.owner));
                return assert_eq!(refusal.code(), "session_lost");
            }
            Ok(Dispatch::NoWorker) => panic!("there are always two"),
            // Nobody has heard its name.
            Ok(Dispatch::To(ticket)) if !known.named => {
                assert_eq!((ticket.worker, ticket.session()), (workers[0], None));
                (ticket, None)
            }
            Ok(Dispatch::To(ticket)) => {
                assert_eq!(ticket.worker, known.owner);
                assert!(!self.dead.contains(&known.owner));
                (ticket, Some(session))
            }
        };
        self.sent.push(Sent { ticket, role, session, upgraded: false });
    }

    fn upgrade(&mut self, which: usize, takes: bool) {
        let Some(which) = which.checked_rem(self.sent.len()) else { return };
        let sent = &mut self.sent[which];
        if sent.upgraded || !matches!(sent.role, Role::Socket | Role::Attach) {
            return;
        }
        let status = if takes { StatusCode::SWITCHING_PROTOCOLS } else { StatusCode::FORBIDDEN };
        let route = sent.ticket.route;
        let reply = self.rule.read_reply(route, status, &HeaderMap::new(), || UNIX);
        self.table.reply(&mut sent.ticket, &reply, 0);
        sent.upgraded = true;
        let Some(known) = sent.session.map(|session| &mut self.model[session]) else { return };
        if !takes || self.dead.contains(&known.owner) {
            return;
        }
        if sent.role == Role::Attach {
            known.attached += 1;
            sent.role = Role::Attached;
        } else if known.state == SessionState::Claimed {
            known.state = SessionState::Open;
        }
    }

    fn tell(&mut self, which: usize) {
        let Some(which) = which.checked_rem(self.sent.len()) else { return };
        let sent = &mut self.sent[which];
        let asks = sent.role == Role::Create || sent.role == Role::Socket && sent.upgraded;
        let Some(session) = sent.session.filter(|_| asks) else { return };
        self.table.said(&mut sent.ticket, &Said::Created(id(&name(session))), 0);
        let known = &mut self.model[session];
        if !known.gone && !known.named {
            (known.named, known.state) = (true, SessionState::Open);
        }
    }

    fn close(&mut self, which: usize, session: usize, now: bool) {
        let (Some(which), Some(session)) =
            (which.checked_rem(self.sent.len()), session.checked_rem(self.model.len()))
        else {
            return;
        };
        let closed = id(&name(session));
        let said = if now { Said::Closed(closed) } else { Said::Closing(closed) };
        let sent = &mut self.sent[which];
        self.table.said(&mut sent.ticket, &said, 0);
        let (worker, known) = (sent.ticket.worker, &mut self.model[session]);
        if !known.named || known.gone || known.owner != worker || self.dead.contains(&worker) {
            return;
        }
        known.closing |= !now;
        if now || known.attached == 0 {
            known.state = SessionState::Ended;
        }
    }

    fn take_back(&mut self, which: usize, unsent: bool) {
        let Some(which) = which.checked_rem(self.sent.len()) else { return };
        let known = self.sent[which].session.map(|session| &self.model[session]);
        // What was answered was sent.
        if unsent && (self.sent[which].upgraded || known.is_some_and(|it| it.state != SessionState::Claimed))
        {
            return;
        }
        let sent = self.sent.swap_remove(which);
        if unsent {
            self.table.withdraw(sent.ticket, 0);
        } else {
            self.table.finish(sent.ticket, 0);
        }
        let Some(known) = sent.session.map(|session| &mut self.model[session]) else { return };
        let is_over = match sent.role {
            Role::Socket | Role::Create if !known.named => {
                known.gone = true;
                false
            }
            Role::Socket => true,
            Role::Attached => {
                known.attached -= 1;
                known.attached == 0 && known.closing
            }
            Role::Create | Role::Attach | Role::Call => false,
        };
        if is_over && !known.gone {
            known.state = SessionState::Ended;
        }
    }

    fn exit(&mut self, slot: u16) {
        let worker = self.workers()[usize::from(slot)];
        self.table.owner_exited(worker, 0);
        self.dead.insert(worker);
        self.ready[usize::from(slot)] += 1;
        for known in self.model.iter_mut().filter(|it| it.owner == worker) {
            known.gone |= known.state != SessionState::Ended;
        }
    }

    fn compare(&self) {
        for worker in self.workers() {
            assert_eq!(self.table.load(worker), self.load(worker), "{worker}");
            assert!(self.table.load(worker) <= LIMIT, "{worker}");
        }
        for (number, known) in self.model.iter().enumerate().filter(|(_, it)| it.named) {
            let found = self.table.find(&id(&name(number)), 0).map(|found| (found.state, found.owner));
            let expected = (!known.gone).then_some((known.state, known.owner));
            assert_eq!(found, expected, "{number}");
            assert_eq!(self.table.losses.contains(&id(&name(number)), 0), known.gone, "{number}");
        }
    }

    /// Nothing is left of what was in flight.
    fn end(mut self) {
        while !self.sent.is_empty() {
            self.take_back(0, false);
            self.compare();
        }
        for session in self.table.list(usize::MAX, &Default::default(), 0) {
            assert_eq!(session.in_flight, 0, "{session:?}");
        }
        let left = self.table.sessions.len();
        let named = self.model.iter().filter(|it| it.named && !it.gone).count();
        assert_eq!((left, self.table.timers.len()), (named, named));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn table_and_model_agree_on_openenvs_sessions(ops in vec(op(), 1..120)) {
        let mut world = World::new();
        for op in ops {
            world.step(op);
        }
        world.end();
    }
}
