//! The bound on request bodies (and parts of WebSocket frames) held in memory, over all requests.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Bytes of request bodies in memory; `max_buffered_bytes` at most.
#[derive(Debug)]
pub struct Budget {
    limit: AtomicUsize,
    used: AtomicUsize,
}

impl Budget {
    /// A budget of `limit` bytes, none used.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit: AtomicUsize::new(limit), used: AtomicUsize::new(0) })
    }

    /// The most that it holds.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Holds so many at the most from now on. What is over that stays until it is given back.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Bytes held now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        self.used
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|sum| *sum <= self.limit())
            })
            .is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// One request's part of the budget; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Held {
    pub(super) fn none(budget: Arc<Budget>) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Takes `bytes` more; false (and nothing taken) if the budget has not that much left.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let taken = self.budget.take(bytes);
        if taken {
            self.bytes += bytes;
        }
        taken
    }

    pub(super) fn give_back_all(&mut self) {
        if self.bytes > 0 {
            self.budget.give_back(std::mem::take(&mut self.bytes));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.give_back_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_over_the_limit_and_all_comes_back() {
        let budget = Budget::new(10);
        let (mut a, mut b) = (Held::none(budget.clone()), Held::none(budget.clone()));
        assert!(a.take(6) && b.take(4) && !a.take(1));
        b.give_back_all();
        assert!(a.take(4) && !a.take(usize::MAX));
        assert_eq!(budget.used(), 10);
        drop((a, b));
        assert_eq!(budget.used(), 0);
    }
}
