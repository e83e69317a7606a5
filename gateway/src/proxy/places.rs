//! The bound on client connections: each may need a connection to a worker, and both are open files.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nix::sys::resource::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Open files that are no connections: listening sockets, keepers, the log.
const RESERVE: u64 = 64;
/// With a tiny limit the gateway still serves somebody.
const FEWEST: u64 = 8;

/// Places for client connections, over all servers. Those who find none wait in the operating system's queue.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    all: usize,
    warned: AtomicBool,
}

/// A client connection's place; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Places {
    /// As many as this process may open files for: half of them, less some for other uses.
    pub fn for_open_files() -> Self {
        // A limit that cannot be read is no reason not to serve.
        let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
        Self::new(usize::try_from(limit.saturating_sub(RESERVE) / 2).unwrap_or(usize::MAX))
    }

    fn new(all: usize) -> Self {
        let all = all.clamp(FEWEST as usize, Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(all)), all, warned: AtomicBool::new(false) }
    }

    /// A place, as soon as one is free.
    pub(super) async fn take(&self, server: &str) -> Place {
        if self.free.available_permits() == 0 && !self.warned.swap(true, Ordering::Relaxed) {
            let connections = self.all;
            tracing::warn!(
                server,
                connections,
                "no more client connections: raise the limit of open files (ulimit -n)"
            );
        }
        loop {
            // Never closed, so this is one turn.
            if let Ok(permit) = self.free.clone().acquire_owned().await {
                return Place(permit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_is_free_again_when_its_connection_ends() {
        let places = Places::new(0);
        let mut taken = Vec::new();
        for _ in 0..FEWEST {
            taken.push(places.take("s").await);
        }
        let next = places.take("s");
        tokio::pin!(next);
        assert!(futures_poll(&mut next).is_none());
        taken.pop();
        assert!(futures_poll(&mut next).is_some());
    }

    fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut cx) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
