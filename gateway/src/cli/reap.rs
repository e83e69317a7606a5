//! What a process 1 has to do besides: reap everyone whose parent is gone.

use nix::unistd::getpid;
use tokio::signal::unix::{SignalKind, signal};

use crate::keeper;

/// As process 1 (of a container), reaps the dead that nobody else waits for, for ever; else there is nothing to do.
pub(super) async fn as_process_one() {
    if getpid().as_raw() != 1 {
        return;
    }
    let mut deaths = match signal(SignalKind::child()) {
        Ok(deaths) => deaths,
        Err(error) => {
            tracing::error!(%error, "deaths cannot be watched; what others leave behind in this container stays as zombies");
            return;
        }
    };
    tracing::info!("this is process 1: whoever loses its parent is reaped here, and no worker outlives it");
    while deaths.recv().await.is_some() {
        let reaped = tokio::task::spawn_blocking(keeper::reap_strangers).await;
        if let Ok(Err(error)) = reaped {
            tracing::warn!(%error, "cannot look for the dead");
        }
    }
}
