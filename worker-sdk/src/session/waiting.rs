//! Waiting for a session's locks, with a word in the log if one takes long.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::poll;
use tokio::time::timeout;

use super::caller::Caller;
use super::store::shortened;

/// How long a request waits for another of its session before that is said.
pub(super) const LONG: Duration = Duration::from_secs(30);

/// Which request holds a lock.
#[derive(Debug, Default)]
pub(super) struct Holder(Mutex<Option<Caller>>);

impl Holder {
    /// To be called by whoever has got the lock.
    pub(super) fn is(&self, caller: Option<&Caller>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = caller.cloned();
    }

    /// To be called before the lock is let go.
    pub(super) fn leaves(&self) {
        self.is(None);
    }

    fn route(&self) -> String {
        let holder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        holder.as_ref().map_or_else(|| "a release".into(), Caller::route)
    }
}

/// Waits for a lock of the session, for `caller`.
pub(super) async fn wait<T>(lock: impl Future<Output = T>, id: &str, caller: &Caller, holder: &Holder) -> T {
    let mut lock = pin!(lock);
    if let std::task::Poll::Ready(locked) = poll!(lock.as_mut()) {
        return locked;
    }
    if let Ok(locked) = timeout(LONG, lock.as_mut()).await {
        return locked;
    }
    tracing::warn!(
        session = shortened(id),
        route = caller.route(),
        holder = holder.route(),
        "a request has waited {} s for another of its session. If that one waits for this one, since its handler asks \
         its own server with the session's cookie, neither ends: let the handler drop its `StateGuard` before, or call \
         the function instead of the route",
        LONG.as_secs(),
    );
    lock.await
}
