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
use tokio::{sync::Semaphore, task::JoinSet};

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

/// One core's connections to one worker.
#[derive(Debug)]
struct Link {
    idle: Vec<Idle>,
    /// The connections' tasks: dropped with the link, which fails their requests in flight at once.
    tasks: JoinSet<()>,
    /// The turn to wait for room in the worker's accept queue.
    queue: Arc<Semaphore>,
}

/// One core's connections to workers; of the idle ones the newest is taken first.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool(Rc<RefCell<HashMap<Key, Link, foldhash::fast::RandomState>>>);

impl Pool {
    /// An idle connection that is ready at once, or none.
    pub(super) fn take(
        &self,
        server: usize,
        worker: WorkerId,
        idle_limit: Duration,
        now: Instant,
    ) -> Option<Connection> {
        let mut all = self.0.borrow_mut();
        let Link { idle, .. } = all.get_mut(&(server, worker))?;
        // Where the newest is not free yet (hyper is still putting its last reply away), an older one may be.
        for place in (0..idle.len()).rev() {
            if now.duration_since(idle[place].since) >= idle_limit {
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
        let key = (server, worker.id);
        let queue = self.link(key, worker, |link| link.queue.clone());
        let io = tokio::select! {
            biased;
            () = worker.exited().cancelled() => return Err(io::ErrorKind::ConnectionRefused.into()),
            io = WorkerIo::connect(&worker.address, &queue) => io?,
        };
        let written = io.written();
        let (sender, connection) =
            http1::Builder::new().handshake(TokioIo::new(io)).await.map_err(io::Error::other)?;
        if worker.exited().is_cancelled() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        self.link(key, worker, |link| {
            while link.tasks.try_join_next().is_some() {}
            link.tasks.spawn_local(async move {
                // A broken connection is the request's to report, which sees the same error.
                let _ = connection.with_upgrades().await;
            });
        });
        Ok(Connection { sender, written, taken_at: 0 })
    }

    /// The link to a worker, made when it is needed and gone when the worker has exited.
    fn link<T>(&self, key: Key, worker: &Arc<Worker>, with: impl FnOnce(&mut Link) -> T) -> T {
        let mut all = self.0.borrow_mut();
        with(all.entry(key).or_insert_with(|| {
            tokio::task::spawn_local(forget(Rc::downgrade(&self.0), key, worker.clone()));
            Link { idle: Vec::new(), tasks: JoinSet::new(), queue: Arc::new(Semaphore::new(1)) }
        }))
    }

    /// Takes a connection back at the end of a reply's body.
    pub(super) fn put(&self, server: usize, worker: WorkerId, connection: Connection, now: Instant) {
        if connection.sender.is_closed() {
            return;
        }
        if let Some(link) = self.0.borrow_mut().get_mut(&(server, worker)) {
            link.idle.push(Idle { connection, since: now });
        }
    }

    /// Closes what has been idle for `limit(server)`, and forgets what the workers have closed.
    pub(super) fn prune(&self, limit: impl Fn(usize) -> Duration) {
        let now = Instant::now();
        for ((server, _), link) in self.0.borrow_mut().iter_mut() {
            let limit = limit(*server);
            link.idle
                .retain(|idle| now.duration_since(idle.since) < limit && !idle.connection.sender.is_closed());
            while link.tasks.try_join_next().is_some() {}
        }
    }
}

/// One watch over all of a core's connections to a worker: a signal for each would be looked at with every request.
async fn forget(
    pool: Weak<RefCell<HashMap<Key, Link, foldhash::fast::RandomState>>>,
    key: Key,
    worker: Arc<Worker>,
) {
    worker.exited().cancelled().await;
    if let Some(pool) = pool.upgrade() {
        let gone = pool.borrow_mut().remove(&key);
        drop(gone);
    }
}
