//! Sessions: begun, found, closed.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::Environment;
use super::live::{Core, Held, class, closed};
use super::registry::{Absent, Closed, Full};
use super::seat::{Seat, Using};
use crate::session::shortened;

/// Why there is no new session.
#[derive(Clone, Debug)]
pub(super) enum NoSession {
    Full(Full),
    /// The environment could not be made; the log says why.
    Factory(&'static str),
}

impl<E: Environment> Core<E> {
    /// Begins a session. A WebSocket's ends with its seat; another's too, unless the seat is [kept](Seat::keep).
    ///
    /// # Errors
    /// If there is no place, or no environment.
    pub(super) async fn create(self: &Arc<Self>, by_websocket: bool) -> Result<Seat<E>, NoSession> {
        let id: Arc<str> = Uuid::new_v4().to_string().into();
        let reserved = self.registry().reserve(id.clone(), by_websocket, Instant::now());
        reserved.map_err(NoSession::Full)?;
        let held = Held::default();
        // From here on it gives up the place if it is dropped.
        let seat = Seat::of_new(self.clone(), id.clone(), held.clone());
        let core = self.clone();
        let made = self.run(async move {
            // Whoever waits for it may leave: its place is this one's to free until it is open.
            let made = core.make().inspect_err(|_| core.registry().forget(&id))?;
            *held.lock().await = Some(made);
            let opened = core.registry().open(&id, held, Instant::now());
            if let Err(unwanted) = opened {
                close_held(&unwanted).await;
                core.registry().forget(&id);
            }
            Ok(())
        });
        match made.await.flatten() {
            Ok(()) => Ok(seat),
            Err(error) => {
                tracing::error!(environment = class::<E>(), %error, "a session could not begin");
                Err(NoSession::Factory(class::<E>()))
            }
        }
    }

    /// Attaches a WebSocket to a session.
    ///
    /// # Errors
    /// If the session is not there, not yet, or has one.
    pub(super) fn attach(self: &Arc<Self>, id: &str) -> Result<Seat<E>, Absent> {
        let held = self.registry().attach(id)?;
        Ok(Seat::of_guest(self.clone(), id.into(), held))
    }

    /// Takes a session for an operation.
    ///
    /// # Errors
    /// If it is not there, or not yet.
    pub(super) fn using(self: &Arc<Self>, id: &str) -> Result<Using<E>, Absent> {
        let held = self.registry().begin_use(id, Instant::now())?;
        Ok(Using::new(self.clone(), id.into(), held))
    }

    /// Closes a session for a client; whether it is closed now, or when the WebSocket that is attached leaves.
    ///
    /// # Errors
    /// If it is not there, or not yet.
    pub(super) async fn close(self: &Arc<Self>, id: &str) -> Result<bool, Absent> {
        let closed = self.registry().close(id)?;
        match closed {
            Closed::Later => Ok(false),
            Closed::Now(held) => {
                self.end(id.into(), held).await;
                Ok(true)
            }
        }
    }

    /// Closes the environment of a session that has ended, behind the operation that runs, and frees its place.
    pub(super) fn end(self: &Arc<Self>, id: Arc<str>, held: Held<E>) -> impl Future<Output = ()> + use<E> {
        let core = self.clone();
        let closing = self.tasks.spawn(async move {
            let environment = held.lock().await.take();
            if let Some(environment) = environment
                && let Err(error) = core.run(closed(environment)).await
            {
                tracing::error!(session = shortened(&id), %error, "an environment's close failed");
            }
            core.registry().forget(&id);
        });
        async move {
            // It catches the author's panic, and only the end of the runtime aborts it.
            let _ended = closing.await;
        }
    }

    /// Ends idle sessions every so often, for as long as the server is there.
    pub(super) fn keep_swept(self: &Arc<Self>) {
        let Some(idle) = self.limits.session_idle_timeout else { return };
        let every = (idle / 4).clamp(Duration::from_millis(100), Duration::from_secs(30));
        let core: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                let Some(core) = core.upgrade() else { return };
                let ended = core.registry().end_idle(Instant::now(), idle);
                for (id, held) in ended {
                    tracing::info!(session = shortened(&id), "ended: unused for {idle:?}");
                    // Side by side: a close that takes its time holds up no other.
                    drop(core.end(id, held));
                }
            }
        });
    }

    /// Closes every environment. WebSockets have been told to end; if it `waits`, their operations and others may still
    /// run, and are waited for.
    pub(super) async fn shut_down(self: &Arc<Self>, waits: bool) {
        if waits {
            self.tasks.close();
            self.tasks.wait().await;
        }
        let ended = self.registry().end_every();
        let mut closing = Vec::new();
        for (id, held) in ended {
            match held.try_lock().is_ok() || waits {
                true => closing.push(self.end(id, held)),
                false => tracing::warn!(session = shortened(&id), "not closed: an operation uses it"),
            }
        }
        futures_util::future::join_all(closing).await;
    }
}

async fn close_held<E: Environment>(held: &Held<E>) {
    if let Some(environment) = held.lock().await.take() {
        closed(environment).await;
    }
}

impl fmt::Display for NoSession {
    /// In OpenEnv's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(Full { active, limit }) => write!(
                f,
                "Server at capacity: {active}/{limit} sessions active. Cannot accept new connections."
            ),
            Self::Factory(name) => {
                write!(f, "Environment factory '{name}' failed to create instance.")
            }
        }
    }
}

impl NoSession {
    /// What is told beside the words.
    pub(super) fn data(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Full(Full { active, limit }) => {
                vec![("active_sessions", (*active).into()), ("max_sessions", (*limit).into())]
            }
            Self::Factory(name) => vec![("factory_name", (*name).into())],
        }
    }
}
