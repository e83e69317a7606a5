//! What is kept of one session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use gym_wire::message::{EpisodeId, SeedSessionResponse};
use serde_json::value::RawValue;
use tokio::sync::{Mutex, MutexGuard};

use super::caller::Caller;
use super::steps::Steps;
use super::waiting::{Holder, wait};

/// Where a session's life is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// No seed has succeeded yet.
    Fresh,
    /// It has a state.
    Open,
    /// Its state is released; a legacy seed may start it anew.
    Ended,
    /// Its state is released, and a seed is refused: the fence.
    Closed,
}

/// One session. Alive handles are counted by its `Arc`, so that a session in use is never reclaimed.
#[derive(Debug)]
pub(crate) struct Record<S> {
    pub(crate) id: Arc<str>,
    /// A copy of what `inner` says, to be read without its lock; written within it.
    phase: AtomicU8,
    /// How often it was opened; written within the lock. Whoever began in one life has no part in the next.
    life: AtomicU32,
    /// Milliseconds since the store was made.
    last_use: AtomicU64,
    /// The session's lock: its seeds, its close and whoever uses its state run one at a time.
    pub(crate) inner: Arc<Mutex<Inner<S>>>,
    /// One verify, or one step, at a time, so that a repeated one meets the first one's reply. It does not hold the state.
    in_turn: Mutex<()>,
    /// Who holds the session's lock.
    pub(super) holder: Holder,
    /// Whose turn it is.
    turn_of: Holder,
}

/// What the session's lock protects.
#[derive(Debug)]
pub(crate) struct Inner<S> {
    /// There while it is open.
    pub(crate) state: Option<S>,
    /// The episode of its seed, or of the close that came first; none of a legacy session.
    pub(crate) episode: Option<EpisodeId>,
    /// What its episode seed was answered, for repeats.
    pub(crate) seeded: Option<Box<SeedSessionResponse>>,
    /// The last reply that a client may ask for again, under what names its request.
    pub(crate) replayable: Option<Replayable>,
    /// The named steps of this life and of those before.
    pub(super) steps: Steps,
}

/// A caller's turn, until it is dropped.
pub(crate) struct Turn<'r> {
    holder: &'r Holder,
    _lock: MutexGuard<'r, ()>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.holder.leaves();
    }
}

/// A reply that is given again to the same request: its first copy may have been lost.
#[derive(Clone, Debug)]
pub(crate) struct Replayable {
    /// The request's own name, or a digest of it.
    pub(crate) request: Arc<str>,
    /// JSON.
    pub(crate) reply: Arc<RawValue>,
}

impl<S> Record<S> {
    pub(crate) fn new(id: Arc<str>, now: u64) -> Self {
        Self::in_phase(Phase::Fresh, id, None, now)
    }

    /// One that is open, and never in a store.
    pub(crate) fn opened(id: Arc<str>, state: S) -> Self {
        Self::in_phase(Phase::Open, id, Some(state), 0)
    }

    fn in_phase(phase: Phase, id: Arc<str>, state: Option<S>, now: u64) -> Self {
        let inner = Inner { state, episode: None, seeded: None, replayable: None, steps: Steps::default() };
        Self {
            id,
            phase: AtomicU8::new(phase as u8),
            life: AtomicU32::new(0),
            last_use: AtomicU64::new(now),
            inner: Arc::new(Mutex::new(inner)),
            in_turn: Mutex::new(()),
            holder: Holder::default(),
            turn_of: Holder::default(),
        }
    }

    /// Waits for the caller's turn.
    pub(crate) async fn turn(&self, caller: &Caller) -> Turn<'_> {
        let lock = wait(self.in_turn.lock(), &self.id, caller, &self.turn_of).await;
        self.turn_of.is(Some(caller));
        Turn { holder: &self.turn_of, _lock: lock }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Fresh,
            1 => Phase::Open,
            2 => Phase::Ended,
            _ => Phase::Closed,
        }
    }

    /// Must be called within the session's lock.
    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// Which of its lives it is in.
    pub(crate) fn life(&self) -> u32 {
        self.life.load(Ordering::Acquire)
    }

    /// Whether that life has ended, or another begun.
    pub(crate) fn life_is_over(&self, life: u32) -> bool {
        self.phase() != Phase::Open || self.life() != life
    }

    /// Must be called within the session's lock.
    pub(crate) fn begin_life(&self) {
        self.life.fetch_add(1, Ordering::AcqRel);
        self.set_phase(Phase::Open);
    }

    pub(crate) fn touch(&self, now: u64) {
        self.last_use.fetch_max(now, Ordering::Relaxed);
    }

    pub(crate) fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }
}
