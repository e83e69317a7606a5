//! Environments: made, used, closed.

use std::any::type_name;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::registry::{Absent, Closed, Full, Registry};
use super::schemas::Schemas;
use super::seat::{Seat, Using};
use super::settings::Limits;
use super::{Environment, Metadata};
use crate::errors::catch_panic;
use crate::session::shortened;
use crate::tasks::last_name;
use crate::tools::Tools;
use crate::{Failure, Result};

/// A session's environment under its lock; gone when the session has ended.
pub(super) type Held<E> = Arc<Mutex<Option<E>>>;

/// Makes environments.
pub(super) type Factory<E> = Box<dyn Fn() -> Result<E> + Send + Sync>;

/// What the routes share.
pub(super) struct Core<E: Environment> {
    /// By which the Task API knows it.
    pub(super) name: String,
    pub(super) tools: Tools<E>,
    pub(super) schemas: Schemas,
    pub(super) metadata: Metadata,
    pub(super) limits: Limits,
    factory: Factory<E>,
    registry: std::sync::Mutex<Registry<Held<E>>>,
    /// Operations and WebSockets: a stop waits for them.
    pub(super) tasks: TaskTracker,
    pub(super) stopping: CancellationToken,
}

/// Why there is no new session.
#[derive(Clone, Debug)]
pub(super) enum NoSession {
    Full(Full),
    /// The environment could not be made; the log says why.
    Factory(&'static str),
}

/// Why an operation of a session has no result.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The session has ended.
    Gone,
    Failed(Failure),
}

/// The environment's class, in OpenEnv's words its factory's name.
pub(super) fn class<E>() -> &'static str {
    last_name(type_name::<E>())
}

impl<E: Environment> Core<E> {
    pub(super) fn new(name: String, factory: Factory<E>, limits: Limits) -> Self {
        Self {
            name,
            tools: E::tools(),
            schemas: Schemas::of::<E>(),
            metadata: E::metadata(),
            factory,
            registry: std::sync::Mutex::new(Registry::new(limits.max_concurrent_envs)),
            limits,
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }
    }

    pub(super) fn registry(&self) -> MutexGuard<'_, Registry<Held<E>>> {
        // Under it only maps change: a panic has left none half changed.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an environment. It is the caller's to close.
    pub(super) fn make(&self) -> Result<E> {
        let made = catch_unwind(AssertUnwindSafe(|| (self.factory)()));
        let made = made.unwrap_or_else(|_| Err(Failure::fault("it panicked")));
        made.map_err(|error| Failure::fault(format_args!("no environment was made: {error}")))
    }

    /// Runs something of the author's to its end, whether or not anybody waits for it.
    ///
    /// # Errors
    /// If it panicked.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        operation: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let operation = catch_panic(operation);
        let task = if E::BLOCKS {
            let runtime = Handle::current();
            self.tasks.spawn_blocking(move || runtime.block_on(operation))
        } else {
            self.tasks.spawn(operation)
        };
        // It catches its own panic, and only the end of the runtime aborts it.
        task.await.unwrap_or_else(|_| Err(Failure::fault("the server stopped under it")))
    }

    /// One operation on an environment that is made for it, and closed behind it.
    ///
    /// # Errors
    /// If there is no environment, or the operation failed.
    pub(super) async fn once<T, F>(self: &Arc<Self>, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'e> FnOnce(&'e mut E) -> BoxFuture<'e, Result<T>> + Send + 'static,
    {
        let core = self.clone();
        let outcome = self.run(async move {
            let mut environment = core.make()?;
            let outcome = catch_panic(async { operation(&mut environment).await }).await;
            closed(environment).await;
            outcome.flatten()
        });
        outcome.await.flatten()
    }

    /// One operation of a session, after those that came before it.
    ///
    /// # Errors
    /// If the session has ended, or the operation failed.
    pub(super) async fn operate<T, F>(
        &self,
        held: &Held<E>,
        using: Option<Using<E>>,
        operation: F,
    ) -> Result<T, Trouble>
    where
        T: Send + 'static,
        F: for<'e> FnOnce(&'e mut E) -> BoxFuture<'e, Result<T>> + Send + 'static,
    {
        let mut environment = held.clone().lock_owned().await;
        let outcome = self.run(async move {
            let _until_the_end = using;
            match environment.as_mut() {
                Some(environment) => operation(environment).await.map_err(Trouble::Failed),
                None => Err(Trouble::Gone),
            }
        });
        outcome.await.map_err(Trouble::Failed).flatten()
    }

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
            *held.lock().await = Some(core.make()?);
            let opened = core.registry().open(&id, held, Instant::now());
            if let Err(unwanted) = opened {
                close_held(&unwanted).await;
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

/// The author's close, which may panic.
async fn closed<E: Environment>(environment: E) {
    if let Err(error) = catch_panic(async { environment.close().await }).await {
        tracing::error!(environment = class::<E>(), %error, "an environment's close failed");
    }
}

async fn close_held<E: Environment>(held: &Held<E>) {
    if let Some(environment) = held.lock().await.take() {
        closed(environment).await;
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "unknown",
            Self::Starting => "still initializing",
            Self::Attached => "has an attached WebSocket",
        })
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

impl<E: Environment> fmt::Debug for Core<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("name", &self.name).finish_non_exhaustive()
    }
}
