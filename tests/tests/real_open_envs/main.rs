//! The gateway in front of real, unmodified servers of Open Reward Standard and Model Context Protocol, with their own
//! clients.
//!
//! `GYM_E2E_EPISODES` (40) sets how many sessions there are, all at the same time. `make e2e` runs all at full size. Without a fit
//! Python every test here says that it is skipped.

#![allow(clippy::expect_used, reason = "tests: a broken assumption is to fail the test where it stands")]

mod front;
mod mcp;
mod ors;
mod sessions;

use tokio::sync::{Mutex, MutexGuard};

/// Held by the test that runs: each starts more Python processes than the machine has cores.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::const_new(());
    ONE.lock().await
}
