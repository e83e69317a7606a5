//! What can be a tool.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Result;

/// A tool of the environment `E`: `async fn(&mut E, Arguments) -> Result<T>` or `async fn(&mut E) -> Result<T>`.
///
/// `Marker` tells these forms apart; it is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool of `{E}`",
    label = "not an async function with a tool's arguments, result and future: see the notes",
    note = "a tool is `async fn(&mut {E}, arguments) -> gym_worker_sdk::Result<T>`, or without arguments; a function by name, not a closure",
    note = "its arguments need `#[derive(Deserialize, JsonSchema)]` (of schemars 1), its result `Serialize` and `JsonSchema`, and its future must be `Send`"
)]
pub trait Tool<E, Marker>: Send + Sync + 'static {
    /// The tool's own arguments.
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;
    /// What it answers.
    type Output: Serialize + JsonSchema + Send + 'static;
    /// Whether it takes arguments.
    const TAKES_ARGUMENTS: bool;

    /// Runs it once; `arguments` are there if it takes any.
    fn call(
        &self,
        env: &mut E,
        arguments: Option<Self::Arguments>,
    ) -> impl Future<Output = Result<Self::Output>> + Send;
}

/// A function of an environment that is lent for `'e`, and of arguments: every function that is one is this.
pub trait Called<'e, E: 'e, A, T>: Fn(&'e mut E, A) -> Self::Future {
    /// What it returns.
    type Future: Future<Output = Result<T>> + Send + 'e;
}

impl<'e, E: 'e, A, T, F, Fut> Called<'e, E, A, T> for F
where
    F: Fn(&'e mut E, A) -> Fut,
    Fut: Future<Output = Result<T>> + Send + 'e,
{
    type Future = Fut;
}

/// The same without arguments.
pub trait CalledAlone<'e, E: 'e, T>: Fn(&'e mut E) -> Self::Future {
    /// What it returns.
    type Future: Future<Output = Result<T>> + Send + 'e;
}

impl<'e, E: 'e, T, F, Fut> CalledAlone<'e, E, T> for F
where
    F: Fn(&'e mut E) -> Fut,
    Fut: Future<Output = Result<T>> + Send + 'e,
{
    type Future = Fut;
}

impl<E, A, T, F> Tool<E, (A, T)> for F
where
    E: Send + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    T: Serialize + JsonSchema + Send + 'static,
    F: for<'e> Called<'e, E, A, T> + Send + Sync + 'static,
{
    type Arguments = A;
    type Output = T;
    const TAKES_ARGUMENTS: bool = true;

    async fn call(&self, env: &mut E, arguments: Option<A>) -> Result<T> {
        match arguments {
            Some(arguments) => self(env, arguments).await,
            // The caller's side has read what the constant asks for.
            None => Err(crate::Failure::fault("a tool was called without its arguments")),
        }
    }
}

impl<E, T, F> Tool<E, (T,)> for F
where
    E: Send + 'static,
    T: Serialize + JsonSchema + Send + 'static,
    F: for<'e> CalledAlone<'e, E, T> + Send + Sync + 'static,
{
    type Arguments = ();
    type Output = T;
    const TAKES_ARGUMENTS: bool = false;

    async fn call(&self, env: &mut E, _: Option<()>) -> Result<T> {
        self(env).await
    }
}
