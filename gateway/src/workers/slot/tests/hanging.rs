//! Workers that answer nothing any more.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const SIGABRT: Order = Order::Signal(6);

fn watched() -> Play {
    play_with(1, |settings| settings.limits.hang_timeout = Some(60 * SECOND))
}

impl Play {
    fn goes_deaf(&self, is_deaf: bool) {
        self.surroundings.is_deaf.store(is_deaf, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_answers_nothing_is_lost_at_once_aborted_and_started_again() {
    let mut stage = watched();
    let mut old = stage.all_ready(1).await.remove(0);
    stage.log.recv().await.unwrap();
    tokio::time::sleep(600 * SECOND).await;
    assert!(old.is_left_alone(), "it answers probes");
    stage.goes_deaf(true);
    let began = Instant::now();
    assert_eq!(old.driver.orders.recv().await, Some(SIGABRT));
    let took = began.elapsed();
    assert!(took >= 45 * SECOND && took <= 90 * SECOND, "{took:?}");
    assert_eq!(stage.log.recv().await.unwrap(), "retired 0.1 in set: false cancelled: false");
    assert!(stage.worker(0, 1).exited().is_cancelled(), "nobody waits for its core");
    assert!(stage.starts.try_recv().is_err(), "its place is not free yet");
    old.driver.output.push("File \"verifier.py\", line 7 in grade");
    old.ends(Exit::Signal(6));
    stage.goes_deaf(false);
    let _new = stage.ready(0, 2).await;
    let status = stage.status(0);
    assert_eq!(status.replacements.by_cause()["hang"], 1);
    let failure = status.last_failure.expect("it failed");
    let Failed::Death { report, advice, .. } = failure.what else { panic!("{failure:?}") };
    assert!(report.to_string().starts_with("was killed by SIGABRT after"), "{report}");
    assert!(report.to_string().contains("it hung, and answered nothing for"), "{report}");
    assert_eq!(report.output, ["File \"verifier.py\", line 7 in grade"]);
    assert!(advice.contains("hang_timeout_seconds"), "{advice}");
}

#[tokio::test(start_paused = true)]
async fn sigkill_follows_where_sigabrt_does_nothing() {
    let mut stage = watched();
    let mut old = stage.all_ready(1).await.remove(0);
    stage.goes_deaf(true);
    assert_eq!(old.driver.orders.recv().await, Some(SIGABRT));
    let began = Instant::now();
    assert_eq!(old.driver.orders.recv().await, Some(Order::Kill));
    assert_eq!(began.elapsed(), 10 * SECOND);
    old.ends(Exit::Signal(9));
    let _new = stage.start(0, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_answers_requests_is_not_asked() {
    let mut stage = watched();
    let mut old = stage.all_ready(1).await.remove(0);
    stage.goes_deaf(true);
    for _ in 0..100 {
        tokio::time::sleep(10 * SECOND).await;
        stage.worker(0, 1).note_answer();
    }
    assert!(old.is_left_alone());
    assert_eq!(old.driver.orders.recv().await, Some(SIGABRT), "that was the last one");
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_it_may_take_for_ever_until_a_reload_sets_one() {
    let mut stage = play(1);
    let mut old = stage.all_ready(1).await.remove(0);
    stage.goes_deaf(true);
    tokio::time::sleep(86_400 * SECOND).await;
    assert!(old.is_left_alone());
    let mut config = ServerConfig::clone(&stage.supervisor.config());
    config.settings.limits.hang_timeout = Some(60 * SECOND);
    stage.supervisor.reconfigure(&config, &testing::gateway(), |_, _| false, "");
    let began = Instant::now();
    assert_eq!(old.driver.orders.recv().await, Some(SIGABRT));
    assert!(began.elapsed() >= 60 * SECOND, "the time before does not count");
}

#[tokio::test(start_paused = true)]
async fn a_draining_worker_may_hang_too() {
    let mut stage = watched();
    let mut old = stage.all_ready(1).await.remove(0);
    stage.hold(0, 1, 1);
    stage.supervisor.drain(0, "by hand").unwrap();
    tokio::time::sleep(100 * SECOND).await;
    stage.goes_deaf(true);
    assert_eq!(old.driver.orders.recv().await, Some(SIGABRT));
    old.ends(Exit::Signal(6));
    stage.settle().await;
    assert_eq!(stage.state(0).1, SlotState::Drained);
}
