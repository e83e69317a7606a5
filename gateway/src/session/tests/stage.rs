//! A server on stage: requests by one-line descriptions, two slots, a clock of its own.

use std::collections::BTreeMap;

use http::{HeaderMap, Method, StatusCode};

use super::super::{By, Dispatch, Named, Rule, Said, SessionId, SessionTable, Ticket};
use super::{COOKIE, UNIX, headers, id, token, value};
use crate::{
    config::{Kind, ServerConfig},
    worker_id::WorkerId,
};

pub(super) struct Stage {
    pub(super) rule: Rule,
    pub(super) table: SessionTable,
    /// The generation that is ready in each slot; `None`: none is.
    pub(super) ready: Vec<Option<u32>>,
    pub(super) now: u64,
    tickets: BTreeMap<&'static str, Ticket>,
}

impl Stage {
    pub(super) fn new(config: &ServerConfig) -> Self {
        Self {
            rule: Rule::new(config),
            table: SessionTable::new(config),
            ready: vec![Some(1); config.num_workers.into()],
            now: 0,
            tickets: BTreeMap::new(),
        }
    }

    /// Sends `METHOD PATH [cookie=ID] [raw=VALUE] [body=ID] [token=ID] [sid=ID]` under a tag. Returns `slot.generation`, a
    /// refusal's code, or `wait`.
    pub(super) fn send(&mut self, tag: &'static str, request: &str) -> String {
        let mut words = request.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let mut route = self.rule.route(&method.parse::<Method>().unwrap(), path);
        let (mut request, mut body) = (HeaderMap::new(), "{}".to_owned());
        for word in words {
            let (what, text) = word.split_once('=').unwrap_or((word, ""));
            match what {
                "cookie" => {
                    request.extend(headers([("cookie", format!("{COOKIE}={}", value(text)).as_str())]))
                }
                "raw" => request.extend(headers([("cookie", format!("{COOKIE}={text}").as_str())])),
                "token" => {
                    request.extend(headers([("x-nemo-gym-session-token", token(text, None).as_str())]))
                }
                "sid" => request.extend(headers([(self.header(), text)])),
                "body" => {
                    let field = super::super::learned::body_field(self.rule.kind());
                    body = format!("{{\"{field}\": \"{text}\"}}");
                }
                "upgrade" => route = route.upgraded(),
                "create" => body = r#"{"method": "openenv/session/create"}"#.into(),
                "rpc" => {
                    body = format!(r#"{{"method": "tools/call", "params": {{"session_id": "{text}"}}}}"#)
                }
                other => panic!("{other}"),
            }
        }
        let body = self.rule.reads_body(route).then_some(body.as_bytes());
        let named = match self.rule.name(route, &request, query, body, UNIX) {
            Ok(named) => named,
            Err(refusal) => return refusal.code().into(),
        };
        let ready: Vec<_> = self.workers().collect();
        let table = &self.table;
        let mut choose = |by| {
            let fit = ready.iter().copied().filter(|worker| by == By::InFlight || table.has_room(*worker));
            fit.min_by_key(|worker| (table.load(*worker), worker.slot))
        };
        match self.table.dispatch(&named, route, self.now, &mut choose) {
            Ok(Dispatch::To(ticket)) => {
                let worker = ticket.worker.to_string();
                assert!(self.tickets.insert(tag, ticket).is_none(), "{tag} is in use");
                worker
            }
            Ok(Dispatch::NoWorker) => self.no_worker(&named),
            Err(refusal) => refusal.code().into(),
        }
    }

    fn no_worker(&self, named: &Named) -> String {
        let full = self.table.refusal_if_full(self.workers()).filter(|_| named.by() == By::Sessions);
        full.map_or("wait".into(), |refusal| refusal.code().into())
    }

    /// What an answer, or a WebSocket's message, says: `created=ID`, `closed=ID` or `closing=ID`.
    pub(super) fn said(&mut self, tag: &str, said: &str) {
        let said = match said.split_once('=').unwrap() {
            ("created", text) => Said::Created(id(text)),
            ("closed", text) => Said::Closed(id(text)),
            ("closing", text) => Said::Closing(id(text)),
            other => panic!("{other:?}"),
        };
        self.table.said(self.tickets.get_mut(tag).unwrap(), &said, self.now);
    }

    /// The session of a request, whatever its ID.
    pub(super) fn session_of(&self, tag: &str) -> SessionId {
        self.tickets[tag].session().unwrap().clone()
    }

    /// The header that names a session of the kind.
    fn header(&self) -> &'static str {
        if self.rule.kind() == Kind::Mcp { "mcp-session-id" } else { "x-session-id" }
    }

    fn workers(&self) -> impl Iterator<Item = WorkerId> {
        let ready = self.ready.iter().enumerate();
        ready
            .filter_map(|(slot, generation)| Some(WorkerId { slot: slot as u16, generation: (*generation)? }))
    }

    /// Answers a request: `STATUS [cookie=ID] [raw=VALUE] [says=WORD] [sid=ID]`. Returns what is done to the head.
    pub(super) fn answer(&mut self, tag: &str, reply: &str) -> String {
        let mut words = reply.split(' ');
        let status = StatusCode::from_bytes(words.next().unwrap().as_bytes()).unwrap();
        let mut head = HeaderMap::new();
        for word in words {
            let (what, text) = word.split_once('=').unwrap();
            match what {
                "cookie" => head
                    .extend(headers([("set-cookie", format!("{COOKIE}={}; path=/", value(text)).as_str())])),
                "raw" => head.extend(headers([("set-cookie", format!("{COOKIE}={text}; path=/").as_str())])),
                "sid" => head.extend(headers([(self.header(), text)])),
                "says" => head.extend(headers([("x-gym-session", text)])),
                other => panic!("{other}"),
            }
        }
        let ticket = self.tickets.get_mut(tag).unwrap();
        let reply = self.rule.read_reply(ticket.route, status, &head, || super::UNIX);
        let effects = self.table.reply(ticket, &reply, self.now);
        if effects.clashes {
            return "clash".into();
        }
        match (effects.add_cookie, effects.drop_cookie) {
            (None, false) => String::new(),
            (None, true) => "drop".into(),
            (Some(session), false) => format!("add {session}"),
            (Some(_), true) => panic!("both"),
        }
    }

    pub(super) fn over(&mut self, tag: &str) {
        self.table.episode_over(self.tickets.get_mut(tag).unwrap());
    }

    pub(super) fn end(&mut self, tag: &str) {
        self.table.finish(self.tickets.remove(tag).unwrap(), self.now);
    }

    pub(super) fn lose(&mut self, tag: &str) {
        self.table.lose_session(self.tickets.remove(tag).unwrap(), self.now);
    }

    pub(super) fn withdraw(&mut self, tag: &str) -> bool {
        self.table.withdraw(self.tickets.remove(tag).unwrap(), self.now)
    }

    /// Sends, answers and ends at once; returns worker and effects.
    pub(super) fn play(&mut self, request: &str, reply: &str) -> String {
        let to = self.send("played", request);
        if !self.tickets.contains_key("played") {
            return to;
        }
        let effects = self.answer("played", reply);
        self.end("played");
        if effects.is_empty() { to } else { format!("{to} {effects}") }
    }

    /// The slot's worker exits; the next generation is ready at once.
    pub(super) fn exit(&mut self, slot: u16) {
        let generation = self.ready[slot as usize].unwrap();
        self.table.owner_exited(WorkerId { slot, generation }, self.now);
        self.ready[slot as usize] = Some(generation + 1);
    }

    pub(super) fn after_exit(&self, tag: &str) -> &'static str {
        self.table.refusal_after_exit(&self.tickets[tag]).map_or("worker_error", |refusal| refusal.code())
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        self.now += seconds * 1_000;
        self.table.expire(self.now);
    }

    /// `STATE OWNER [fenced] [in flight N]` of a session by any of its IDs, `lost`, or `none`.
    pub(super) fn state(&self, session: &str) -> String {
        let Some(found) = self.table.find(&id(session), self.now) else {
            let lost = self.table.losses.contains(&id(session), self.now);
            return if lost { "lost".into() } else { "none".into() };
        };
        let fenced = if found.fenced { " fenced" } else { "" };
        let in_flight =
            if found.in_flight > 0 { format!(" in flight {}", found.in_flight) } else { String::new() };
        format!("{} {}{fenced}{in_flight}", found.state.as_str(), found.owner)
    }
}
