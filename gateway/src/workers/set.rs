//! The ready workers, as the proxy sees them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Address;
use crate::worker_id::WorkerId;

/// One ready worker process, as the proxy sees it.
#[derive(Debug)]
pub struct Worker {
    /// Its slot and generation.
    pub id: WorkerId,
    /// Where it listens.
    pub address: Address,
    exited: CancellationToken,
    in_flight: AtomicUsize,
}

impl Worker {
    /// A worker with nothing in flight.
    pub fn new(id: WorkerId, address: Address) -> Self {
        Self { id, address, exited: CancellationToken::new(), in_flight: AtomicUsize::new(0) }
    }

    /// Cancelled when the process has exited, after `WorkerEvents::exited` returned.
    pub fn exited(&self) -> &CancellationToken {
        &self.exited
    }

    /// Requests that are with it now.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Counts a request in, for as long as the guard lives.
    pub fn enter(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }
}

/// A request that is with a worker; dropping it counts it out.
#[derive(Debug)]
pub struct InFlight(Arc<Worker>);

impl InFlight {
    /// The worker that it is with.
    pub fn worker(&self) -> &Arc<Worker> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A server's ready workers: read on every request, written when one comes or goes.
#[derive(Debug)]
pub struct WorkerSet {
    workers: ArcSwap<Vec<Arc<Worker>>>,
    changes: watch::Sender<u64>,
}

impl Default for WorkerSet {
    fn default() -> Self {
        Self { workers: ArcSwap::default(), changes: watch::Sender::new(0) }
    }
}

impl WorkerSet {
    /// The ready workers, by slot.
    pub fn ready(&self) -> Arc<Vec<Arc<Worker>>> {
        self.workers.load_full()
    }

    /// This worker, if it is ready.
    pub fn get(&self, id: WorkerId) -> Option<Arc<Worker>> {
        self.workers.load().iter().find(|worker| worker.id == id).cloned()
    }

    /// Changes whenever a worker becomes ready or exits, when all that goes with it is done.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Adds a worker; tell with [`WorkerSet::changed`].
    pub(crate) fn add(&self, worker: &Arc<Worker>) {
        self.workers.rcu(|workers| {
            let mut workers = Vec::clone(workers);
            workers.push(Arc::clone(worker));
            workers.sort_by_key(|worker| worker.id);
            workers
        });
    }

    /// Takes a worker out; tell with [`WorkerSet::changed`].
    pub(crate) fn remove(&self, id: WorkerId) {
        self.workers
            .rcu(|workers| workers.iter().filter(|worker| worker.id != id).cloned().collect::<Vec<_>>());
    }

    /// Wakes those who wait for a change.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(slot: u16, generation: u32) -> Arc<Worker> {
        Arc::new(Worker::new(WorkerId { slot, generation }, Address::Unix("/s".into())))
    }

    #[test]
    fn workers_come_and_go_in_the_order_of_their_slots() {
        let set = WorkerSet::default();
        for one in [worker(2, 1), worker(0, 4), worker(1, 1)] {
            set.add(&one);
        }
        let slots = |set: &WorkerSet| set.ready().iter().map(|worker| worker.id.slot).collect::<Vec<_>>();
        assert_eq!(slots(&set), [0, 1, 2]);
        assert!(set.get(WorkerId { slot: 0, generation: 3 }).is_none());
        set.remove(WorkerId { slot: 0, generation: 4 });
        assert_eq!(slots(&set), [1, 2]);
        assert!(set.get(WorkerId { slot: 0, generation: 4 }).is_none());
        assert!(set.get(WorkerId { slot: 1, generation: 1 }).is_some());
    }

    #[test]
    fn requests_in_flight_are_counted_by_guards() {
        let worker = worker(0, 1);
        let (one, two) = (worker.enter(), worker.enter());
        assert_eq!(worker.in_flight(), 2);
        drop(one);
        assert_eq!(two.worker().in_flight(), 1);
        drop(two);
        assert_eq!(worker.in_flight(), 0);
    }
}
