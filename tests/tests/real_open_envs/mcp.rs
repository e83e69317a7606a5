//! A FastMCP server with sessions, over streamable HTTP; the Python SDK's client and FastMCP's.

use gym_gateway_tests::harness::Peers;
use serde_json::json;

use crate::{
    alone,
    front::{Front, WORKERS},
    most_are_lost_without_owners,
    sessions::{Sessions, Tally, count},
};

const KIND: &str = "mcp_servers";
const SERVER: &str = "mcp_server.py";
const CLIENT: &str = "mcp_sessions.py";
const CLIENTS: [&str; 2] = ["mcp", "fastmcp"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mcp_session_is_its_own() {
    let Some(python) = Peers::OpenEnvs.python("every_mcp_session_is_its_own") else { return };
    let _alone = alone().await;
    let front = Front::start(python, KIND, SERVER, json!({})).await;
    for client in CLIENTS {
        let tally = Sessions::play(python, CLIENT, &front.url(), count(), &["--client", client]).await;
        assert_eq!(tally, Tally::good(count()), "{client}");
    }
    assert_eq!(front.sessions("ended", None).await, 2 * count(), "the clients' own DELETE");
    front.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_owners_most_mcp_sessions_are_lost() {
    let test = "without_owners_most_mcp_sessions_are_lost";
    most_are_lost_without_owners(test, KIND, SERVER, CLIENT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_costs_its_own_mcp_sessions_and_no_others() {
    let test = "a_killed_worker_costs_its_own_mcp_sessions_and_no_others";
    let Some(python) = Peers::OpenEnvs.python(test) else { return };
    let _alone = alone().await;
    let front = Front::start(python, KIND, SERVER, json!({})).await;
    for (n, client) in CLIENTS.into_iter().enumerate() {
        let arguments = ["--steps", "4", "--hold", "--client", client];
        let mut sessions = Sessions::start(python, CLIENT, &front.url(), 32, &arguments);
        sessions.held().await;
        // A session counts only once its first reply is there, so that they are spread, but not to the last one.
        let mut open = Vec::new();
        for slot in 0..WORKERS {
            open.push(front.sessions("open", Some(slot)).await);
        }
        assert_eq!(open.iter().sum::<u32>(), 32);
        assert!(open.iter().all(|open| (4..=12).contains(open)), "unevenly spread: {open:?}");
        front.kill(n).await;
        sessions.go_on().await;
        let tally = sessions.end().await;
        assert_eq!(tally, Tally { ok: 32 - open[n], lost: open[n], ..Tally::default() }, "{client}");
        front.until_all_are_ready(2).await;
    }
    front.finish().await;
}
