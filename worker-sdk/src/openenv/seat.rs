//! Who is at a session: a WebSocket, or one operation.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Environment;
use super::live::{Core, Held};

/// Whoever began a session, or a WebSocket that is attached to one. Leaves it when it is dropped.
pub(super) struct Seat<E: Environment> {
    core: Arc<Core<E>>,
    pub(super) id: Arc<str>,
    pub(super) held: Held<E>,
    leaving: Leaving,
}

/// What becomes of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// It ends.
    Ends,
    /// It goes on without the attached WebSocket, unless it was closed meanwhile.
    Detaches,
    /// Nothing: all is done.
    Done,
}

impl<E: Environment> Seat<E> {
    pub(super) fn of_new(core: Arc<Core<E>>, id: Arc<str>, held: Held<E>) -> Self {
        Self { core, id, held, leaving: Leaving::Ends }
    }

    pub(super) fn of_guest(core: Arc<Core<E>>, id: Arc<str>, held: Held<E>) -> Self {
        Self { core, id, held, leaving: Leaving::Detaches }
    }

    /// Leaves the session to itself, which nobody ends by leaving.
    pub(super) fn keep(mut self) -> Arc<str> {
        self.leaving = Leaving::Done;
        self.id.clone()
    }

    /// Leaves, and comes back when an environment that is closed with that is closed.
    pub(super) async fn leave(mut self) {
        if let Some(ended) = self.left() {
            ended.await;
        }
    }

    fn left(&mut self) -> Option<impl Future<Output = ()> + use<E>> {
        let leaving = std::mem::replace(&mut self.leaving, Leaving::Done);
        let ended = match leaving {
            Leaving::Ends => self.core.registry().end(&self.id),
            Leaving::Detaches => self.core.registry().detach(&self.id, Instant::now()),
            Leaving::Done => None,
        };
        Some(self.core.end(self.id.clone(), ended?))
    }
}

impl<E: Environment> Drop for Seat<E> {
    fn drop(&mut self) {
        // What is closed with that is closed on a task of its own; without a runtime everything ends anyway.
        if Handle::try_current().is_ok() {
            drop(self.left());
        }
    }
}

/// One operation of a session, from when it is asked for until it is over.
pub(super) struct Using<E: Environment> {
    core: Arc<Core<E>>,
    id: Arc<str>,
    pub(super) held: Held<E>,
}

impl<E: Environment> Using<E> {
    pub(super) fn new(core: Arc<Core<E>>, id: Arc<str>, held: Held<E>) -> Self {
        Self { core, id, held }
    }
}

impl<E: Environment> Drop for Using<E> {
    fn drop(&mut self) {
        self.core.registry().end_use(&self.id, Instant::now());
    }
}
