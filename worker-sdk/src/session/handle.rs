//! What a handler gets of its session.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tokio::sync::{OwnedMappedMutexGuard, OwnedMutexGuard};

use super::Released;
use super::caller::Caller;
use super::record::{Inner, Phase, Record};
use super::store::Store;
use super::waiting::{Holder, wait};
use crate::errors::Failure;

/// The session that a request belongs to. While a handler has it, it is not reclaimed as idle.
pub struct Session<S: Send + 'static> {
    caller: Caller,
    record: Arc<Record<S>>,
    store: Arc<Store<S>>,
    /// The session's life that this belongs to: not to what a later start opens under the same ID.
    life: u32,
}

impl<S: Send + 'static> Session<S> {
    pub(crate) fn new(caller: Caller, record: Arc<Record<S>>, store: Arc<Store<S>>) -> Self {
        let life = record.life();
        Self { caller, record, store, life }
    }

    /// Which of the session's lives it belongs to.
    pub(crate) fn life(&self) -> u32 {
        self.life
    }

    /// The session ID: `resources_session_id` of an episode, else that of its cookie.
    pub fn id(&self) -> &str {
        self.caller.uses();
        &self.record.id
    }

    /// The session's state, locked: the session's other requests, also its close, wait until the guard is dropped;
    /// those of other sessions go on.
    /// A handler that takes the lock again while it holds the guard waits for itself, also by a request to its own server;
    /// after 30 s a warning says who waits for whom.
    ///
    /// # Errors
    /// 404 if the session has ended, or begun anew, since the request came in.
    pub async fn state(&self) -> Result<StateGuard<'_, S>, Failure> {
        self.caller.uses();
        let record = &*self.record;
        let inner = wait(record.inner.clone().lock_owned(), &record.id, &self.caller, &record.holder).await;
        let is_mine = self.record.life() == self.life;
        let state = OwnedMutexGuard::try_map(inner, |inner| inner.state.as_mut().filter(|_| is_mine));
        let state = state.map_err(|_ended| unknown_session())?;
        record.holder.is(Some(&self.caller));
        Ok(StateGuard { _holds: Holds(&record.holder), state })
    }

    /// Ends the session: its state is released before this comes back. A start of the same ID may open it again.
    /// The gateway is told by `X-Gym-Session: ended`.
    pub async fn end(self) {
        self.caller.uses();
        let locked = self.store.lock_record(self.record.clone(), &self.caller).await;
        // What a start began meanwhile goes on.
        if self.record.life() != self.life {
            return;
        }
        self.caller.ends();
        if self.record.phase() == Phase::Open {
            locked.end(Phase::Ended, Released::Ended).await;
        }
    }

    /// In `verify`: the session stays open, because a close will follow. The gateway is told by
    /// `X-Gym-Session: open`. Without it a verify ends its session, unless an episode seed opened it.
    pub fn keep_open(&self) {
        self.caller.uses();
        self.caller.keeps_open();
    }
}

impl<S: Send + 'static> Drop for Session<S> {
    fn drop(&mut self) {
        self.record.touch(self.store.now());
    }
}

impl<S: Send + 'static> fmt::Debug for Session<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.record.id).finish()
    }
}

/// A session's state, for as long as this lives.
pub struct StateGuard<'s, S> {
    /// Of the session: nobody ends it while he holds its lock, and waits for himself. Dropped first, within the lock.
    _holds: Holds<'s>,
    state: OwnedMappedMutexGuard<Inner<S>, S>,
}

/// Is told of by who waits.
struct Holds<'s>(&'s Holder);

impl Drop for Holds<'_> {
    fn drop(&mut self) {
        self.0.leaves();
    }
}

impl<S> Deref for StateGuard<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.state
    }
}

impl<S> DerefMut for StateGuard<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.state
    }
}

impl<S: fmt::Debug> fmt::Debug for StateGuard<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}

/// The code of [`unknown_session`].
const UNKNOWN_SESSION: &str = "unknown_session";

impl Failure {
    /// Whether it says that the server does not hold the session.
    pub(crate) fn is_unknown_session(&self) -> bool {
        self.body().get("code").is_some_and(|code| code == UNKNOWN_SESSION)
    }
}

/// 404: the server does not hold the request's session, or the request names none.
pub(crate) fn unknown_session() -> Failure {
    Failure::not_found(
        "unknown session: it was not begun here, or has ended, or the request has no valid session cookie; \
         begin one and send its cookie along",
    )
    .with_code(UNKNOWN_SESSION)
}
