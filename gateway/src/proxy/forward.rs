//! One try after another to get a request to its worker, until a byte was written.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use http::Response;
use hyper::body::Incoming;

use super::{
    body::RequestBody,
    headers::Head,
    pool::{Connection, Pool},
    state::ServerState,
};
use crate::workers::Worker;

/// How long a broken connection waits for the news of its worker's exit: the kernel closes a dead process'
/// sockets before it can be waited for.
const EXIT_NEWS: Duration = Duration::from_millis(100);

/// Why a request has no reply.
#[derive(Debug)]
pub(super) enum Failure {
    /// The worker saw nothing of it.
    Unreached(io::Error),
    /// The worker may have seen it.
    Broken(String),
    /// The client's body broke off.
    ClientBody,
    /// No head within `worker_timeout_seconds`.
    TimedOut(Duration),
}

/// Sends a request over an idle connection or a new one. It is sent again, to the same worker, only while no
/// byte of it was written.
pub(super) async fn send(
    pool: &Pool,
    server: &ServerState,
    worker: &Arc<Worker>,
    head: &Head,
    body: &RequestBody,
    mut now: Instant,
) -> Result<(Response<Incoming>, Connection), Failure> {
    let (idle_timeout, worker_timeout) = {
        let settings = server.settings();
        (settings.worker_idle_timeout, settings.worker_timeout)
    };
    loop {
        let idle = pool.take(server.index, worker.id, idle_timeout, now);
        let is_new = idle.is_none();
        let mut connection = match idle {
            Some(connection) => connection,
            None => pool.connect(server.index, worker).await.map_err(Failure::Unreached)?,
        };
        let request = head.request(body.to_send(connection.written()));
        let reply = connection.sender.send_request(request);
        let reply = match worker_timeout {
            None => reply.await,
            Some(limit) => tokio::time::timeout(limit, reply).await.map_err(|_| Failure::TimedOut(limit))?,
        };
        match reply {
            Ok(reply) => return Ok((reply, connection)),
            Err(_) if body.is_broken() => return Err(Failure::ClientBody),
            Err(error) if connection.has_written() => return Err(Failure::Broken(describe(&error))),
            Err(error) => {
                body.rewind();
                now = Instant::now();
                if is_new {
                    return Err(Failure::Unreached(io::Error::other(error)));
                }
            }
        }
    }
}

/// Waits a moment for the news that the worker has exited.
pub(super) async fn has_exited(worker: &Worker) -> bool {
    tokio::time::timeout(EXIT_NEWS, worker.exited().cancelled()).await.is_ok()
}

/// hyper's error and its causes in one line.
fn describe(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
