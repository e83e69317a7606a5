//! The ready workers, as the proxy sees them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Address, Turn,
    room::{Line, Room},
};
use crate::{config::WorkerLimits, worker_id::WorkerId};

/// One worker process that takes requests, as the proxy sees it.
#[derive(Debug)]
pub struct Worker {
    /// Its slot and generation.
    pub id: WorkerId,
    /// Where it listens.
    pub address: Address,
    /// Its process ID, where it has one of its own.
    pid: Option<i32>,
    ready_since: Instant,
    exited: CancellationToken,
    in_flight: AtomicUsize,
    /// Requests whose reply has begun.
    answered: AtomicU64,
    /// What all of the server's workers may have.
    room: Arc<Room>,
    /// Requests that wait for this one.
    line: Arc<Line>,
    /// It keeps its sessions, and is to get no new ones.
    drains: AtomicBool,
    /// Nobody may enter. Set before `in_flight` is read for the last time, read after it was raised: whoever is not seen
    /// there sees this.
    closed: AtomicBool,
}

impl Worker {
    /// A worker with nothing in flight.
    pub fn new(id: WorkerId, address: Address) -> Self {
        Self {
            id,
            address,
            pid: None,
            ready_since: Instant::now(),
            exited: CancellationToken::new(),
            in_flight: AtomicUsize::new(0),
            answered: AtomicU64::new(0),
            room: Arc::default(),
            line: Arc::default(),
            drains: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// The same, as this process.
    pub(crate) fn with_pid(self, pid: Option<i32>) -> Self {
        Self { pid, ..self }
    }

    /// The same, as one of the workers of `set`.
    pub(crate) fn in_set(self, set: &WorkerSet) -> Self {
        Self { room: Arc::clone(&set.room), ..self }
    }

    /// Its process ID.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// For how long it has been ready.
    pub(crate) fn ready_for(&self) -> Duration {
        self.ready_since.elapsed()
    }

    /// Requests that it has answered: whose reply has begun.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Notes that a reply of its has begun.
    pub fn note_answer(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Cancelled when the process has exited, after `WorkerEvents::exited` returned; or when it is given up at the end of
    /// its drain, after `WorkerEvents::retired` returned.
    pub fn exited(&self) -> &CancellationToken {
        &self.exited
    }

    /// Requests that are with it now.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// Requests that wait for room at it.
    pub fn queued(&self) -> usize {
        self.line.len()
    }

    /// Whether it may have one more request, and nobody waits for that.
    pub fn has_room(&self) -> bool {
        let most = self.room.max_in_flight();
        most == usize::MAX || (self.in_flight() < most && self.queued() == 0)
    }

    /// Counts a request in, if there is room.
    pub fn enter_if_room(self: &Arc<Self>) -> Entry {
        if self.queued() > 0 || !self.take_room() {
            return Entry::Full;
        }
        let entered = InFlight(Arc::clone(self));
        if self.is_closed() { Entry::Closed } else { Entry::Entered(entered) }
    }

    /// Joins those who wait for room at it; `None`: `max_queued_per_worker` do.
    pub fn queue(self: &Arc<Self>) -> Option<Turn> {
        let turn = self.line.join(self.room.max_queued())?;
        // There may be some since the caller looked.
        self.hand_on();
        Some(turn)
    }

    /// Counts one in, up to the limit.
    fn take_room(&self) -> bool {
        let most = self.room.max_in_flight();
        if most == usize::MAX {
            self.in_flight.fetch_add(1, Ordering::SeqCst);
            return true;
        }
        let more = |now: usize| (now < most).then_some(now + 1);
        self.in_flight.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Gives what room there is to those who wait.
    fn hand_on(self: &Arc<Self>) {
        let own = || self.line.next(|| self.take_room());
        // A worker that leaves serves those alone who need it.
        let is_for_all = || !self.is_draining() && !self.is_closed() && !self.exited.is_cancelled();
        let common = || is_for_all().then(|| self.room.line.next(|| self.take_room())).flatten();
        while let Some(turn) = own().or_else(common) {
            // Whoever has left meanwhile gives it back here, and it goes to the next one.
            let _ = turn.send(InFlight(Arc::clone(self)));
        }
    }

    /// Counts a request in whatever the room, for as long as the guard lives; `None` if the worker's drain is about to be
    /// over. Then the [`WorkerSet`] changes soon: it is gone, or can be entered again.
    pub fn enter(self: &Arc<Self>) -> Option<InFlight> {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        // Counts itself out again where it may not stay.
        let entered = InFlight(Arc::clone(self));
        (!self.is_closed()).then_some(entered)
    }

    /// Whether it keeps the sessions that it has, and is to get no new ones.
    pub fn is_draining(&self) -> bool {
        self.drains.load(Ordering::Relaxed)
    }

    /// Whether nobody may [`Worker::enter`] now.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Begins the drain.
    pub(crate) fn drain(&self) {
        self.drains.store(true, Ordering::Relaxed);
    }

    /// Closes it for good if nothing is in flight and `is_unused` says that no session needs it. `None`: it is in use, as
    /// was plain to see; `Some(false)`: a request came meanwhile, and one that could not enter may wait for a change.
    pub(crate) fn close_if(&self, is_unused: impl Fn() -> bool) -> Option<bool> {
        // In this order: what a request leaves behind in the table is there before it is counted out.
        let is_idle = || self.in_flight() == 0 && is_unused();
        if !is_idle() {
            return None;
        }
        self.close();
        let idle = is_idle();
        if !idle {
            self.closed.store(false, Ordering::SeqCst);
        }
        Some(idle)
    }

    /// Closes it whatever it is used for.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

/// What became of a request that wanted to enter.
#[derive(Debug)]
pub enum Entry {
    /// It is in.
    Entered(InFlight),
    /// There is no room: [`Worker::queue`].
    Full,
    /// As [`Worker::enter`] without a guard.
    Closed,
}

/// A request that is with a worker; dropping it counts it out, and lets the next one in.
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
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
        if self.0.line.len() > 0 || self.0.room.line.len() > 0 {
            self.0.hand_on();
        }
    }
}

/// A server's workers that take requests, those that drain among them: read on every request, written when one comes or goes.
#[derive(Debug)]
pub struct WorkerSet {
    workers: ArcSwap<Vec<Arc<Worker>>>,
    changes: watch::Sender<u64>,
    room: Arc<Room>,
}

impl Default for WorkerSet {
    fn default() -> Self {
        Self { workers: ArcSwap::default(), changes: watch::Sender::new(0), room: Arc::default() }
    }
}

impl WorkerSet {
    /// The workers, by slot and generation.
    pub fn ready(&self) -> Arc<Vec<Arc<Worker>>> {
        self.workers.load_full()
    }

    /// This worker, if it takes requests.
    pub fn get(&self, id: WorkerId) -> Option<Arc<Worker>> {
        self.workers.load().iter().find(|worker| worker.id == id).cloned()
    }

    /// Changes whenever a worker becomes ready or exits, when all that goes with it is done.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Joins those who wait for whichever worker has room first; `None`: `max_queued_per_worker` for each worker do.
    pub fn queue(&self) -> Option<Turn> {
        let workers = self.workers.load();
        let turn = self.room.line.join(self.room.max_queued().saturating_mul(workers.len()))?;
        workers.iter().for_each(|worker| worker.hand_on());
        Some(turn)
    }

    /// Requests that wait for whichever worker has room first.
    pub fn queued(&self) -> usize {
        self.room.line.len()
    }

    /// Goes by these limits from now on.
    pub(crate) fn set_limits(&self, limits: &WorkerLimits) {
        self.room.set(limits);
        self.workers.load().iter().for_each(|worker| worker.hand_on());
    }

    /// Adds a worker; tell with [`WorkerSet::changed`].
    pub(crate) fn add(&self, worker: &Arc<Worker>) {
        self.workers.rcu(|workers| {
            let mut workers = Vec::clone(workers);
            workers.push(Arc::clone(worker));
            workers.sort_by_key(|worker| worker.id);
            workers
        });
        worker.hand_on();
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
        let (one, two) = (worker.enter().unwrap(), worker.enter().unwrap());
        assert_eq!(worker.in_flight(), 2);
        drop(one);
        assert_eq!(two.worker().in_flight(), 1);
        drop(two);
        assert_eq!(worker.in_flight(), 0);
    }

    #[test]
    fn a_worker_is_closed_only_when_nothing_needs_it() {
        let worker = worker(0, 1);
        worker.drain();
        let busy = worker.enter().expect("a draining worker keeps its sessions' requests");
        assert_eq!(worker.close_if(|| true), None, "a request is in flight");
        drop(busy);
        assert_eq!(worker.close_if(|| false), None, "a session is open");
        // A request that came between the two looks has claimed a session.
        let looks = std::cell::Cell::new(0);
        let unused = || {
            looks.set(looks.get() + 1);
            looks.get() == 1
        };
        assert_eq!(worker.close_if(unused), Some(false));
        assert!(worker.enter().is_some(), "it is open again");
        assert_eq!(worker.close_if(|| true), Some(true));
        assert!(worker.enter().is_none() && worker.in_flight() == 0);
    }

    #[test]
    fn nobody_is_inside_a_closed_worker_whatever_the_threads_do() {
        for _ in 0..200 {
            let worker = worker(0, 1);
            let entering = std::thread::spawn({
                let worker = Arc::clone(&worker);
                move || worker.enter()
            });
            let closed = worker.close_if(|| true) == Some(true);
            let entered = entering.join().unwrap();
            assert!(!(closed && entered.is_some()), "closed with a request inside");
        }
    }
}
