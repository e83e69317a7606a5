//! What all cores share: the servers, the bounds, the stop.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use arc_swap::{ArcSwap, Guard};
use http::{HeaderMap, header::SET_COOKIE};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{budget::Budget, clock::Clock, observe::Observer, places::Places};
use crate::{
    config::{Kind, ServerConfig, ServerSettings},
    session::{Rule, SessionTable},
    workers::WorkerSet,
};

/// One server: its rule, its sessions, its workers.
#[derive(Debug)]
pub struct ServerState {
    /// Its number among all servers that this gateway ever had.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Its front address, as the config has it.
    pub address: String,
    settings: ArcSwap<ServerSettings>,
    /// Cancelled when the server is removed: it waits for no worker any more.
    pub removed: CancellationToken,
    /// Cancelled when its front is closed.
    pub closed: CancellationToken,
    /// Its protocol.
    pub rule: Rule,
    /// Its sessions and their owners.
    pub sessions: SessionTable,
    /// Its workers that take requests.
    pub workers: Arc<WorkerSet>,
    /// Requests that wait for a worker.
    pub waiting: Count,
    /// Client connections.
    pub connections: Count,
    warned_of_cookie: AtomicBool,
}

impl ServerState {
    /// A server without sessions yet.
    pub fn new(index: usize, config: &ServerConfig) -> Self {
        Self {
            index,
            name: config.name.clone(),
            address: config.listen.written.clone(),
            settings: ArcSwap::from_pointee(config.settings.clone()),
            removed: CancellationToken::new(),
            closed: CancellationToken::new(),
            rule: Rule::new(config),
            sessions: SessionTable::new(config),
            workers: Arc::default(),
            waiting: Count::default(),
            connections: Count::default(),
            warned_of_cookie: AtomicBool::new(false),
        }
    }

    /// Its settings, as they are now.
    pub fn settings(&self) -> Guard<Arc<ServerSettings>> {
        self.settings.load()
    }

    /// Goes by these settings from now on. What the rule takes from a config at the start stays as it was. Returns what
    /// [`SessionTable::set_limits`] does.
    #[must_use]
    pub fn set(&self, settings: ServerSettings) -> bool {
        let is_shorter = self.sessions.set_limits(&settings);
        self.settings.store(Arc::new(settings));
        is_shorter
    }

    /// Says once that a worker of a generic server sets cookies and none of them names a session: then every request is
    /// balanced, and a worker's state is lost. `routes_sessions_to_owner: false` says that this is meant.
    pub(super) fn check_cookie(&self, headers: &HeaderMap, names_session: bool) {
        let settings = self.settings();
        let is_meant = self.rule.kind() != Kind::Generic || !settings.routes_sessions_to_owner;
        if is_meant || names_session || !headers.contains_key(SET_COOKIE) {
            return;
        }
        if self.warned_of_cookie.swap(true, Ordering::Relaxed) {
            return;
        }
        let server = &self.name;
        match &settings.session_cookie {
            Some(cookie) => tracing::warn!(
                server,
                cookie,
                "a worker sets a cookie, but none that names a session: its name is not this one, or its value is signed \
                 JSON without `session_id`. Requests are balanced without regard to sessions; see session_cookie (run: --cookie)"
            ),
            None => tracing::warn!(
                server,
                "a worker sets a cookie, and no cookie is known to name sessions: requests are balanced without regard to \
                 them. If it keeps sessions, name their cookie with session_cookie (run: --cookie), or say what the server is \
                 with describe: true or its kind (run: --describe, --kind); if not, routes_sessions_to_owner: false ends \
                 this warning"
            ),
        }
    }
}

/// What is shared by all requests of all servers.
#[derive(Debug)]
pub struct Shared {
    /// The clocks.
    pub clock: Clock,
    /// The bound on buffered bodies.
    pub budget: Arc<Budget>,
    /// Metrics and the access log.
    pub observer: Observer,
    /// The stop path.
    pub stop: Stop,
    /// The bound on client connections.
    pub places: Places,
    /// The servers whose front is open, in the order of the config.
    pub servers: ArcSwap<Vec<Arc<ServerState>>>,
}

impl Shared {
    /// The server of this number, if its front is open.
    pub fn server(&self, index: usize) -> Option<Arc<ServerState>> {
        self.servers.load().iter().find(|server| server.index == index).cloned()
    }
}

/// The gateway's own stop: begun once, done when the last connection is.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Cancelled when the stop begins: listeners close, connections end after their request in flight.
    pub begun: CancellationToken,
    /// Cancelled when waiting is over: what is still in flight is cut.
    pub cut: CancellationToken,
    /// The client connections and tunnels that are not done yet.
    pub connections: TaskTracker,
    /// The cores that have not ended yet.
    pub cores: TaskTracker,
}

/// Counts what is there now, by guards.
#[derive(Clone, Debug, Default)]
pub struct Count(Arc<AtomicUsize>);

impl Count {
    /// How many guards are alive.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// One more, until the guard is dropped.
    pub fn enter(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.0.clone())
    }
}

/// One of what a [`Count`] counts.
#[derive(Debug)]
pub struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
