use std::sync::atomic::Ordering;

use tokio::time::timeout;

use super::*;
use crate::{
    config::{Launch, ServerConfig},
    keeper::{Exit, Order},
    workers::{Failed, Phase, Resident, SlotStatus, testing},
};

mod crash_loops;
mod draining;
mod hanging;
mod launches;
mod limits;
mod rolling;
mod scaling;
mod stage;

use stage::*;

#[tokio::test(start_paused = true)]
async fn a_worker_joins_after_its_event_and_leaves_before_its_exit_s() {
    let mut stage = play(1);
    let workers = stage.supervisor.workers();
    let mut changes = workers.changes();
    let mut first = stage.starts.recv().await.unwrap();
    assert_eq!(stage.supervisor.status()[0].state, SlotState::Starting);
    assert!(workers.ready().is_empty());
    first.becomes_ready();
    changes.changed().await.unwrap();
    stage.supervisor.started().await.unwrap();
    let worker = workers.get(first.id).expect("it is in the set when waiters wake");
    let status = &stage.supervisor.status()[0];
    assert_eq!(
        (status.state, status.pid, status.address.as_deref()),
        (SlotState::Ready, Some(7), Some("unix:/fake"))
    );

    first.ends(Exit::Signal(9));
    changes.changed().await.unwrap();
    assert!(worker.exited().is_cancelled(), "all is done when waiters wake");
    assert_eq!(stage.log.recv().await.unwrap(), "ready 0.1 in set: false");
    assert_eq!(
        stage.log.recv().await.unwrap(),
        "exited 0.1 was killed by SIGKILL in set: false cancelled: false"
    );

    let mut second = stage.starts.recv().await.unwrap();
    assert_eq!(second.id, id(0, 2));
    second.becomes_ready();
    changes.changed().await.unwrap();
    let status = &stage.supervisor.status()[0];
    assert_eq!((status.generation, status.restarts), (2, 1));
    assert_eq!(status.last_exit.as_deref(), Some("0.1 was killed by SIGKILL after 0.0 s"));
}

#[tokio::test(start_paused = true)]
async fn restarts_wait_longer_and_longer_until_a_minute_of_health() {
    let mut stage = play(1);
    let mut ended = None;
    for (low, high) in [(0, 0), (250, 500), (500, 1000), (1000, 2000), (2000, 4000)] {
        let start = stage.starts.recv().await.unwrap();
        let waited = ended.map_or(Duration::ZERO, |ended| start.at - ended).as_millis();
        assert!((low..=high + 1).contains(&waited), "{waited} ms before {}", start.id);
        start.ends(Exit::Code(1));
        ended = Some(Instant::now());
    }
    let mut healthy = stage.starts.recv().await.unwrap();
    let mut changes = stage.supervisor.workers().changes();
    healthy.becomes_ready();
    changes.changed().await.unwrap();
    tokio::time::sleep(Duration::from_secs(61)).await;
    healthy.ends(Exit::Code(1));
    let ended = Instant::now();
    assert_eq!(stage.starts.recv().await.unwrap().at, ended);
}

#[tokio::test(start_paused = true)]
async fn a_start_is_given_up_on_after_its_time() {
    let mut stage = play(1);
    let mut start = stage.starts.recv().await.unwrap();
    let began = Instant::now();
    assert_eq!(start.driver.orders.recv().await, Some(Order::Kill));
    assert_eq!(began.elapsed(), Duration::from_secs(120));
    start.driver.output.push("loading");
    start.ends(Exit::Signal(9));
    let failure = stage.supervisor.started().await.unwrap_err();
    assert_eq!((failure.phase, failure.spent.total().as_secs()), (Phase::Listen, 120));
    assert_eq!(failure.exit, None);
    let text = failure.to_string();
    for part in [
        "server fake",
        "worker 0.1",
        "nothing listens",
        "120.0 s: spawn 0.0 s, listen 120.0 s",
        "| loading",
        "start_timeout_seconds",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_has_failed_when_all_its_slots_have() {
    let mut stage = play(2);
    let (one, two) = (stage.starts.recv().await.unwrap(), stage.starts.recv().await.unwrap());
    one.ends(Exit::Code(3));
    let again = stage.starts.recv().await.unwrap();
    assert_eq!(again.id.generation, 2);
    let supervisor = Arc::clone(&stage.supervisor);
    let mut started = tokio::spawn(async move { supervisor.started().await });
    assert!(timeout(Duration::from_secs(5), &mut started).await.is_err(), "slot 1 may still make it");
    two.ends(Exit::Code(4));
    let failure = started.await.unwrap().unwrap_err();
    assert_eq!((failure.worker.slot, failure.seen.as_str()), (0, "it exited with status 3"));
}

#[tokio::test(start_paused = true)]
async fn one_ready_worker_is_a_start() {
    let mut stage = play(2);
    let (one, mut two) = (stage.starts.recv().await.unwrap(), stage.starts.recv().await.unwrap());
    one.ends(Exit::Code(3));
    two.becomes_ready();
    stage.supervisor.started().await.unwrap();
    assert_eq!(stage.supervisor.workers().ready().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn stopping_asks_then_kills_and_waits_for_the_end() {
    let mut stage = play(1);
    let mut start = stage.starts.recv().await.unwrap();
    start.becomes_ready();
    stage.supervisor.started().await.unwrap();
    let supervisor = Arc::clone(&stage.supervisor);
    let began = Instant::now();
    let stop = tokio::spawn(async move { supervisor.stop().await });
    assert_eq!(start.driver.orders.recv().await, Some(Order::Signal(15)));
    assert_eq!(stage.supervisor.status()[0].state, SlotState::Draining);
    assert!(stage.supervisor.workers().ready().is_empty());
    assert_eq!(start.driver.orders.recv().await, Some(Order::Kill));
    assert_eq!(began.elapsed(), Duration::from_secs(10));
    start.ends(Exit::Signal(9));
    stop.await.unwrap();
    assert_eq!(stage.supervisor.status()[0].state, SlotState::Stopped);
    assert_eq!(stage.log.recv().await.unwrap(), "ready 0.1 in set: false");
    assert_eq!(
        stage.log.recv().await.unwrap(),
        "exited 0.1 was killed by SIGKILL in set: false cancelled: false"
    );
    assert!(stage.starts.try_recv().is_err(), "nothing is started after a stop");
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_a_start_and_a_wait_at_once() {
    let mut stage = play(2);
    let (mut one, two) = (stage.starts.recv().await.unwrap(), stage.starts.recv().await.unwrap());
    two.ends(Exit::Code(1));
    tokio::task::yield_now().await;
    let began = Instant::now();
    let supervisor = Arc::clone(&stage.supervisor);
    let stop = tokio::spawn(async move { supervisor.stop().await });
    assert_eq!(one.driver.orders.recv().await, Some(Order::Signal(15)));
    one.ends(Exit::Code(0));
    stop.await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    let status = &stage.supervisor.status()[usize::from(one.id.slot)];
    assert_eq!(status.state, SlotState::Stopped);
    assert!(status.last_exit.as_ref().unwrap().ends_with("the gateway was stopped"), "{status:?}");
    stage.supervisor.started().await.unwrap_err();
}
