//! Environments: made, used, closed.

use std::any::type_name;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::registry::Registry;
use super::schemas::Schemas;
use super::seat::Using;
use super::settings::Limits;
use super::{Environment, Metadata};
use crate::errors::catch_panic;
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
}

/// The author's close, which may panic.
pub(super) async fn closed<E: Environment>(environment: E) {
    if let Err(error) = catch_panic(async { environment.close().await }).await {
        tracing::error!(environment = class::<E>(), %error, "an environment's close failed");
    }
}

impl<E: Environment> fmt::Debug for Core<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("name", &self.name).finish_non_exhaustive()
    }
}
