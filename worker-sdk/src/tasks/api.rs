//! A name, and what makes the instances that answer under it.

use std::any::type_name;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use axum::Router;
use serde_json::value::RawValue;
use tokio::runtime::Handle;

use super::call::Call;
use super::{TaskError, TaskProvider, routes};
use crate::errors::catch_panic;

/// What a factory makes: a provider, or a `Result` of one.
pub trait MadeProvider: 'static {
    /// The provider.
    type Provider: TaskProvider;

    /// The provider, or why it could not be made, which is a 500.
    ///
    /// # Errors
    /// If the factory failed.
    fn made(self) -> Result<Self::Provider, TaskError>;
}

impl<P: TaskProvider> MadeProvider for P {
    type Provider = P;

    fn made(self) -> Result<P, TaskError> {
        Ok(self)
    }
}

impl<P: TaskProvider, E: Into<TaskError> + 'static> MadeProvider for Result<P, E> {
    type Provider = P;

    fn made(self) -> Result<P, TaskError> {
        self.map_err(Into::into)
    }
}

/// The Task API of one environment.
pub struct TaskApi<F> {
    factory: F,
    name: String,
}

impl<F, M> TaskApi<F>
where
    F: Fn() -> M + Send + Sync + 'static,
    M: MadeProvider,
{
    /// Of the environments that `factory` makes, one for each call. It runs on the runtime's own thread: what takes long
    /// belongs into the methods.
    ///
    /// The environment's name is that of the provider's type, such as `LatexOcrEnvironment`.
    pub fn new(factory: F) -> Self {
        Self { factory, name: last_name(type_name::<M::Provider>()).to_owned() }
    }

    /// Names the environment: what stands in the routes in any letter case, and is answered in this one. Clients'
    /// addresses hold it, so it is better given than left to the type.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The environment's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The six routes, to be merged with others or served alone.
    pub fn into_router(self) -> Router {
        routes::router(self)
    }

    /// One call on an instance of its own.
    pub(crate) async fn call<C: Call<M::Provider>>(&self, call: C) -> Result<Box<RawValue>, TaskError> {
        let made = catch_unwind(AssertUnwindSafe(|| (self.factory)().made()));
        let made = made.unwrap_or_else(|_| Err(TaskError::failed("it panicked")));
        // Whatever it says, it is none of the method's own answers.
        let made =
            made.map_err(|error| TaskError::failed(format_args!("no environment was made: {error}")))?;
        let instance = Instance(Some(made));
        let outcome = match &instance.0 {
            Some(provider) => catch_panic(async { call.answer(provider, &self.name).await }).await,
            None => Ok(Err(TaskError::failed("the instance is closed"))),
        };
        instance.close().await;
        outcome.unwrap_or_else(|panic| Err(TaskError::failed(panic)))
    }
}

impl<F> fmt::Debug for TaskApi<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskApi").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A provider that is closed in any case: the client may leave, and then the call is dropped where it waits.
struct Instance<P: TaskProvider>(Option<P>);

impl<P: TaskProvider> Instance<P> {
    async fn close(mut self) {
        let Some(provider) = self.0.take() else { return };
        // On a task of its own, which a client that leaves does not stop.
        if let Err(error) = tokio::spawn(closed(provider)).await {
            tracing::error!(%error, "the close of a task provider was stopped");
        }
    }
}

impl<P: TaskProvider> Drop for Instance<P> {
    fn drop(&mut self) {
        if let Some(provider) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(runtime.spawn(closed(provider)));
        }
    }
}

async fn closed<P: TaskProvider>(provider: P) {
    if let Err(failure) = catch_panic(async { provider.close().await }).await {
        tracing::error!(error = %failure, "a task provider's close failed");
    }
}

/// A type's name without its path and parameters.
pub(crate) fn last_name(full: &str) -> &str {
    let plain = full.split('<').next().unwrap_or(full);
    plain.rsplit("::").next().unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::last_name;

    #[test]
    fn a_types_name_is_its_last() {
        for (full, name) in
            [("crate_a::envs::LatexOcr", "LatexOcr"), ("a::Env<b::Data, c::D<e::F>>", "Env"), ("Env", "Env")]
        {
            assert_eq!(last_name(full), name);
        }
    }
}
