//! The gateway in front of the real, unmodified NeMo Gym 0.7: its servers as workers, its agents as clients.
//!
//! `GYM_E2E_EPISODES` (40), `GYM_E2E_CONCURRENCY` (16) and `GYM_E2E_OBSERVABILITY` (`off`, `on`, `both`) set the size;
//! `GYM_E2E_SEED` repeats a run
//! of `signatures`. `make e2e` runs all at full size. Without a fit Python every test here says that it is skipped.

#![allow(clippy::expect_used, reason = "tests: a broken assumption is to fail the test where it stands")]

mod changes;
mod front;
mod kill;
mod peers;
mod rust_servers;
mod signatures;
mod suites;

use tokio::sync::{Mutex, MutexGuard};

/// Held by the test that runs: each starts more Python processes than the machine has cores.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::const_new(());
    ONE.lock().await
}
