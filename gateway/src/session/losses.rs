//! Lost sessions: answered with 410 for as long as the loss is remembered.

use std::time::Duration;

use moka::{policy::EvictionPolicy, sync::Cache};

use super::{Millis, SessionId};
use crate::worker_id::WorkerId;

/// Why and until when a session counts as lost.
#[derive(Clone, Copy, Debug)]
struct Loss {
    until: Millis,
    owner: WorkerId,
    /// All that had happened to the session was one request on its way to its worker.
    untouched: bool,
}

/// Remembers the newest losses. LRU, since moka's default policy may refuse a newcomer.
#[derive(Debug)]
pub(super) struct Losses {
    cache: Cache<SessionId, Loss, foldhash::quality::RandomState>,
    retention: Millis,
}

/// moka takes no longer times than a thousand years; entries are judged by `until` anyway.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86400);

impl Losses {
    pub(super) fn new(retention: Duration, capacity: u64) -> Self {
        let cache = Cache::builder()
            .max_capacity(capacity)
            .eviction_policy(EvictionPolicy::lru())
            // Only gives memory back. Our own clock decides, and never lags behind moka's.
            .time_to_live(retention.min(LONGEST))
            .build_with_hasher(foldhash::quality::RandomState::default());
        Self { cache, retention: super::table::millis(retention) }
    }

    pub(super) fn insert(&self, id: SessionId, owner: WorkerId, untouched: bool, now: Millis) {
        let until = now.saturating_add(self.retention);
        self.cache.insert(id, Loss { until, owner, untouched });
    }

    pub(super) fn contains(&self, id: &SessionId, now: Millis) -> bool {
        self.cache.get(id).is_some_and(|loss| now < loss.until)
    }

    /// Forgets the loss of a session that never reached this worker. Returns whether it was one.
    pub(super) fn undo(&self, id: &SessionId, worker: WorkerId) -> bool {
        let untouched = self.cache.get(id).is_some_and(|loss| loss.untouched && loss.owner == worker);
        if untouched {
            self.cache.invalidate(id);
        }
        untouched
    }

    /// Up to `limit` losses that are remembered, with the workers that held the sessions; in no order.
    pub(super) fn list(&self, limit: usize, now: Millis) -> Vec<(SessionId, WorkerId)> {
        let current = self.cache.iter().filter(|(_, loss)| now < loss.until);
        current.take(limit).map(|(id, loss)| (SessionId::clone(&id), loss.owner)).collect()
    }

    /// Gives back the memory of what is over or too much.
    pub(super) fn tidy(&self) {
        self.cache.run_pending_tasks();
    }

    /// How many are remembered, after the last [`Losses::tidy`].
    pub(super) fn len(&self) -> u64 {
        self.cache.entry_count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: WorkerId = WorkerId { slot: 0, generation: 1 };

    fn id(n: u64) -> SessionId {
        SessionId::new(&n.to_string()).unwrap()
    }

    #[test]
    fn is_over_at_its_time() {
        let losses = Losses::new(Duration::from_secs(10), 100);
        losses.insert(id(1), WORKER, false, 5_000);
        assert!(losses.contains(&id(1), 14_999));
        assert!(!losses.contains(&id(1), 15_000));
        assert!(!losses.contains(&id(2), 5_000));
    }

    #[test]
    fn the_newest_stay() {
        let losses = Losses::new(Duration::from_secs(10), 100);
        // Asked for often, which moka's default policy prefers to a newcomer.
        for n in 0..1000 {
            losses.insert(id(n), WORKER, false, 0);
            losses.tidy();
            assert!(losses.contains(&id(n), 0), "the newest is in: {n}");
        }
        assert_eq!(losses.len(), 100);
        assert!((900..1000).all(|n| losses.contains(&id(n), 0)));
    }

    #[test]
    fn capacity_0_and_endless_retention_work() {
        let losses = Losses::new(Duration::MAX, 0);
        losses.insert(id(1), WORKER, false, u64::MAX);
        losses.tidy();
        assert_eq!(losses.len(), 0);
    }

    #[test]
    fn only_an_untouched_loss_is_undone_and_only_by_its_worker() {
        let losses = Losses::new(Duration::from_secs(10), 100);
        losses.insert(id(1), WORKER, true, 0);
        losses.insert(id(2), WORKER, false, 0);
        assert!(!losses.undo(&id(1), WorkerId { slot: 0, generation: 2 }));
        assert!(losses.undo(&id(1), WORKER));
        assert!(!losses.contains(&id(1), 0));
        assert!(!losses.undo(&id(2), WORKER));
        assert!(losses.contains(&id(2), 0));
    }
}
