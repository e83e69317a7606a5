//! Steps whose client may leave and come back for the reply.

use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::Result;
use crate::errors::Failure;

/// Waits for `step`. If the client leaves meanwhile, and this is dropped, the step goes on for at most `patience`, or
/// until the server stops, when nobody can ask again.
pub(super) async fn with_patience<T: Send + 'static>(
    patience: Duration,
    stopping: CancellationToken,
    step: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let task = tokio::spawn(step);
    let mut left = ClientLeft { task: Some(task.abort_handle()), patience, stopping };
    let result = task.await;
    left.task = None;
    result.unwrap_or_else(|_| Err(Failure::fault("the server stops")))
}

/// When dropped before its task is done.
struct ClientLeft {
    task: Option<AbortHandle>,
    patience: Duration,
    stopping: CancellationToken,
}

impl Drop for ClientLeft {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else { return };
        let (patience, stopping) = (self.patience, self.stopping.clone());
        // Without a runtime its tasks are gone too.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // Whichever comes first.
                let _elapsed = tokio::time::timeout(patience, stopping.cancelled()).await;
                task.abort();
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(300);

    /// A step that waits for a word, and says when it is dropped; its client leaves at once.
    async fn left(stopping: &CancellationToken) -> (oneshot::Sender<()>, oneshot::Receiver<()>) {
        let (word, waits) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel::<()>();
        let step = async move {
            let _dropped_with_the_step = done;
            waits.await.map_err(|_| Failure::fault("gone"))
        };
        let mut asked = Box::pin(with_patience(PATIENCE, stopping.clone(), step));
        assert!(futures_util::poll!(asked.as_mut()).is_pending());
        (word, is_done)
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_outlives_its_client_for_a_while() {
        let (word, is_done) = left(&CancellationToken::new()).await;
        tokio::time::sleep(PATIENCE / 2).await;
        word.send(()).unwrap();
        is_done.await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_step_does_not_outlive_it_for_ever() {
        let (mut word, is_done) = left(&CancellationToken::new()).await;
        let begin = tokio::time::Instant::now();
        is_done.await.unwrap_err();
        assert_eq!(begin.elapsed().as_secs(), PATIENCE.as_secs());
        word.closed().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_does_not_wait_for_a_step_that_nobody_waits_for() {
        let stopping = CancellationToken::new();
        let (mut word, is_done) = left(&stopping).await;
        let begin = tokio::time::Instant::now();
        stopping.cancel();
        is_done.await.unwrap_err();
        assert_eq!(begin.elapsed(), Duration::ZERO);
        word.closed().await;
    }

    #[tokio::test]
    async fn who_stays_gets_the_result() {
        let stopping = CancellationToken::new();
        let result = with_patience(PATIENCE, stopping, async { Ok(1) }).await;
        assert_eq!(result.unwrap(), 1);
    }
}
