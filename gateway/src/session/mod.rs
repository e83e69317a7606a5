//! The rule: which session a request names, who owns it, and what a request or a reply changes.
//!
//! Pure: no sockets, no processes, no runtime. Time comes in as an argument.

use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};

use crate::{config::ServerConfig, worker_id::WorkerId};

/// A session's ID: 1 to 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(Arc<str>);

/// Milliseconds on the gateway's monotonic clock.
pub type Millis = u64;

/// What kind of route a request is for: the metrics' label, and what the rule goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteClass { Seed, Reset, Step, Verify, CloseSession, Close, Mcp, SessionLess, Other }

/// A request's route, read once from method and path.
#[derive(Clone, Copy, Debug)]
pub struct Route { pub class: RouteClass }

/// A refusal that the client sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal { SessionMismatch { cookie: SessionId, body: SessionId }, SessionClosed(SessionId), SessionLost(SessionId), InvalidSessionId(String) }

/// How a worker is to be chosen for a request without an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By { Sessions, InFlight }

/// The session that a request names, if any, and where its ID came from.
#[derive(Clone, Debug)]
pub struct Named { pub session: Option<SessionId> }

/// What a reply's head says about its session.
#[derive(Clone, Debug)]
pub struct Reply { pub status: StatusCode, pub cookie: Option<SessionId> }

/// What is to be done to a reply's head before it goes to the client.
#[derive(Clone, Debug, Default)]
pub struct HeadEffects { pub add_cookie: Option<SessionId>, pub drop_cookie: bool }

/// A dispatched request's account with the table; to be given back by `finish` or `withdraw`, exactly once.
#[derive(Debug)]
pub struct Ticket { pub worker: WorkerId }

/// Where a request goes.
#[derive(Debug)]
pub enum Dispatch { To(Ticket), NoWorker }

/// A server's protocol: reads requests and replies.
pub struct Rule;

impl Rule {
    pub fn new(_config: &ServerConfig) -> Self { unimplemented!() }
    /// Takes the session cookie's name (and whether its secret is known) from a readiness probe's reply.
    pub fn learn(&self, _probe: &HeaderMap, _unix: u64) { unimplemented!() }
    /// Looks past `/ng-rollout/...`.
    pub fn route(&self, _method: &Method, _path: &str) -> Route { unimplemented!() }
    /// Whether `name` needs the body.
    pub fn reads_body(&self, _route: Route) -> bool { unimplemented!() }
    /// Whether the reply's body is to be fed to a `StepWatch`.
    pub fn watches_reply(&self, _route: Route) -> bool { unimplemented!() }
    pub fn name(&self, _route: Route, _headers: &HeaderMap, _query: Option<&str>, _body: Option<&[u8]>, _unix: u64) -> Result<Named, Refusal> { unimplemented!() }
    /// Puts the minted cookie, if any, in place of the request's own.
    pub fn prepare(&self, _named: &Named, _headers: &mut HeaderMap, _unix: u64) { unimplemented!() }
    pub fn read_reply(&self, _route: Route, _status: StatusCode, _headers: &HeaderMap) -> Reply { unimplemented!() }
    /// Carries out the effects; takes `X-Gym-Session` out.
    pub fn apply(&self, _effects: &HeadEffects, _headers: &mut HeaderMap, _unix: u64) { unimplemented!() }
}

/// Finds `"terminated": true` or `"truncated": true` at the top level of a JSON reply as it passes.
#[derive(Debug, Default)]
pub struct StepWatch;

impl StepWatch {
    pub fn feed(&mut self, _bytes: &[u8]) { unimplemented!() }
    pub fn is_over(&self) -> bool { unimplemented!() }
}

/// A server's sessions and their owners.
pub struct SessionTable;

impl SessionTable {
    pub fn new(_config: &ServerConfig) -> Self { unimplemented!() }
    /// Finds or chooses the owner and claims the session provisionally.
    pub fn dispatch(&self, _named: &Named, _route: Route, _now: Millis, _choose: &mut dyn FnMut(By) -> Option<WorkerId>) -> Result<Dispatch, Refusal> { unimplemented!() }
    /// A reply's head came, to be settled before it goes to the client.
    pub fn reply(&self, _ticket: &mut Ticket, _reply: &Reply, _now: Millis) -> HeadEffects { unimplemented!() }
    /// A watched reply said that the episode is over; to be called before its last byte goes out.
    pub fn episode_over(&self, _ticket: &mut Ticket) { unimplemented!() }
    /// The request ended, with a reply or without.
    pub fn finish(&self, _ticket: Ticket, _now: Millis) { unimplemented!() }
    /// No byte reached the worker. Returns whether the session (if any) is free to go to another worker.
    pub fn withdraw(&self, _ticket: Ticket, _now: Millis) -> bool { unimplemented!() }
    /// The worker's process exited. What the request gets whose worker is gone: `refusal_after_exit`.
    pub fn owner_exited(&self, _worker: WorkerId, _now: Millis) { unimplemented!() }
    /// 410 for a request whose ticket's session is lost; `None` if it owned no session (502 then).
    pub fn refusal_after_exit(&self, _ticket: &Ticket) -> Option<Refusal> { unimplemented!() }
    /// Forgets and expires what is due.
    pub fn expire(&self, _now: Millis) { unimplemented!() }
    /// Claimed and open sessions of one worker.
    pub fn load(&self, _worker: WorkerId) -> usize { unimplemented!() }
}
