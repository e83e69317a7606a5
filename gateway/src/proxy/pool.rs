//! One core's connections to workers.

use std::{
    cell::RefCell,
    collections::HashMap,
    io,
    rc::{Rc, Weak},
    sync::Arc,
    time::{Duration, Instant},
};

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;

use super::{
    body::SentBody,
    worker_io::{WorkerIo, Written},
};
use crate::{worker_id::WorkerId, workers::Worker};

/// A worker among all servers: its server's place in the gateway, and its ID there.
type Key = (usize, WorkerId);

/// A connection to a worker, taken for one request.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<SentBody>,
    written: Written,
    /// `written` when the connection was taken.
    taken_at: u64,
}

impl Connection {
    pub(super) fn written(&self) -> Written {
        self.written.clone()
    }

    /// Whether the worker may have seen something of the request.
    pub(super) fn has_written(&self) -> bool {
        self.written.bytes() != self.taken_at
    }
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

/// One core's idle connections; the newest is taken first.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool(Rc<RefCell<HashMap<Key, Vec<Idle>, foldhash::fast::RandomState>>>);

impl Pool {
    /// An idle connection that is ready at once, or none.
    pub(super) fn take(&self, server: usize, worker: WorkerId, idle_limit: Duration) -> Option<Connection> {
        let mut all = self.0.borrow_mut();
        let idle = all.get_mut(&(server, worker))?;
        // Where the newest is not free yet (hyper is still putting its last reply away), an older one may be.
        for place in (0..idle.len()).rev() {
            if idle[place].since.elapsed() >= idle_limit {
                idle.drain(..=place); // those below are older still
                return None;
            }
            if idle[place].connection.sender.is_ready() {
                let mut connection = idle.remove(place).connection;
                connection.taken_at = connection.written.bytes();
                return Some(connection);
            }
            if idle[place].connection.sender.is_closed() {
                idle.remove(place);
            }
        }
        None
    }

    /// A new connection.
    pub(super) async fn connect(&self, server: usize, worker: &Arc<Worker>) -> io::Result<Connection> {
        let io = tokio::select! {
            biased;
            () = worker.exited().cancelled() => return Err(io::ErrorKind::ConnectionRefused.into()),
            io = WorkerIo::connect(&worker.address) => io?,
        };
        let written = io.written();
        let (sender, connection) =
            http1::Builder::new().handshake(TokioIo::new(io)).await.map_err(io::Error::other)?;
        // A child of its own: a token that all connections share would be a lock that all cores share.
        let (pool, exited, key) =
            (Rc::downgrade(&self.0), worker.exited().child_token(), (server, worker.id));
        tokio::task::spawn_local(async move {
            let connection = connection.with_upgrades();
            tokio::select! {
                biased;
                // Dropping the connection fails its request in flight, at once.
                () = exited.cancelled() => Self::forget(&pool, key),
                // A broken connection is the request's to report, which sees the same error.
                _ = connection => {}
            }
        });
        Ok(Connection { sender, written, taken_at: 0 })
    }

    /// Takes a connection back at the end of a reply's body.
    pub(super) fn put(&self, server: usize, worker: WorkerId, connection: Connection) {
        if !connection.sender.is_closed() {
            let idle = Idle { connection, since: Instant::now() };
            self.0.borrow_mut().entry((server, worker)).or_default().push(idle);
        }
    }

    /// Closes what has been idle for `limit(server)`, and forgets what the workers have closed.
    pub(super) fn prune(&self, limit: impl Fn(usize) -> Duration) {
        self.0.borrow_mut().retain(|(server, _), idle| {
            let limit = limit(*server);
            idle.retain(|idle| idle.since.elapsed() < limit && !idle.connection.sender.is_closed());
            !idle.is_empty()
        });
    }

    fn forget(pool: &Weak<RefCell<HashMap<Key, Vec<Idle>, foldhash::fast::RandomState>>>, key: Key) {
        if let Some(pool) = pool.upgrade() {
            pool.borrow_mut().remove(&key);
        }
    }
}
