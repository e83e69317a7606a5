//! Workers that are over a limit are replaced, the rolling way.

use super::*;
use crate::config::WorkerLimits;

const SECOND: Duration = Duration::from_secs(1);

fn limited(num_workers: u16, limits: WorkerLimits) -> Play {
    play_with(num_workers, |settings| settings.limits = limits)
}

impl Play {
    /// Waits until everybody was looked at.
    async fn look(&self) {
        tokio::time::sleep(SECOND + SECOND / 10).await;
        self.settle().await;
    }

    /// Asserts that nothing is started for so long.
    async fn nothing_starts_for(&mut self, time: Duration) {
        tokio::time::sleep(time).await;
        self.settle().await;
        assert!(self.starts.try_recv().is_err());
    }

    fn answers(&self, slot: u16, generation: u32, times: u64) {
        (0..times).for_each(|_| self.worker(slot, generation).note_answer());
    }

    fn replacements(&self, slot: u16, cause: &str) -> u64 {
        self.status(slot).replacements.by_cause()[cause]
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_with_enough_requests_is_replaced_when_the_next_is_ready() {
    let mut stage = limited(2, WorkerLimits { max_requests: Some(100), ..WorkerLimits::default() });
    let mut old = stage.all_ready(2).await;
    stage.answers(0, 1, 99);
    stage.answers(1, 1, 50);
    stage.nothing_starts_for(10 * SECOND).await;
    stage.answers(0, 1, 1);
    let mut new = stage.start(0, 2).await;
    assert_eq!(stage.serving(), [id(0, 1), id(1, 1)], "it serves until the next is ready");
    let over = stage.status(0).over_limit;
    assert_eq!(over.as_deref(), Some("it has answered 100 requests (max_requests: 100)"));
    stage.nothing_starts_for(10 * SECOND).await;
    new.becomes_ready();
    old[0].is_asked_to_end().await;
    stage.settle().await;
    assert_eq!(stage.serving(), [id(0, 2), id(1, 1)]);
    assert_eq!((stage.replacements(0, "max_requests"), stage.replacements(1, "max_requests")), (1, 0));
    assert_eq!(stage.status(0).over_limit, None);
    stage.nothing_starts_for(10 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn sessions_that_are_over_count_too() {
    let mut stage = limited(1, WorkerLimits { max_sessions: Some(10), ..WorkerLimits::default() });
    let _old = stage.all_ready(1).await;
    stage.notes.taken.lock().unwrap().insert(id(0, 1), 10);
    let mut new = stage.start(0, 2).await;
    new.becomes_ready();
    stage.settle().await;
    assert_eq!(stage.replacements(0, "max_sessions"), 1);
}

#[tokio::test(start_paused = true)]
async fn lifetimes_end_one_after_another() {
    let lifetime = 1000 * SECOND;
    let mut stage = limited(3, WorkerLimits { max_lifetime: Some(lifetime), ..WorkerLimits::default() });
    let mut old = stage.all_ready(3).await;
    let began = Instant::now();
    let mut times = Vec::new();
    for _ in 0..3 {
        let mut new = stage.starts.recv().await.unwrap();
        times.push(began.elapsed());
        assert!(began.elapsed() >= lifetime.mul_f64(0.8) && began.elapsed() <= lifetime + 2 * SECOND);
        new.becomes_ready();
        old[usize::from(new.id.slot)].is_asked_to_end().await;
        stage.settle().await;
        // Whoever drops it ends it.
        std::mem::forget(new);
    }
    assert!(times[0] < times[2], "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn memory_is_what_the_tree_takes_at_several_looks_in_a_row() {
    let limits = WorkerLimits { max_memory_bytes: Some(1000), ..WorkerLimits::default() };
    let mut stage = limited(1, limits);
    let _old = stage.all_ready(1).await;
    // The worker's process ID is 7; keeper 6, and a child that is the keeper's by now.
    let takes = |bytes| Resident::of([(7, 6, 600), (8, 6, bytes)]);
    *stage.surroundings.resident.lock().unwrap() = takes(400);
    stage.nothing_starts_for(10 * SECOND).await;
    *stage.surroundings.resident.lock().unwrap() = takes(401);
    stage.look().await;
    assert!(stage.starts.try_recv().is_err(), "one look is no habit");
    *stage.surroundings.resident.lock().unwrap() = takes(0);
    stage.look().await;
    *stage.surroundings.resident.lock().unwrap() = takes(401);
    let began = Instant::now();
    let mut new = stage.start(0, 2).await;
    assert!(began.elapsed() > 2 * SECOND, "{:?}", began.elapsed());
    *stage.surroundings.resident.lock().unwrap() = takes(0);
    new.becomes_ready();
    stage.settle().await;
    assert_eq!(stage.replacements(0, "max_memory"), 1);
}

#[tokio::test(start_paused = true)]
async fn max_surge_holds_for_limits_too() {
    let mut stage = limited(3, WorkerLimits { max_requests: Some(1), ..WorkerLimits::default() });
    let mut old = stage.all_ready(3).await;
    (0..3).for_each(|slot| stage.answers(slot, 1, 1));
    (0..3).for_each(|slot| stage.hold(slot, 1, 1));
    let mut new = Vec::new();
    for _ in 0..3 {
        let mut one = stage.starts.recv().await.unwrap();
        let slot = one.id.slot;
        one.becomes_ready();
        stage.nothing_starts_for(10 * SECOND).await;
        stage.hold(slot, 1, 0);
        old[usize::from(slot)].is_asked_to_end().await;
        new.push(one);
    }
    stage.nothing_starts_for(10 * SECOND).await;
    assert_eq!(stage.serving(), [id(0, 2), id(1, 2), id(2, 2)]);
}

#[tokio::test(start_paused = true)]
async fn one_whose_successor_does_not_start_serves_on_and_is_tried_again_later() {
    let mut stage = limited(1, WorkerLimits { max_requests: Some(1), ..WorkerLimits::default() });
    let mut old = stage.all_ready(1).await;
    stage.answers(0, 1, 1);
    let mut last = Instant::now();
    for generation in 2..6 {
        let start = stage.start(0, generation).await;
        let waited = start.at - last;
        assert!(generation < 4 || waited >= SECOND / 2, "{waited:?}");
        last = start.at;
        start.ends(Exit::Code(1));
        stage.settle().await;
        assert_eq!(stage.serving(), [id(0, 1)]);
    }
    assert_eq!(stage.replacements(0, "max_requests"), 0);
    let mut new = stage.start(0, 6).await;
    new.becomes_ready();
    old[0].is_asked_to_end().await;
    stage.settle().await;
    assert_eq!((stage.replacements(0, "max_requests"), stage.serving()), (1, vec![id(0, 6)]));
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_too_low_does_not_start_one_after_another() {
    let mut stage = limited(1, WorkerLimits { max_memory_bytes: Some(1), ..WorkerLimits::default() });
    let mut old = stage.all_ready(1).await.remove(0);
    *stage.surroundings.resident.lock().unwrap() = Resident::of([(7, 6, 600)]);
    let began = Instant::now();
    for generation in 2..=20 {
        let mut new = stage.start(0, generation).await;
        new.becomes_ready();
        old.is_asked_to_end().await;
        old = new;
    }
    // Ten waits up to a minute, half of each at least, and then five minutes each.
    assert!(began.elapsed() > 30 * 60 * SECOND, "{:?}", began.elapsed());
    assert_eq!(stage.replacements(0, "max_memory"), 19);
    assert_eq!(stage.serving(), [id(0, 20)]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_replaced_or_drained_meanwhile_is_let_be() {
    let mut stage = limited(3, WorkerLimits { max_requests: Some(1), ..WorkerLimits::default() });
    let mut old = stage.all_ready(3).await;
    (0..3).for_each(|slot| stage.hold(slot, 1, 1));
    // The first takes the only permit until its drain is over; the others wait.
    stage.answers(0, 1, 1);
    let first = stage.ready(0, 2).await;
    (1..3).for_each(|slot| stage.answers(slot, 1, 1));
    stage.nothing_starts_for(5 * SECOND).await;
    old[1].ends(Exit::Signal(9));
    let second = stage.ready(1, 2).await;
    stage.supervisor.drain(2, "by hand").unwrap();
    stage.hold(0, 1, 0);
    old[0].is_asked_to_end().await;
    stage.hold(2, 1, 0);
    old[2].is_asked_to_end().await;
    stage.nothing_starts_for(60 * SECOND).await;
    assert_eq!(stage.serving(), [first.id, second.id]);
    assert_eq!(stage.state(2).1, SlotState::Drained);
}

#[tokio::test(start_paused = true)]
async fn a_reload_changes_the_limits_at_once() {
    let mut stage = play(1);
    let _old = stage.all_ready(1).await;
    stage.answers(0, 1, 1000);
    stage.nothing_starts_for(10 * SECOND).await;
    let mut config = ServerConfig::clone(&stage.supervisor.config());
    config.settings.limits.max_requests = Some(1000);
    stage.supervisor.reconfigure(&config, &testing::gateway(), |_, _| false, "");
    let _new = stage.start(0, 2).await;
}
