//! Workers are replaced, added and taken away while episodes run, and no episode notices.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gym_gateway_tests::harness::{admin, setup::SERVER};
use serde_json::json;

use crate::{
    alone,
    front::Front,
    peers::{self, Outcome, Suite},
};

/// How long all changes may take on a busy machine: each new worker is a Python process that starts.
const CHANGES: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_episode_is_lost_to_a_rolling_restart_and_reloads() {
    let Some(python) = peers::python("no_episode_is_lost_to_a_rolling_restart_and_reloads") else { return };
    let _alone = alone().await;
    // Short, since each old worker stays for so long after its last session.
    let settings = json!({"session_close_retry_window_seconds": 2});
    let front = Arc::new(Front::start(python, "example_session_state_mgmt", settings).await);
    let port = front.gateway().front().port();
    let done = Arc::new(AtomicBool::new(false));
    let changing = tokio::spawn({
        let (front, done) = (front.clone(), done.clone());
        async move {
            let changed = tokio::time::timeout(CHANGES, changes(&front)).await;
            done.store(true, Ordering::Relaxed);
            changed.expect("the changes take no longer than that");
        }
    });
    // The model thinks, so that sessions are open while workers come and go.
    let suite = Suite {
        name: "counter",
        server: None,
        episodes: peers::episodes(),
        concurrency: peers::concurrency(),
        observability: false,
        model_delay_ms: 500,
        model_waits_for: None,
    };
    let mut rounds = 0;
    while !done.load(Ordering::Relaxed) {
        let outcomes = suite.play(port, python).await;
        assert_eq!(outcomes.len(), suite.episodes as usize, "episodes missing from the report");
        let bad = Outcome::failures(&outcomes);
        assert!(bad.is_empty(), "round {rounds}: {} episodes are not ok: {bad:#?}", bad.len());
        rounds += 1;
    }
    changing.await.expect("the changes");
    println!("{rounds} rounds of {} episodes, all ok", suite.episodes);
    let metrics = admin::metrics(front.gateway()).await;
    assert_eq!(metrics.sum("gym_gateway_sessions_lost_total", &[]), 0.0);
    assert_eq!(metrics.sum("gym_gateway_drains_cut_total", &[]), 0.0);
    assert_eq!(metrics.sum("gym_gateway_rolling_restarts_total", &[("result", "done")]), 1.0);
    front.assert_settled("the changes").await;
    let front = Arc::try_unwrap(front).expect("nobody else has it");
    front.stop().await;
}

/// A rolling restart of four workers, then six of them, then three.
async fn changes(front: &Front) {
    let restarted = front.gateway().command(&["restart", SERVER]).await;
    assert!(restarted.status.success(), "{restarted:?}");
    front.reload(6).await;
    until_workers(front, 6).await;
    front.reload(3).await;
    until_workers(front, 3).await;
    for worker in front.workers().await {
        assert_eq!(worker["generation"], 2, "restarted once: {worker}");
    }
}

/// Waits until there are so many, every one of them ready, and none beside them.
async fn until_workers(front: &Front, count: usize) {
    loop {
        let workers = front.workers().await;
        let alone = workers.iter().all(|worker| worker["state"] == "ready" && worker["others"] == json!([]));
        if alone && workers.len() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
