//! A worker killed with SIGKILL: its sessions, and only those, are lost, and everything else goes on.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use gym_gateway_tests::harness::{Answer, Call, admin, processes};
use http::Method;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{
    alone,
    front::Front,
    peers::{self, Outcome, Suite},
};

/// The slot whose worker is killed.
const VICTIM: usize = 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_costs_its_own_episodes_and_no_others() {
    let Some(python) = peers::python("a_killed_worker_costs_its_own_episodes_and_no_others") else { return };
    let _alone = alone().await;
    let front = Front::start(python, "example_session_state_mgmt", json!({})).await;
    let port = front.gateway().front().port();
    // The model says nothing until all episodes are open, and the worker is dead.
    let folder = tempfile::tempdir().expect("a folder");
    let killed = folder.path().join("killed");
    let suite = Suite {
        name: "counter",
        server: None,
        episodes: 64,
        concurrency: 64,
        observability: false,
        model_delay_ms: 0,
        model_waits_for: Some(&killed),
    };
    let playing = suite.play(port, python);
    let killing = kill_when_all_are_open(&front, &killed);
    let (outcomes, ()) = tokio::join!(playing, killing);

    let failed = Outcome::failures(&outcomes);
    assert_eq!(
        (outcomes.len(), failed.len()),
        (64, 16),
        "the killed worker held 16 of 64 sessions: {failed:#?}"
    );
    for failure in failed {
        assert!(failure.contains("session_lost"), "for another reason: {failure}");
    }
    assert_eq!(front.sessions_lost().await, 16, "lost sessions");

    until("the slot is back", Duration::from_secs(60), async || is_back(&front).await).await;
    front.assert_settled("the kill").await;
    let again = Suite { episodes: 8, concurrency: 8, model_waits_for: None, ..suite };
    let outcomes = again.play(port, python).await;
    assert_eq!(Outcome::failures(&outcomes), [""; 0], "after the slot was back");
    front.stop().await;
}

/// Kills the victim when 64 sessions are open, 16 on each worker, and lets the model speak.
async fn kill_when_all_are_open(front: &Front, killed: &Path) {
    until("64 open sessions", Duration::from_secs(60), async || front.sessions("open", None).await == 64)
        .await;
    for slot in 0..4 {
        assert_eq!(
            front.sessions("open", Some(slot)).await,
            16,
            "sessions of slot {slot}: new ones go to the emptiest"
        );
    }

    let pid = front.worker_number(VICTIM, "pid").await;
    processes::signal(pid, Signal::SIGKILL);
    processes::gone(pid).await;
    std::fs::write(killed, "").expect("a file");
}

/// Each session has an interpreter, forked by its worker, that runs while the worker is killed. Those inherit the
/// worker's listening socket, so that its address still accepts connections, and never answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_flight_at_a_killed_worker_get_410_at_once() {
    let Some(python) = peers::python("requests_in_flight_at_a_killed_worker_get_410_at_once") else { return };
    let _alone = alone().await;
    let front = Front::start(python, "math_with_code", json!({})).await;
    let address = front.gateway().front();
    let mut calls = Vec::new();
    for n in 0..8 {
        let cookie = seed(&front, n).await;
        let code = json!({"code": "import time\ntime.sleep(5)\nprint('awake')"});
        let call = Call::new(address, Method::POST, "/execute_python").header("cookie", cookie).json(&code);
        calls.push(tokio::spawn(async move {
            let answer = call.send().await;
            (answer, Instant::now())
        }));
    }
    admin::metrics_until(front.gateway(), "8 requests in flight", |metrics| {
        metrics.sum(admin::metric::IN_FLIGHT, &[]) == 8.0
    })
    .await;
    let pid = front.worker_number(VICTIM, "pid").await;
    let generation = front.worker_number(VICTIM, "generation").await;
    let forked = front.with_variable(&format!("GYM_WORKER_SLOT={VICTIM}"));
    assert!(forked.len() > 1, "the worker has no interpreter of its own: {forked:?}");

    processes::signal(pid, Signal::SIGKILL);
    processes::gone(pid).await;
    let exited = Instant::now();

    let mut lost = Vec::new();
    for call in calls {
        let (answer, at) = call.await.expect("a call");
        if answer.status == 200 {
            assert_eq!(answer.json()["stdout"], "awake\n", "another worker's session: {}", answer.json());
        } else {
            answer.assert_refused(410, "session_lost");
            lost.push(at.saturating_duration_since(exited));
        }
    }
    assert_eq!(lost.len(), 2, "the killed worker held 2 of 8 sessions");
    let slowest = lost.iter().max().expect("two");
    assert!(*slowest < Duration::from_millis(100), "410 took {slowest:?} from the worker's exit");
    for pid in forked {
        processes::gone(pid).await;
    }
    until("the slot is back", Duration::from_secs(60), async || is_back(&front).await).await;
    assert_eq!(front.worker_number(VICTIM, "generation").await, generation + 1);
    admin::quiet(front.gateway()).await;
    front.stop().await;
}

/// Opens a session as an environment server does, without a cookie: the cookie that the reply sets.
async fn seed(front: &Front, n: u32) -> String {
    let body = json!({
        "resources_session_id": format!("resources-session-{n}"),
        "episode_id": {"rollout_id": format!("kill-{n}"), "attempt": 0},
        "task_id": {"taskset": "kill", "task_id": n.to_string()},
        "task_data": {},
    });
    let answer: Answer = front.gateway().post("/seed_session").json(&body).send().await.assert(200);
    let cookie = answer.text("set-cookie");
    cookie.split(';').next().expect("a cookie").to_owned()
}

async fn is_back(front: &Front) -> bool {
    let worker: Value = front.workers().await.swap_remove(VICTIM);
    worker["state"] == "ready" && worker["generation"].as_u64() > Some(1)
}

async fn until(what: &str, limit: Duration, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(limit, wait).await.is_ok(), "not within {limit:?}: {what}");
}
