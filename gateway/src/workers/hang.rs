//! Sees that a worker hangs: no reply to a probe, and none to a request meanwhile.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{Worker, shared::Shared};

/// How often the config is looked at where there is no limit.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a worker that answers nothing is asked: a quarter of the limit, within these bounds.
const ASK_EVERY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(15));

/// Returns when the worker has answered nothing for `hang_timeout_seconds`: for how long it has not. Asks it only while
/// nothing else shows that it lives. For ever where there is no limit.
pub(crate) async fn hung(shared: &Shared, worker: &Worker) -> Duration {
    let mut answered = worker.answered();
    let mut alive = Instant::now();
    loop {
        // Read each time: a reload may have changed it.
        let Some(limit) = shared.config().settings.limits.hang_timeout else {
            sleep(LOOK_EVERY).await;
            alive = Instant::now();
            continue;
        };
        let every = (limit / 4).clamp(ASK_EVERY.0, ASK_EVERY.1);
        sleep(every).await;
        let replies = worker.answered() != answered
            || timeout(every, shared.spawner.answers(&worker.address)).await.unwrap_or(false);
        // A request may have been answered while the probe was not.
        if replies || worker.answered() != answered {
            answered = worker.answered();
            alive = Instant::now();
        } else if alive.elapsed() >= limit {
            return alive.elapsed();
        }
    }
}
