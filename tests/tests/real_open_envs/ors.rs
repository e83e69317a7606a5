//! openreward's own server and client.

use gym_gateway_tests::harness::Peers;
use serde_json::json;

use crate::{
    alone,
    front::{Front, WORKERS},
    most_are_lost_without_owners,
    sessions::{Sessions, Tally, count},
};

const KIND: &str = "ors_servers";
const SERVER: &str = "ors_server.py";
const CLIENT: &str = "ors_sessions.py";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_ors_session_is_its_own() {
    let Some(python) = Peers::OpenEnvs.python("every_ors_session_is_its_own") else { return };
    let _alone = alone().await;
    let front = Front::start(python, KIND, SERVER, json!({})).await;
    let tally = Sessions::play(python, CLIENT, &front.url(), count(), &[]).await;
    assert_eq!(tally, Tally::good(count()));
    front.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_owners_most_ors_sessions_are_lost() {
    let test = "without_owners_most_ors_sessions_are_lost";
    most_are_lost_without_owners(test, KIND, SERVER, CLIENT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_costs_its_own_ors_sessions_and_no_others() {
    let test = "a_killed_worker_costs_its_own_ors_sessions_and_no_others";
    let Some(python) = Peers::OpenEnvs.python(test) else { return };
    let _alone = alone().await;
    let front = Front::start(python, KIND, SERVER, json!({})).await;
    let mut sessions = Sessions::start(python, CLIENT, &front.url(), 32, &["--steps", "4", "--hold"]);
    sessions.held().await;
    for slot in 0..WORKERS {
        assert_eq!(
            front.sessions("open", Some(slot)).await,
            8,
            "on slot {slot}: new ones go to the emptiest"
        );
    }
    front.kill(1).await;
    sessions.go_on().await;
    let tally = sessions.end().await;
    assert_eq!(tally, Tally { ok: 24, lost: 8, ..Tally::default() });
    assert_eq!(front.sessions_lost().await, 8);
    front.until_all_are_ready(2).await;
    assert_eq!(Sessions::play(python, CLIENT, &front.url(), 8, &[]).await, Tally::good(8));
    front.finish().await;
}
