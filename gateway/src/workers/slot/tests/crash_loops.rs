//! Slots that fail again and again: when they are given up, tried again, and healthy.

use super::*;
use crate::workers::{Failed, Transitions};

/// The next start, after so many seconds since the end before it: at least half of that (jitter), or exactly.
async fn next_start(stage: &mut Play, ended: Instant, seconds: u64, exactly: bool) -> Played {
    let start = stage.starts.recv().await.unwrap();
    let (waited, longest) = ((start.at - ended).as_millis(), u128::from(seconds) * 1000);
    let shortest = if exactly { longest } else { longest / 2 };
    // A timer has whole milliseconds.
    assert!((shortest..=longest + 1).contains(&waited), "{waited} ms before {}", start.id);
    start
}

fn crash_loop() -> Play {
    play_with(1, |settings| {
        settings.restart_backoff = Duration::from_secs(1);
        settings.max_start_failures = 3;
    })
}

fn counts(transitions: &Transitions) -> Vec<(SlotState, u64)> {
    transitions.iter().filter(|(_, count)| *count > 0).collect()
}

#[tokio::test(start_paused = true)]
async fn too_many_failures_in_a_row_fail_the_slot_and_it_is_tried_every_five_minutes() {
    let mut stage = crash_loop();
    let mut ended = Instant::now();
    for wait in [0, 1, 2] {
        let start = next_start(&mut stage, ended, wait, false).await;
        ended = Instant::now();
        start.ends(Exit::Code(1));
    }
    for failures in 3..6 {
        tokio::time::sleep(Duration::from_secs(299)).await;
        let status: &SlotStatus = &stage.supervisor.status()[0];
        assert_eq!((status.state, status.failures_in_a_row, status.pid), (SlotState::Failed, failures, None));
        let start = next_start(&mut stage, ended, 300, true).await;
        assert_eq!(stage.supervisor.status()[0].state, SlotState::Starting);
        ended = Instant::now();
        start.ends(Exit::Code(1));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let seen = counts(&stage.supervisor.status()[0].transitions);
    use SlotState::{Backoff, Died, Failed, Starting};
    assert_eq!(seen, [(Starting, 6), (Died, 6), (Backoff, 2), (Failed, 4)]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_ready_and_dies_at_once_is_a_crash_loop_too() {
    let mut stage = crash_loop();
    let mut changes = stage.supervisor.workers().changes();
    let mut ended = Instant::now();
    for (wait, exactly) in [(0, true), (1, false), (2, false), (300, true)] {
        let mut start = next_start(&mut stage, ended, wait, exactly).await;
        start.becomes_ready();
        changes.changed().await.unwrap();
        tokio::time::sleep(Duration::from_secs(59)).await;
        ended = Instant::now();
        start.ends(Exit::Signal(11));
        changes.changed().await.unwrap();
    }
    let mut start = next_start(&mut stage, ended, 300, true).await;
    start.becomes_ready();
    changes.changed().await.unwrap();
    assert_eq!(stage.supervisor.status()[0].failures_in_a_row, 4, "no minute of health yet");
    tokio::time::sleep(Duration::from_secs(61)).await;
    let status = &stage.supervisor.status()[0];
    assert_eq!((status.state, status.failures_in_a_row), (SlotState::Ready, 0));
    let failure = status.last_failure.as_ref().expect("the last one is still told");
    let Failed::Death { worker, report, advice } = &failure.what else { panic!("{failure:?}") };
    assert_eq!((worker.generation, report.to_string().as_str()), (4, "was killed by SIGSEGV after 59.0 s"));
    assert!(advice.contains("PYTHONFAULTHANDLER"), "{advice}");

    ended = Instant::now();
    start.ends(Exit::Code(1));
    let start = next_start(&mut stage, ended, 0, true).await;
    ended = Instant::now();
    start.ends(Exit::Code(1));
    next_start(&mut stage, ended, 1, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_never_given_up_where_the_limit_is_zero() {
    let mut stage = play_with(1, |settings| settings.max_start_failures = 0);
    let mut ended = Instant::now();
    for _ in 0..40 {
        let start = stage.starts.recv().await.unwrap();
        assert!(start.at - ended <= Duration::from_millis(60_001));
        ended = Instant::now();
        start.ends(Exit::Code(1));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = &stage.supervisor.status()[0];
    assert_eq!((status.state, status.failures_in_a_row), (SlotState::Backoff, 40));
}

#[tokio::test(start_paused = true)]
async fn a_failed_slot_leaves_the_others_alone() {
    let mut stage = play_with(2, |settings| settings.max_start_failures = 1);
    let (one, mut two) = (stage.starts.recv().await.unwrap(), stage.starts.recv().await.unwrap());
    two.becomes_ready();
    one.ends(Exit::Code(3));
    tokio::time::sleep(Duration::from_secs(200)).await;
    let status = stage.supervisor.status();
    let (failed, ready) = (&status[usize::from(one.id.slot)], &status[usize::from(two.id.slot)]);
    assert_eq!((failed.state, ready.state), (SlotState::Failed, SlotState::Ready));
    assert_eq!(stage.supervisor.workers().ready().len(), 1);
    let Some(Failed::Start(failure)) = failed.last_failure.as_ref().map(|failure| &failure.what) else {
        panic!("{failed:?}")
    };
    assert_eq!((failure.phase, failure.exit.clone()), (Phase::Listen, Some(Exit::Code(3))));
    // A stop does not wait for the next try.
    two.ends(Exit::Code(0));
    let began = Instant::now();
    stage.supervisor.stop().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_no_failure() {
    let mut stage = play(1);
    let mut start = stage.starts.recv().await.unwrap();
    start.becomes_ready();
    stage.supervisor.started().await.unwrap();
    let supervisor = Arc::clone(&stage.supervisor);
    let stop = tokio::spawn(async move { supervisor.stop().await });
    start.driver.orders.recv().await.unwrap();
    start.ends(Exit::Code(0));
    stop.await.unwrap();
    let status = &stage.supervisor.status()[0];
    assert!(status.last_failure.is_none(), "{status:?}");
    use SlotState::{Draining, Exited, Ready, Starting, Stopped};
    let each_once = [Starting, Ready, Draining, Exited, Stopped].map(|state| (state, 1));
    assert_eq!(counts(&status.transitions), each_once);
}
