//! How many workers a server may have beside the one of each slot.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts extra workers: those that are to take over, and those that drain since another has.
#[derive(Debug)]
pub(crate) struct Surge(watch::Sender<usize>);

/// One extra worker, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Surge>);

impl Surge {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(0)))
    }

    /// Waits until there are fewer than `limit` says at that moment.
    pub(crate) async fn take(self: &Arc<Self>, limit: impl Fn() -> usize) -> Permit {
        let mut changes = self.0.subscribe();
        loop {
            let taken = self.0.send_if_modified(|taken| {
                let free = *taken < limit();
                *taken += usize::from(free);
                free
            });
            if taken {
                return Permit(Arc::clone(self));
            }
            if changes.changed().await.is_err() {
                // Its sender is here.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The limit may have changed.
    pub(crate) fn look_again(&self) {
        self.0.send_modify(|_| {});
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.send_modify(|taken| *taken -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_permit_waits_for_one_that_is_dropped_or_for_a_higher_limit() {
        let surge = Surge::new();
        let limit = Arc::new(AtomicUsize::new(1));
        let take = || {
            let (surge, limit) = (surge.clone(), limit.clone());
            async move { surge.take(|| limit.load(Ordering::Relaxed)).await }
        };
        let first = take().await;
        let second = tokio::spawn(take());
        tokio::pin!(second);
        assert!(timeout(Duration::from_secs(1), &mut second).await.is_err());
        drop(first);
        let second = second.await.unwrap();
        let third = tokio::spawn(take());
        tokio::task::yield_now().await;
        limit.store(2, Ordering::Relaxed);
        surge.look_again();
        let _both = (second, third.await.unwrap());
        limit.store(1, Ordering::Relaxed);
        assert!(timeout(Duration::from_secs(1), take()).await.is_err());
    }
}
