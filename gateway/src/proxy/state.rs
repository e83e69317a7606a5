//! What all cores share: the servers, the bounds, the stop.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{budget::Budget, clock::Clock, observe::Observer};
use crate::{
    config::ServerConfig,
    session::{Rule, SessionTable},
    workers::WorkerSet,
};

/// One server: its rule, its sessions, its workers.
#[derive(Debug)]
pub struct ServerState {
    /// Its place among the gateway's servers.
    pub index: usize,
    /// Its configuration.
    pub config: Arc<ServerConfig>,
    /// Its protocol.
    pub rule: Rule,
    /// Its sessions and their owners.
    pub sessions: SessionTable,
    /// Its ready workers.
    pub workers: Arc<WorkerSet>,
    /// Requests that wait for a worker.
    pub waiting: Count,
    /// Client connections.
    pub connections: Count,
}

impl ServerState {
    /// A server without sessions yet.
    pub fn new(index: usize, config: Arc<ServerConfig>, workers: Arc<WorkerSet>) -> Self {
        Self {
            index,
            rule: Rule::new(&config),
            sessions: SessionTable::new(&config),
            config,
            workers,
            waiting: Count::default(),
            connections: Count::default(),
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
