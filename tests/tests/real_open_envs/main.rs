//! The gateway in front of real, unmodified servers of OpenEnv, Open Reward Standard and Model Context Protocol, with their own
//! clients.
//!
//! `GYM_E2E_EPISODES` (40) sets how many sessions there are, all at the same time. `make e2e` runs all at full size. Without a fit
//! Python every test here says that it is skipped.

#![allow(clippy::expect_used, reason = "tests: a broken assumption is to fail the test where it stands")]

mod front;
mod mcp;
mod openenv;
mod ors;
mod sessions;

use gym_gateway_tests::harness::Peers;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};

use crate::{front::Front, sessions::Sessions};

/// Held by the test that runs: each starts more Python processes than the machine has cores.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::const_new(());
    ONE.lock().await
}

/// What the other tests of a kind are worth: the same gateway told to balance without owners loses most sessions.
pub(crate) async fn most_are_lost_without_owners(test: &str, kind: &str, server: &str, client: &str) {
    let Some(python) = Peers::OpenEnvs.python(test) else { return };
    let _alone = alone().await;
    let balanced = json!({"routes_sessions_to_owner": false});
    let front = Front::start(python, kind, server, balanced).await;
    let tally = Sessions::play(python, client, &front.url(), 40, &[]).await;
    assert!(tally.ok < 20, "only {} of 40 sessions were lost", 40 - tally.ok);
    front.finish().await;
}
