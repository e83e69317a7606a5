//! Which sessions there are, and what becomes of them: no environments, no sockets, no clock of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The sessions of a server. `V` is where a session's environment is.
#[derive(Debug)]
pub(super) struct Registry<V> {
    limit: usize,
    sessions: HashMap<Arc<str>, Entry<V>>,
}

/// One session. Its place is taken from when it is reserved until it is forgotten.
#[derive(Debug)]
struct Entry<V> {
    phase: Phase<V>,
    /// Whether a WebSocket made it, which it ends with.
    is_owned: bool,
    /// Whether a WebSocket is attached to it that did not make it.
    is_attached: bool,
    /// Whether it ends when that one leaves.
    is_closing: bool,
    /// Operations that run, beside the WebSockets'.
    uses: usize,
    last_use: Instant,
}

/// Where a session's life is.
#[derive(Debug)]
enum Phase<V> {
    /// Its environment is being made.
    Starting,
    Open(V),
    /// Its environment is being closed, or made for nobody: it is unknown to everybody, and holds its place.
    Ending,
}

/// All places are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) active: usize,
    pub(super) limit: usize,
}

/// Why a session cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    Unknown,
    /// It will be there soon.
    Starting,
    /// A WebSocket is attached already. Said to a second one only.
    Attached,
}

/// What becomes of a session that a client closes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Closed<V> {
    /// Its environment is the caller's to close, and then it is to be forgotten.
    Now(V),
    /// When the attached WebSocket leaves.
    Later,
}

impl<V: Clone> Registry<V> {
    /// None yet, and at most `limit` at a time.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, sessions: HashMap::new() }
    }

    /// Takes a place for a session whose environment is then made.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn reserve(&mut self, id: Arc<str>, is_owned: bool, now: Instant) -> Result<(), Full> {
        let active = self.len();
        if active >= self.limit {
            return Err(Full { active, limit: self.limit });
        }
        let entry = Entry {
            phase: Phase::Starting,
            is_owned,
            is_attached: false,
            is_closing: false,
            uses: 0,
            last_use: now,
        };
        self.sessions.insert(id, entry);
        Ok(())
    }

    /// The environment is made. Gives it back if nobody waits for it any more; then it is to be forgotten, too.
    ///
    /// # Errors
    /// The environment, to be closed.
    pub(super) fn open(&mut self, id: &str, environment: V, now: Instant) -> Result<(), V> {
        match self.sessions.get_mut(id) {
            Some(entry) if matches!(entry.phase, Phase::Starting) => {
                entry.phase = Phase::Open(environment);
                entry.last_use = now;
                Ok(())
            }
            _ => Err(environment),
        }
    }

    /// Frees the session's place: its environment was not made, or is closed.
    pub(super) fn forget(&mut self, id: &str) {
        self.sessions.remove(id);
    }

    /// Begins an operation, until [`end_use`](Self::end_use).
    ///
    /// # Errors
    /// If the session is not there, or not yet.
    pub(super) fn begin_use(&mut self, id: &str, now: Instant) -> Result<V, Absent> {
        let (environment, entry) = self.opened(id)?;
        entry.uses += 1;
        entry.last_use = now;
        Ok(environment)
    }

    /// The operation is over.
    pub(super) fn end_use(&mut self, id: &str, now: Instant) {
        if let Some(entry) = self.sessions.get_mut(id) {
            entry.uses = entry.uses.saturating_sub(1);
            entry.last_use = now;
        }
    }

    /// Attaches a WebSocket.
    ///
    /// # Errors
    /// If the session is not there, not yet, or another one is attached.
    pub(super) fn attach(&mut self, id: &str) -> Result<V, Absent> {
        let (environment, entry) = self.opened(id)?;
        if entry.is_attached {
            return Err(Absent::Attached);
        }
        entry.is_attached = true;
        Ok(environment)
    }

    /// The attached WebSocket leaves. The environment, if the session ends with that.
    pub(super) fn detach(&mut self, id: &str, now: Instant) -> Option<V> {
        let (_, entry) = self.opened(id).ok()?;
        entry.is_attached = false;
        entry.last_use = now;
        if entry.is_closing { self.end(id) } else { None }
    }

    /// A client closes the session.
    ///
    /// # Errors
    /// If it is not there, or not yet.
    pub(super) fn close(&mut self, id: &str) -> Result<Closed<V>, Absent> {
        let (_, entry) = self.opened(id)?;
        if entry.is_attached {
            entry.is_closing = true;
            return Ok(Closed::Later);
        }
        self.end(id).map(Closed::Now).ok_or(Absent::Unknown)
    }

    /// Ends the session whatever uses it: the WebSocket that made it is gone, or the server stops. Its environment, to be
    /// closed, and then it is to be forgotten. None if there is no such session, or no environment yet: then whoever makes
    /// one does that.
    pub(super) fn end(&mut self, id: &str) -> Option<V> {
        let entry = self.sessions.get_mut(id)?;
        match std::mem::replace(&mut entry.phase, Phase::Ending) {
            Phase::Open(environment) => Some(environment),
            Phase::Starting | Phase::Ending => None,
        }
    }

    /// Ends those that nobody has used for so long: no WebSocket is there, and no operation runs.
    pub(super) fn end_idle(&mut self, now: Instant, limit: Duration) -> Vec<(Arc<str>, V)> {
        let is_idle = |entry: &Entry<V>| {
            let is_in_use = entry.is_owned || entry.is_attached || entry.uses > 0;
            !is_in_use && now.saturating_duration_since(entry.last_use) >= limit
        };
        self.end_all(is_idle)
    }

    /// Ends all.
    pub(super) fn end_every(&mut self) -> Vec<(Arc<str>, V)> {
        self.end_all(|_| true)
    }

    fn end_all(&mut self, is_meant: impl Fn(&Entry<V>) -> bool) -> Vec<(Arc<str>, V)> {
        let meant = self.sessions.iter().filter(|(_, entry)| is_meant(entry));
        let ids: Vec<Arc<str>> = meant.map(|(id, _)| id.clone()).collect();
        ids.into_iter().filter_map(|id| Some((id.clone(), self.end(&id)?))).collect()
    }

    fn opened(&mut self, id: &str) -> Result<(V, &mut Entry<V>), Absent> {
        let entry = self.sessions.get_mut(id).ok_or(Absent::Unknown)?;
        match &entry.phase {
            Phase::Open(environment) => Ok((environment.clone(), entry)),
            Phase::Starting => Err(Absent::Starting),
            Phase::Ending => Err(Absent::Unknown),
        }
    }

    /// How many places are taken.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }
}

#[cfg(test)]
mod tests;
