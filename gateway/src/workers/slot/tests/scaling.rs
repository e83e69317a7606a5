//! As many workers as needed.

use super::*;
use crate::{
    config::{ElasticSettings, StartedAs},
    workers::ScaleTotals,
};

const SECOND: Duration = Duration::from_secs(1);

/// Two workers, of one to four, for ten sessions each.
fn elastic() -> Play {
    play_with(2, |settings| {
        settings.elastic = ElasticSettings {
            min_workers: Some(1),
            max_workers: Some(4),
            target_sessions_per_worker: Some(10),
        };
    })
}

impl Play {
    async fn no_start_for(&mut self, time: Duration) {
        tokio::time::sleep(time).await;
        self.settle().await;
        assert!(self.starts.try_recv().is_err());
    }

    fn scales(&self) -> (u64, u64) {
        let ScaleTotals { grown, shrunk } = self.supervisor.scales();
        (grown, shrunk)
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_server_gets_a_worker_and_no_other_until_that_one_is_ready_and_full() {
    let mut stage = elastic();
    let _old = stage.all_ready(2).await;
    stage.hold(0, 1, 10);
    stage.hold(1, 1, 9);
    stage.no_start_for(600 * SECOND).await;
    stage.hold(1, 1, 10);
    let began = Instant::now();
    let mut third = stage.start(2, 1).await;
    assert!(began.elapsed() >= 2 * SECOND && began.elapsed() <= 4 * SECOND, "{:?}", began.elapsed());
    stage.no_start_for(100 * SECOND).await;
    third.becomes_ready();
    stage.no_start_for(600 * SECOND).await;
    stage.hold(2, 1, 10);
    let _fourth = stage.ready(3, 1).await;
    stage.hold(3, 1, 10);
    stage.no_start_for(600 * SECOND).await;
    assert_eq!(stage.scales(), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn the_emptiest_goes_and_its_sessions_go_on() {
    let mut stage = elastic();
    let mut workers = stage.all_ready(2).await;
    stage.hold(0, 1, 2);
    stage.hold(1, 1, 5);
    tokio::time::sleep(55 * SECOND).await;
    assert_eq!(stage.serving(), [id(0, 1), id(1, 1)]);
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(stage.serving(), [id(1, 1)]);
    let status = stage.status(0);
    assert_eq!(status.state, SlotState::Draining);
    assert!(status.drain.unwrap().reason.starts_with("fewer workers: 7 sessions need no 2 workers of 10"));
    assert!(workers[0].is_left_alone());
    tokio::time::sleep(600 * SECOND).await;
    assert!(workers[0].is_left_alone(), "it has sessions");
    stage.hold(0, 1, 0);
    workers[0].is_asked_to_end().await;
    stage.no_start_for(600 * SECOND).await;
    assert_eq!((stage.serving(), stage.scales()), (vec![id(1, 1)], (0, 1)), "one is the least");
    assert_eq!(stage.supervisor.status().len(), 1);
    // Its number comes back with the next generation.
    stage.hold(1, 1, 10);
    let _again = stage.ready(0, 2).await;
    assert_eq!(stage.scales(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_room_are_a_reason_too() {
    let mut stage = play_with(1, |settings| {
        settings.limits.max_in_flight_per_worker = Some(1);
        settings.elastic.max_workers = Some(2);
    });
    let _old = stage.all_ready(1).await;
    let busy = stage.worker(0, 1).enter().unwrap();
    stage.no_start_for(600 * SECOND).await;
    let mut turn = stage.supervisor.workers().queue().unwrap();
    let _second = stage.ready(1, 1).await;
    assert_eq!(turn.room().await.worker().id, id(1, 1), "it gives room to who waits");
    drop(busy);
}

#[tokio::test(start_paused = true)]
async fn a_reload_of_the_bounds_holds_at_once_and_leaves_the_number_else() {
    let mut stage = elastic();
    let mut workers = stage.all_ready(2).await;
    stage.hold(0, 1, 10);
    stage.hold(1, 1, 10);
    workers.push(stage.ready(2, 1).await);
    let config = stage.supervisor.config();
    let reload = |stage: &Play, min, max| {
        let mut config = ServerConfig::clone(&config);
        (config.settings.elastic.min_workers, config.settings.elastic.max_workers) = (Some(min), Some(max));
        stage.supervisor.reconfigure(&config, &testing::gateway(), |_, _| false, "");
    };
    stage.hold(2, 1, 5);
    reload(&stage, 1, 5);
    stage.no_start_for(5 * SECOND).await;
    assert_eq!(stage.serving().len(), 3);
    reload(&stage, 2, 2);
    stage.no_start_for(5 * SECOND).await;
    assert_eq!(stage.serving().len(), 2, "a fixed number is fixed");
    reload(&stage, 2, 5);
    stage.hold(0, 1, 1);
    stage.hold(1, 1, 9);
    reload(&stage, 1, 4);
    stage.no_start_for(5 * SECOND).await;
    assert_eq!(stage.serving(), [id(0, 1), id(1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn it_waits_while_a_roll_brings_in_another_command() {
    let mut stage = elastic();
    let mut old = stage.all_ready(2).await;
    let mut config = ServerConfig::clone(&stage.supervisor.config());
    let Launch::Command { argv, .. } = &mut config.launch else { panic!("no command") };
    *argv = vec!["new".into()];
    let differs = |config: &ServerConfig, old: &StartedAs| config.started_as() != *old;
    stage.supervisor.reconfigure(&config, &testing::gateway(), differs, "new code");
    stage.hold(0, 1, 10);
    stage.hold(1, 1, 10);
    let mut new = stage.start(0, 2).await;
    stage.no_start_for(60 * SECOND).await;
    new.becomes_ready();
    stage.settle().await;
    stage.hold(0, 2, 10);
    let third = stage.start(2, 1).await;
    assert_eq!(third.argv, ["new"]);
    assert!(old[1].is_left_alone());
}

#[tokio::test(start_paused = true)]
async fn an_emptied_server_stays_so() {
    let mut stage = elastic();
    let mut workers = stage.all_ready(2).await;
    let supervisor = Arc::clone(&stage.supervisor);
    let emptied = tokio::spawn(async move { supervisor.empty("removed").await });
    for worker in &mut workers {
        worker.is_asked_to_end().await;
    }
    emptied.await.unwrap();
    stage.no_start_for(600 * SECOND).await;
}
