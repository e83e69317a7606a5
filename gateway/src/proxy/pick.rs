//! The choice of a worker for a request that has no owner.

use std::{cell::Cell, sync::Arc};

use crate::{session::By, worker_id::WorkerId, workers::Worker};

thread_local! {
    /// Where the next choice among equals begins.
    static NEXT: Cell<usize> = const { Cell::new(0) };
}

/// The ready worker with the fewest claimed and open sessions, then the fewest requests in flight (or by the
/// latter alone); equals take turns. `None` if all of `ready` are `excluded`.
pub(super) fn pick(
    ready: &[Arc<Worker>],
    excluded: &[WorkerId],
    by: By,
    sessions: impl Fn(WorkerId) -> usize,
) -> Option<WorkerId> {
    if ready.is_empty() {
        return None;
    }
    let start = NEXT.with(|next| {
        let start = next.get();
        next.set(start.wrapping_add(1));
        start % ready.len()
    });
    let (before, after) = ready.split_at(start);
    after
        .iter()
        .chain(before)
        .filter(|worker| !excluded.contains(&worker.id))
        .min_by_key(|worker| {
            let owned = match by {
                By::Sessions => sessions(worker.id),
                By::InFlight => 0,
            };
            (owned, worker.in_flight())
        })
        .map(|worker| worker.id)
}
