//! The workers that own sessions, or once did.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use super::SessionState;
use crate::worker_id::WorkerId;

/// One generation, as the table sees it.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) id: WorkerId,
    /// Set before the table is swept, read inside a shard's lock: a claim that sees `false` there is in the shard
    /// before the sweep comes to it.
    exited: AtomicBool,
    /// Sessions by state.
    pub(super) sessions: [AtomicUsize; 3],
    /// Sessions that it has had, claims that were withdrawn not among them.
    pub(super) taken: AtomicU64,
}

impl Owner {
    pub(super) fn has_exited(&self) -> bool {
        self.exited.load(Ordering::SeqCst)
    }

    pub(super) fn count(&self, state: SessionState) -> usize {
        self.sessions[state as usize].load(Ordering::Relaxed)
    }

    fn is_empty(&self) -> bool {
        SessionState::ALL.iter().all(|state| self.count(*state) == 0)
    }
}

/// How many generations an exit is remembered for after the last session of the worker. Older ones are known to be gone
/// by their number; no request that chose one can still be on its way.
const REMEMBERED_GENERATIONS: u32 = 16;

/// All owners by name. Read when a session is claimed, written when a worker is first chosen or exits.
#[derive(Debug, Default)]
pub(super) struct Owners(RwLock<HashMap<WorkerId, Arc<Owner>, foldhash::fast::RandomState>>);

impl Owners {
    /// The owner of this name; `None` once it has exited.
    pub(super) fn living(&self, id: WorkerId) -> Option<Arc<Owner>> {
        let known = self.known(id);
        let owner = known.unwrap_or_else(|| self.add(id));
        (!owner.has_exited()).then_some(owner)
    }

    pub(super) fn has_exited(&self, id: WorkerId) -> bool {
        self.known(id).is_some_and(|owner| owner.has_exited())
    }

    pub(super) fn known(&self, id: WorkerId) -> Option<Arc<Owner>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Marks a worker as gone, for good: generations never come back.
    pub(super) fn exit(&self, id: WorkerId) -> Arc<Owner> {
        let owner = self.add(id);
        owner.exited.store(true, Ordering::SeqCst);
        owner
    }

    pub(super) fn all(&self) -> Vec<Arc<Owner>> {
        let mut all: Vec<_> =
            self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        all.sort_by_key(|owner| owner.id);
        all
    }

    fn add(&self, id: WorkerId) -> Arc<Owner> {
        let mut owners = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let newest = owners.keys().filter(|known| known.slot == id.slot).map(|known| known.generation).max();
        let is_ancient =
            |generation: u32, newest: u32| generation.saturating_add(REMEMBERED_GENERATIONS) < newest;
        if let Some(known) = owners.get(&id) {
            return known.clone();
        }
        owners.retain(|known, owner| {
            known.slot != id.slot
                || !is_ancient(known.generation, id.generation)
                || !owner.has_exited()
                || !owner.is_empty()
        });
        let exited = newest.is_some_and(|newest| is_ancient(id.generation, newest));
        let owner = Arc::new(Owner {
            id,
            exited: AtomicBool::new(exited),
            sessions: Default::default(),
            taken: AtomicU64::new(0),
        });
        owners.insert(id, owner.clone());
        owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(generation: u32) -> WorkerId {
        WorkerId { slot: 0, generation }
    }

    #[test]
    fn an_exit_is_for_good() {
        let owners = Owners::default();
        assert!(owners.living(id(1)).is_some());
        owners.exit(id(1));
        assert!(owners.living(id(1)).is_none());
        assert!(owners.has_exited(id(1)));
        assert!(!owners.has_exited(id(2)), "never heard of");
        assert!(owners.living(id(2)).is_some());
    }

    #[test]
    fn a_thousand_crashes_leave_a_few_entries_and_no_doubt() {
        let owners = Owners::default();
        for generation in 1..=1000 {
            assert!(owners.living(id(generation)).is_some());
            owners.exit(id(generation));
        }
        assert!(owners.all().len() <= REMEMBERED_GENERATIONS as usize + 2);
        for generation in 1..=1000 {
            assert!(owners.living(id(generation)).is_none(), "{generation}");
        }
        assert!(owners.living(id(1001)).is_some());
    }

    #[test]
    fn an_owner_with_sessions_is_not_dropped() {
        let owners = Owners::default();
        let first = owners.living(id(1)).unwrap();
        first.sessions[SessionState::Ended as usize].fetch_add(1, Ordering::Relaxed);
        owners.exit(id(1));
        owners.living(id(100));
        assert!(owners.all().iter().any(|owner| owner.id == id(1)));
    }
}
