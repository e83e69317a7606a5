//! The choice of a worker for a request that has no owner.

use std::{cell::Cell, sync::Arc};

use crate::{session::By, worker_id::WorkerId, workers::Worker};

thread_local! {
    /// Where the next choice among equals begins.
    static NEXT: Cell<usize> = const { Cell::new(0) };
}

/// The worker with the fewest claimed and open sessions, then the fewest requests in flight (or by the
/// latter alone, or both together); equals take turns. One that drains gets no session, and other requests only where no
/// other worker is. Where a session may begin, those without a `place` for it are passed over. `None` if nobody is left
/// that has room.
pub(super) fn pick(
    ready: &[Arc<Worker>],
    excluded: &[WorkerId],
    by: By,
    sessions: impl Fn(WorkerId) -> usize,
    place: impl Fn(WorkerId) -> bool,
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
        .filter(|worker| may_take(worker, excluded, by) && worker.has_room())
        .filter(|worker| by == By::InFlight || place(worker.id))
        .min_by_key(|worker| {
            let (owned, in_flight) = match by {
                By::Sessions => (sessions(worker.id), worker.in_flight()),
                By::InFlight => (0, worker.in_flight()),
                By::Both => (sessions(worker.id) + worker.in_flight(), 0),
            };
            (worker.is_draining(), owned, in_flight)
        })
        .map(|worker| worker.id)
}

/// Whether a worker is one to choose, if it has room.
pub(super) fn may_take(worker: &Worker, excluded: &[WorkerId], by: By) -> bool {
    !excluded.contains(&worker.id) && !worker.is_closed() && (by == By::InFlight || !worker.is_draining())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::Address;

    fn workers(count: u16) -> Vec<Arc<Worker>> {
        (0..count)
            .map(|slot| Arc::new(Worker::new(WorkerId { slot, generation: 1 }, Address::Unix("/s".into()))))
            .collect()
    }

    fn slot(picked: Option<WorkerId>) -> Option<u16> {
        picked.map(|worker| worker.slot)
    }

    #[test]
    fn fewest_sessions_then_fewest_requests() {
        let ready = workers(3);
        let _busy = [ready[0].enter().unwrap(), ready[0].enter().unwrap(), ready[1].enter().unwrap()];
        let sessions = |worker: WorkerId| [1, 1, 2][usize::from(worker.slot)];
        for _ in 0..4 {
            assert_eq!(slot(pick(&ready, &[], By::Sessions, sessions, |_| true)), Some(1));
            assert_eq!(slot(pick(&ready, &[], By::InFlight, sessions, |_| true)), Some(2));
            let sessions = |worker: WorkerId| [0, 1, 1][usize::from(worker.slot)];
            assert_eq!(slot(pick(&ready, &[], By::Both, sessions, |_| true)), Some(2));
        }
    }

    #[test]
    fn equals_take_turns() {
        let ready = workers(3);
        let mut picked: Vec<_> =
            (0..6).map(|_| slot(pick(&ready, &[], By::Sessions, |_| 0, |_| true))).collect();
        picked.sort_unstable();
        assert_eq!(picked, [Some(0), Some(0), Some(1), Some(1), Some(2), Some(2)]);
    }

    #[test]
    fn one_that_drains_gets_no_session_and_other_requests_last() {
        let ready = workers(2);
        ready[0].drain();
        let _busy = ready[1].enter().unwrap();
        for by in [By::Sessions, By::InFlight] {
            assert_eq!(slot(pick(&ready, &[], by, |_| 0, |_| true)), Some(1));
        }
        ready[1].drain();
        assert_eq!(pick(&ready, &[], By::Sessions, |_| 0, |_| true), None);
        assert_eq!(slot(pick(&ready, &[], By::InFlight, |_| 0, |_| true)), Some(0));
        ready[0].close();
        assert_eq!(slot(pick(&ready, &[], By::InFlight, |_| 0, |_| true)), Some(1));
    }

    #[test]
    fn the_excluded_are_passed_over() {
        let ready = workers(2);
        assert_eq!(slot(pick(&ready, &[ready[0].id], By::Sessions, |_| 0, |_| true)), Some(1));
        assert_eq!(pick(&ready, &[ready[0].id, ready[1].id], By::Sessions, |_| 0, |_| true), None);
        assert_eq!(pick(&[], &[], By::InFlight, |_| 0, |_| true), None);
    }

    #[test]
    fn the_full_are_passed_over_where_a_session_may_begin() {
        let ready = workers(2);
        let room = |worker: WorkerId| worker.slot == 1;
        let _busy = ready[1].enter();
        for _ in 0..2 {
            assert_eq!(slot(pick(&ready, &[], By::Sessions, |_| 0, room)), Some(1));
            assert_eq!(slot(pick(&ready, &[], By::InFlight, |_| 0, room)), Some(0));
        }
        assert_eq!(pick(&ready, &[], By::Sessions, |_| 0, |_| false), None);
    }
}
