//! The sessions of one server: found by ID, locked one by one, fenced, reclaimed.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use dashmap::DashMap;
use futures_util::future::BoxFuture;
use gym_wire::message::EpisodeId;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Released;
use super::caller::Caller;
use super::record::{Inner, Phase, Record};
use super::waiting::wait;
use crate::errors::catch_panic;

/// How long sessions are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long an ended or closed session is remembered after its last use.
    pub(crate) window: Duration,
    /// How long an open session may go unused before it is reclaimed.
    pub(crate) idle: Duration,
}

/// Gives back what a state holds: the author's `release`.
pub(crate) type ReleaseHook<S> = Box<dyn Fn(Arc<str>, S, Released) -> BoxFuture<'static, ()> + Send + Sync>;

/// Every session that is open or remembered.
pub(crate) struct Store<S> {
    sessions: DashMap<Arc<str>, Arc<Record<S>>>,
    pub(super) limits: Limits,
    hook: ReleaseHook<S>,
    /// Releases that run: a stop waits for them.
    releases: TaskTracker,
    stopping: CancellationToken,
    start: Instant,
}

impl<S: Send + 'static> Store<S> {
    pub(crate) fn new(limits: Limits, hook: ReleaseHook<S>) -> Arc<Self> {
        let (sessions, releases, stopping) = (DashMap::new(), TaskTracker::new(), CancellationToken::new());
        Arc::new(Self { sessions, limits, hook, releases, stopping, start: Instant::now() })
    }

    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The session of that ID, in whatever phase, if it is known.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Record<S>>> {
        let record = self.sessions.get(id)?.clone();
        record.touch(self.now());
        Some(record)
    }

    /// The session of that ID, if it is open.
    pub(crate) fn find_open(&self, id: &str) -> Option<Arc<Record<S>>> {
        self.find(id).filter(|record| record.phase() == Phase::Open)
    }

    /// Takes the lock of the caller's session, after whoever has it; the session is made if it is not known.
    pub(crate) async fn lock(self: &Arc<Self>, caller: &Caller) -> Locked<S> {
        let (id, now) = (caller.id(), self.now());
        // The map's own lock must be gone before the wait for the session's.
        let record = {
            let make = || Arc::new(Record::new(id.clone(), now));
            self.sessions.entry(id.clone()).or_insert_with(make).value().clone()
        };
        record.touch(now);
        self.lock_record(record, caller).await
    }

    /// The same for a session that is at hand.
    pub(crate) async fn lock_record(self: &Arc<Self>, record: Arc<Record<S>>, caller: &Caller) -> Locked<S> {
        let inner = wait(record.inner.clone().lock_owned(), &record.id, caller, &record.holder).await;
        record.holder.is(Some(caller));
        Locked { store: self.clone(), record, inner }
    }

    /// Reclaims open sessions that nobody has used for the idle limit, and forgets ended and closed ones after their
    /// window. A session with a request under way is in use.
    pub(crate) fn sweep(self: &Arc<Self>) {
        let now = self.now();
        let mut stale = Vec::new();
        self.sessions.retain(|_, record| {
            let age = Duration::from_millis(now.saturating_sub(record.last_use()));
            match record.phase() {
                _ if Arc::strong_count(record) > 1 => true,
                Phase::Open => {
                    if age >= self.limits.idle {
                        stale.push(record.clone());
                    }
                    true
                }
                Phase::Fresh | Phase::Ended | Phase::Closed => age < self.limits.window,
            }
        });
        for record in stale {
            // Whoever has the lock uses the session.
            let Ok(inner) = record.inner.clone().try_lock_owned() else { continue };
            let locked = Locked { store: self.clone(), record, inner };
            let age = Duration::from_millis(now.saturating_sub(locked.record.last_use()));
            // Used since: by somebody who has it (the map and this have it too), or had it.
            if Arc::strong_count(&locked.record) > 2 || age < self.limits.idle {
                continue;
            }
            tracing::info!(session = shortened(&locked.record.id), "reclaimed: unused for {age:?}");
            // Side by side: a release that takes its time, or for ever, holds up no other.
            let _task = locked.begin_end(Phase::Ended, Released::Idle);
        }
    }

    /// Sweeps every so often, for as long as the store is there.
    pub(crate) fn keep_swept(self: &Arc<Self>) {
        let every = self.limits.idle.min(self.limits.window) / 4;
        let every = every.clamp(Duration::from_millis(100), Duration::from_secs(30));
        let store: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                let Some(store) = store.upgrade() else { return };
                store.sweep();
            }
        });
    }

    /// Cancelled when the server begins to stop, while requests still finish.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Releases every state, and waits for the releases that run. The requests must be over; if they are not, and this
    /// does not wait for them, the states that they use are not released.
    pub(crate) async fn shut_down(self: &Arc<Self>, waits: bool) {
        let records: Vec<_> = self.sessions.iter().map(|entry| entry.value().clone()).collect();
        for record in records {
            let locked = match record.inner.clone().try_lock_owned() {
                Ok(inner) => Locked { store: self.clone(), record, inner },
                Err(_) if waits => {
                    let inner = record.inner.clone().lock_owned().await;
                    Locked { store: self.clone(), record, inner }
                }
                Err(_) => {
                    tracing::warn!(session = shortened(&record.id), "not released: a request uses it");
                    continue;
                }
            };
            if locked.record.phase() == Phase::Open {
                // Side by side: a release may take its time.
                let _task = locked.begin_end(Phase::Ended, Released::Shutdown);
            }
        }
        self.releases.close();
        self.releases.wait().await;
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }
}

impl<S> fmt::Debug for Store<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("sessions", &self.sessions.len()).finish_non_exhaustive()
    }
}

/// A session whose lock is held.
pub(crate) struct Locked<S: Send + 'static> {
    pub(super) store: Arc<Store<S>>,
    pub(crate) record: Arc<Record<S>>,
    pub(crate) inner: OwnedMutexGuard<Inner<S>>,
}

impl<S: Send + 'static> Locked<S> {
    /// Opens the session with this state, anew if it was open: what it held is released beside it.
    pub(crate) fn open(&mut self, state: S, episode: Option<EpisodeId>) {
        let inner = &mut *self.inner;
        let before = inner.state.replace(state);
        (inner.episode, inner.seeded, inner.replayable) = (episode, None, None);
        self.record.begin_life();
        if let Some(before) = before {
            let release = self.hook(before, Released::Restarted);
            self.store.releases.spawn(release);
        }
    }

    /// Where tasks run that a stop waits for.
    pub(crate) fn tracker(&self) -> TaskTracker {
        self.store.releases.clone()
    }

    /// The author's release, which may panic, as a task that does not.
    fn hook(&self, state: S, why: Released) -> impl Future<Output = ()> + Send + use<S> {
        let id = self.record.id.clone();
        let release = (self.store.hook)(id.clone(), state, why);
        async move {
            if let Err(failure) = catch_panic(release).await {
                tracing::error!(session = shortened(&id), "the release failed: {failure}");
            }
        }
    }

    /// Takes the session to `phase` and releases its state, if it has one. That goes on to its end under the session's
    /// lock, even if the caller's client leaves; this comes back when it is done.
    pub(crate) async fn end(self, phase: Phase, why: Released) {
        if let Some(task) = self.begin_end(phase, why) {
            // It catches its own panic, and only the end of the runtime aborts it.
            let _ended = task.await;
        }
    }

    /// The same, without waiting for the release, which the task is; `None` if there was no state.
    fn begin_end(mut self, phase: Phase, why: Released) -> Option<JoinHandle<()>> {
        self.record.set_phase(phase);
        // No seed is repeated after this, and a reply may be large.
        self.inner.seeded = None;
        let state = self.inner.state.take()?;
        let release = self.hook(state, why);
        let releases = self.store.releases.clone();
        Some(releases.spawn(async move {
            release.await;
            drop(self);
        }))
    }
}

impl<S: Send + 'static> Drop for Locked<S> {
    fn drop(&mut self) {
        self.record.touch(self.store.now());
        self.record.holder.leaves();
        // A seed that failed leaves nothing, unless another waits for the lock.
        if self.record.phase() == Phase::Fresh {
            let mine =
                |record: &Arc<Record<S>>| record.phase() == Phase::Fresh && Arc::strong_count(record) <= 2;
            self.store.sessions.remove_if(&self.record.id, |_, record| mine(record));
        }
    }
}

/// An ID's first eight characters, for logs: whoever has the whole can act for the session.
pub(crate) fn shortened(id: &str) -> &str {
    id.char_indices().nth(8).map_or(id, |(end, _)| &id[..end])
}
