//! Replacing workers: the new one is there before the old one goes.

use super::*;
use crate::workers::{NotReplaced, NotRolling, RollState, RollStatus};

const MINUTE: Duration = Duration::from_secs(60);

impl Play {
    fn roll(&self) -> RollStatus {
        self.supervisor.roll().expect("a rolling restart")
    }

    /// Asserts that nothing more is started.
    async fn nothing_starts(&mut self) {
        self.settle().await;
        assert!(self.starts.try_recv().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn the_new_one_is_ready_before_the_old_one_drains() {
    let mut stage = play(1);
    let mut old = stage.all_ready(1).await.remove(0);
    stage.hold(0, 1, 1);
    let supervisor = Arc::clone(&stage.supervisor);
    let replaced = tokio::spawn(async move { supervisor.replace(0, "it leaks").await });
    let mut new = stage.start(0, 2).await;
    let status = stage.status(0);
    assert_eq!((status.generation, status.state), (1, SlotState::Ready), "the slot goes by the old one");
    assert_eq!((status.others[0].generation, status.others[0].state), (2, SlotState::Starting));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(stage.serving(), [id(0, 1)]);
    new.becomes_ready();
    assert_eq!(replaced.await.unwrap().unwrap(), id(0, 2));
    stage.settle().await;
    assert_eq!(stage.serving(), [id(0, 2)]);
    let workers = stage.supervisor.workers();
    assert!(workers.get(id(0, 1)).is_some(), "it keeps its sessions");
    let status = stage.status(0);
    assert_eq!((status.generation, status.state, status.restarts), (2, SlotState::Ready, 1));
    let drain = status.others[0].drain.as_ref().expect("the old one drains");
    assert_eq!(drain.reason, "worker 0.2 has taken over: it leaks");
    stage.hold(0, 1, 0);
    old.is_asked_to_end().await;
    stage.settle().await;
    assert!(stage.status(0).others.is_empty());
    assert!(matches!(stage.supervisor.replace(1, "").await, Err(NotReplaced::NoSlot(1))));
}

#[tokio::test(start_paused = true)]
async fn a_roll_goes_slot_by_slot_and_waits_for_each_drain() {
    let mut stage = play(3);
    let mut old = stage.all_ready(3).await;
    (0..3).for_each(|slot| stage.hold(slot, 1, 1));
    stage.supervisor.restart(None, "new code").unwrap();
    let mut new = Vec::new();
    for slot in 0..3 {
        new.push(stage.ready(slot, 2).await);
        assert_eq!(stage.serving().len(), 3, "capacity never falls");
        stage.nothing_starts().await;
        tokio::time::sleep(MINUTE).await;
        stage.nothing_starts().await;
        if slot < 2 {
            assert_eq!(stage.roll().state, RollState::Rolling);
            stage.hold(slot, 1, 0);
            old[usize::from(slot)].is_asked_to_end().await;
        }
    }
    let roll = stage.roll();
    assert_eq!((roll.state, roll.replaced), (RollState::Done, vec![0, 1, 2]));
    assert!(old[2].is_left_alone(), "the last one still drains");
    assert_eq!(stage.supervisor.rolls_ended().done, 1);
}

#[tokio::test(start_paused = true)]
async fn max_surge_workers_are_replaced_at_a_time() {
    let mut stage = play_with(3, |settings| settings.max_surge = 2);
    let mut old = stage.all_ready(3).await;
    stage.supervisor.restart(None, "new code").unwrap();
    let (mut one, mut two) = (stage.start(0, 2).await, stage.start(1, 2).await);
    stage.nothing_starts().await;
    one.becomes_ready();
    stage.settle().await;
    stage.nothing_starts().await;
    old[0].is_asked_to_end().await;
    let _three = stage.ready(2, 2).await;
    two.becomes_ready();
    stage.settle().await;
    assert_eq!(stage.roll().state, RollState::Done);
}

#[tokio::test(start_paused = true)]
async fn a_new_worker_that_cannot_start_stops_the_roll_and_leaves_all_as_it_was() {
    let mut stage = play(3);
    let mut old = stage.all_ready(3).await;
    stage.supervisor.restart(None, "new code").unwrap();
    let first = stage.ready(0, 2).await;
    old[0].is_asked_to_end().await;
    let second = stage.start(1, 2).await;
    second.driver.output.push("ImportError: no module named verifier");
    second.ends(Exit::Code(1));
    stage.settle().await;
    tokio::time::sleep(60 * MINUTE).await;
    stage.nothing_starts().await;
    let roll = stage.roll();
    assert_eq!((roll.state, roll.replaced), (RollState::Failed, vec![0]));
    let report = roll.failure.expect("a report");
    for part in ["worker 1.2 did not listen: it exited with status 1", "| ImportError", "what to do: "] {
        assert!(report.contains(part), "{part} is not in {report}");
    }
    assert_eq!(stage.serving(), [id(0, 2), id(1, 1), id(2, 1)]);
    let status = stage.status(1);
    assert_eq!((status.generation, status.state, status.failures_in_a_row), (1, SlotState::Ready, 0));
    assert_eq!(status.last_failure.expect("it is told").worker(), id(1, 2));
    assert!(old[1].is_left_alone() && old[2].is_left_alone());
    assert_eq!(stage.supervisor.rolls_ended().failed, 1);
    // The next one goes its way.
    stage.supervisor.restart(None, "mended").unwrap();
    drop((first, stage.start(0, 3).await));
}

#[tokio::test(start_paused = true)]
async fn an_old_worker_that_dies_meanwhile_leaves_the_slot_to_the_new_one() {
    let mut stage = play(2);
    let old = stage.all_ready(2).await;
    stage.supervisor.restart(None, "new code").unwrap();
    let mut new = stage.start(0, 2).await;
    old[0].ends(Exit::Signal(11));
    stage.settle().await;
    assert_eq!(stage.state(0), (2, SlotState::Starting));
    stage.nothing_starts().await;
    new.becomes_ready();
    stage.settle().await;
    assert_eq!(stage.state(0), (2, SlotState::Ready));
    // Nobody drains, so the next slot's turn is at once. There the new one fails after the old one has died.
    let new = stage.start(1, 2).await;
    old[1].ends(Exit::Signal(11));
    stage.settle().await;
    new.ends(Exit::Code(1));
    stage.settle().await;
    assert_eq!((stage.state(1), stage.roll().state), ((2, SlotState::Backoff), RollState::Failed));
    stage.ready(1, 3).await;
    assert_eq!(stage.state(1), (3, SlotState::Ready));
}

#[tokio::test(start_paused = true)]
async fn a_new_worker_that_dies_soon_stops_the_roll() {
    let mut stage = play(2);
    let mut old = stage.all_ready(2).await;
    stage.hold(0, 1, 1);
    stage.supervisor.restart(None, "new code").unwrap();
    let new = stage.ready(0, 2).await;
    new.ends(Exit::Signal(6));
    let _again = stage.ready(0, 3).await;
    assert_eq!(stage.roll().state, RollState::Rolling, "it waits for the drain");
    assert!(old[0].is_left_alone(), "the old one goes on draining");
    stage.hold(0, 1, 0);
    old[0].is_asked_to_end().await;
    stage.settle().await;
    let roll = stage.roll();
    assert_eq!(roll.state, RollState::Failed);
    assert!(roll.failure.unwrap().starts_with("worker 0.2 took over, and died"));
    stage.nothing_starts().await;
    assert_eq!(stage.serving(), [id(0, 3), id(1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_second_restart_is_refused_while_one_is_under_way() {
    let mut stage = play(2);
    let _old = stage.all_ready(2).await;
    assert!(matches!(stage.supervisor.restart(Some(2), "").unwrap_err(), NotRolling::NoSlot(2)));
    stage.supervisor.restart(None, "new code").unwrap();
    for slot in [None, Some(1)] {
        let refused = stage.supervisor.restart(slot, "again").unwrap_err();
        let NotRolling::UnderWay(status) = &refused else { panic!("{refused}") };
        assert_eq!(status.reason, "new code");
        assert_eq!(refused.to_string(), "a rolling restart is under way (new code): 0 of 2 slots are done");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_drained_meanwhile_is_passed_over_and_stays_empty() {
    let mut stage = play(3);
    let mut old = stage.all_ready(3).await;
    stage.supervisor.restart(None, "new code").unwrap();
    let mut new = stage.start(0, 2).await;
    stage.supervisor.drain(0, "by hand").unwrap();
    stage.supervisor.drain(2, "by hand").unwrap();
    new.is_asked_to_end().await;
    old[0].is_asked_to_end().await;
    old[2].is_asked_to_end().await;
    let _one = stage.ready(1, 2).await;
    old[1].is_asked_to_end().await;
    stage.nothing_starts().await;
    let roll = stage.roll();
    assert_eq!((roll.state, roll.replaced, roll.skipped), (RollState::Done, vec![1], vec![0, 2]));
    for slot in [0, 2] {
        assert_eq!(stage.state(slot).1, SlotState::Drained);
    }
    stage.supervisor.restart(None, "again").unwrap();
    assert_eq!(stage.roll().slots, [1], "the others were emptied by hand");
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_roll_at_once() {
    let mut stage = play(2);
    let mut old = stage.all_ready(2).await;
    stage.supervisor.restart(None, "new code").unwrap();
    let mut new = stage.start(0, 2).await;
    let began = Instant::now();
    let supervisor = Arc::clone(&stage.supervisor);
    let stop = tokio::spawn(async move { supervisor.stop().await });
    for worker in [&mut new].into_iter().chain(&mut old) {
        worker.is_asked_to_end().await;
    }
    stop.await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(stage.roll().state, RollState::CalledOff);
    assert!(stage.supervisor.status().iter().all(|slot| slot.state == SlotState::Stopped));
    assert!(matches!(stage.supervisor.replace(0, "").await, Err(NotReplaced::Stopped)));
}
