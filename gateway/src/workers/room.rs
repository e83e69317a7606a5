//! Room at workers: how many requests each may have at a time, and who waits for it, in the order in which they came.
//!
//! A request that leaves hands its place to the next one, if there is one: first of those who wait for that worker, then of
//! those who wait for any. So nobody who comes later is there first, and nobody is woken in vain.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::oneshot;

use super::InFlight;
use crate::config::WorkerLimits;

/// What each of a server's workers may have, and who waits for whichever of them has room first.
#[derive(Debug)]
pub(crate) struct Room {
    /// `usize::MAX`: no limit.
    max_in_flight: AtomicUsize,
    max_queued: AtomicUsize,
    pub(super) line: Arc<Line>,
}

impl Default for Room {
    fn default() -> Self {
        let none = || AtomicUsize::new(usize::MAX);
        Self { max_in_flight: none(), max_queued: none(), line: Arc::default() }
    }
}

impl Room {
    pub(super) fn set(&self, limits: &WorkerLimits) {
        self.max_queued.store(limits.max_queued_per_worker, Ordering::Relaxed);
        self.max_in_flight.store(limits.max_in_flight_per_worker.unwrap_or(usize::MAX), Ordering::SeqCst);
    }

    /// Requests that a worker may have.
    pub(super) fn max_in_flight(&self) -> usize {
        self.max_in_flight.load(Ordering::Relaxed)
    }

    /// Requests that may wait for a worker.
    pub(super) fn max_queued(&self) -> usize {
        self.max_queued.load(Ordering::Relaxed)
    }
}

/// Requests that wait.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// How many: written inside the lock. Whoever makes room looks here, and whoever has joined looks for room.
    length: AtomicUsize,
    turns: Mutex<VecDeque<oneshot::Sender<InFlight>>>,
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.length.load(Ordering::SeqCst)
    }

    /// Joins, unless `most` wait already.
    pub(super) fn join(self: &Arc<Self>, most: usize) -> Option<Turn> {
        let mut turns = self.lock();
        if turns.len() >= most {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        turns.push_back(sender);
        self.length.store(turns.len(), Ordering::SeqCst);
        Some(Turn { receiver, line: Arc::clone(self) })
    }

    /// Whose turn it is, if `take` finds room for one.
    pub(super) fn next(&self, take: impl FnOnce() -> bool) -> Option<oneshot::Sender<InFlight>> {
        if self.len() == 0 {
            return None;
        }
        let mut turns = self.lock();
        if turns.is_empty() || !take() {
            return None;
        }
        let next = turns.pop_front();
        self.length.store(turns.len(), Ordering::SeqCst);
        next
    }

    /// Takes those out who have left.
    fn tidy(&self) {
        let mut turns = self.lock();
        turns.retain(|turn| !turn.is_closed());
        self.length.store(turns.len(), Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<oneshot::Sender<InFlight>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a line; dropping it leaves the line, and gives room that came back.
#[derive(Debug)]
pub struct Turn {
    receiver: oneshot::Receiver<InFlight>,
    line: Arc<Line>,
}

impl Turn {
    /// Waits for room; after that it is over. May be called again if it was broken off.
    pub async fn room(&mut self) -> InFlight {
        match (&mut self.receiver).await {
            Ok(room) => room,
            // Nobody makes room where nobody is: the worker's exit is seen elsewhere.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // What was sent before goes with the receiver.
        self.receiver.close();
        self.line.tidy();
    }
}

#[cfg(test)]
mod tests;
