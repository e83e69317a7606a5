//! Workers that keep their sessions, get no new ones, and end.

use super::*;
use crate::workers::{DrainTotals, NotReplaced};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn it_ends_when_no_session_is_left_and_nothing_is_in_flight() {
    let mut stage = play(2);
    let [mut first, _second] = <[Played; 2]>::try_from(stage.all_ready(2).await).ok().expect("two");
    let worker = stage.worker(0, 1);
    stage.hold(0, 1, 2);
    let request = worker.enter().unwrap();
    stage.supervisor.drain(0, "by hand").unwrap();
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(stage.state(0), (1, SlotState::Draining));
    assert_eq!(stage.serving(), [id(1, 1)]);
    assert!(worker.enter().is_some(), "its sessions' requests still come");
    let drain = stage.status(0).drain.expect("it drains");
    assert_eq!(
        (drain.reason.as_str(), drain.since.as_secs(), drain.left.map(|left| left.as_secs())),
        ("by hand", 600, Some(3000))
    );

    stage.hold(0, 1, 0);
    tokio::time::sleep(MINUTE).await;
    assert!(first.is_left_alone(), "a request is in flight");
    drop(request);
    let began = Instant::now();
    assert_eq!(first.driver.orders.recv().await, Some(Order::Signal(15)));
    assert!(began.elapsed() <= Duration::from_millis(101), "{:?}", began.elapsed());
    let seen: Vec<_> = std::iter::from_fn(|| stage.log.try_recv().ok()).collect();
    assert_eq!(seen[2..], ["retired 0.1 in set: false cancelled: false"]);
    assert!(worker.exited().is_cancelled() && worker.enter().is_none());

    first.ends(Exit::Code(0));
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(stage.state(0), (1, SlotState::Drained));
    assert!(stage.starts.try_recv().is_err(), "it stays empty");
    assert_eq!(stage.supervisor.drains(), DrainTotals::default());
}

#[tokio::test(start_paused = true)]
async fn what_is_left_at_the_deadline_is_lost() {
    let mut stage = play_with(1, |settings| settings.drain_timeout = Some(MINUTE));
    let mut first = stage.all_ready(1).await.remove(0);
    stage.hold(0, 1, 3);
    let _stuck = stage.worker(0, 1).enter();
    let began = Instant::now();
    stage.supervisor.drain(0, "by hand").unwrap();
    first.is_asked_to_end().await;
    assert!(
        (MINUTE..MINUTE + Duration::from_millis(200)).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
    assert!(
        stage.worker(0, 1).exited().is_cancelled(),
        "requests in flight are cut before the worker can answer"
    );
    assert_eq!(stage.supervisor.drains(), DrainTotals { cut: 1, lost: 3 });
    stage.settle().await;
    assert_eq!(stage.state(0), (1, SlotState::Drained));
}

#[tokio::test(start_paused = true)]
async fn a_drain_without_a_limit_waits() {
    let mut stage = play_with(1, |settings| settings.drain_timeout = None);
    let mut first = stage.all_ready(1).await.remove(0);
    stage.hold(0, 1, 1);
    stage.supervisor.drain(0, "by hand").unwrap();
    tokio::time::sleep(90 * MINUTE).await;
    assert!(first.is_left_alone());
    assert_eq!(stage.status(0).drain.unwrap().left, None);
    stage.hold(0, 1, 0);
    first.is_asked_to_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_while_it_drains_is_not_started_again() {
    let mut stage = play(1);
    let first = stage.all_ready(1).await.remove(0);
    stage.hold(0, 1, 1);
    stage.supervisor.drain(0, "by hand").unwrap();
    tokio::time::sleep(MINUTE).await;
    first.ends(Exit::Signal(9));
    stage.settle().await;
    assert_eq!(stage.state(0), (1, SlotState::Drained));
    assert_eq!(stage.log.recv().await.unwrap(), "ready 0.1 in set: false");
    let exited = stage.log.recv().await.unwrap();
    assert_eq!(exited, "exited 0.1 was killed by SIGKILL in set: false cancelled: false");
    tokio::time::sleep(10 * MINUTE).await;
    assert!(stage.starts.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_drained_slot_is_filled_by_its_restart_even_while_it_drains() {
    let mut stage = play(1);
    let mut first = stage.all_ready(1).await.remove(0);
    stage.hold(0, 1, 1);
    stage.supervisor.drain(0, "by hand").unwrap();
    stage.settle().await;
    stage.supervisor.restart(Some(0), "by hand").unwrap();
    let _second = stage.ready(0, 2).await;
    assert_eq!(stage.state(0), (2, SlotState::Ready));
    let others = stage.status(0).others;
    assert_eq!((others.len(), others[0].generation, others[0].state), (1, 1, SlotState::Draining));
    assert_eq!(stage.serving(), [id(0, 2)]);
    stage.hold(0, 1, 0);
    first.is_asked_to_end().await;
    stage.settle().await;
    assert_eq!((stage.state(0), stage.status(0).others.len()), ((2, SlotState::Ready), 0));

    stage.supervisor.drain(0, "again").unwrap();
    tokio::time::sleep(MINUTE).await;
    assert!(matches!(stage.supervisor.drain(7, ""), Err(NotReplaced::NoSlot(7))));
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_has_no_ready_worker_is_empty_at_once() {
    let mut stage = play(2);
    let (mut starting, dead) = (stage.start(0, 1).await, stage.start(1, 1).await);
    dead.ends(Exit::Code(1));
    stage.settle().await;
    let began = Instant::now();
    for slot in [0, 1] {
        stage.supervisor.drain(slot, "by hand").unwrap();
    }
    starting.is_asked_to_end().await;
    stage.settle().await;
    assert_eq!((stage.state(0).1, stage.state(1).1), (SlotState::Drained, SlotState::Drained));
    assert_eq!(began.elapsed(), Duration::ZERO);
    tokio::time::sleep(10 * MINUTE).await;
    assert!(stage.starts.try_recv().is_err());
    stage.supervisor.restart(Some(1), "by hand").unwrap();
    stage.ready(1, 2).await;
    assert_eq!(stage.state(1), (2, SlotState::Ready));
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_drain() {
    let mut stage = play(1);
    let mut first = stage.all_ready(1).await.remove(0);
    stage.hold(0, 1, 1);
    stage.supervisor.drain(0, "by hand").unwrap();
    tokio::time::sleep(MINUTE).await;
    let began = Instant::now();
    let supervisor = Arc::clone(&stage.supervisor);
    let stop = tokio::spawn(async move { supervisor.stop().await });
    first.is_asked_to_end().await;
    stop.await.unwrap();
    assert_eq!((began.elapsed(), stage.state(0).1), (Duration::ZERO, SlotState::Stopped));
}
