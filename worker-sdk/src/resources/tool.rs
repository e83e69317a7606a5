//! What can be a tool: an async function of typed arguments.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ResourcesServer;
use crate::Result;
use crate::session::Session;

/// A tool of the resources server `E`: an async function that returns [`Result`], with any of these arguments, in this
/// order: `Arc<E>`, the server (so that a method with `self: Arc<Self>` is one); `Session<E::State>`, the caller's
/// session; the tool's own arguments, a type that is read from JSON and has a JSON schema.
///
/// `Marker` tells these forms apart; it is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool of `{E}`",
    label = "not an async function with a tool's arguments, result and future: see the notes",
    note = "a tool is `async fn(arguments) -> gym_worker_sdk::Result<T>`, optionally with `Arc<{E}>` and `Session<State>` before, in this order; `State` is that of `{E}`",
    note = "a method takes `self: Arc<Self>`, not `&self`",
    note = "its arguments need `#[derive(Deserialize, JsonSchema)]` (of schemars 1), its result `#[derive(Serialize)]`, and its future must be `Send`"
)]
pub trait Tool<E: ResourcesServer, Marker>: Send + Sync + 'static {
    /// The tool's own arguments.
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;
    /// What it answers.
    type Output: Serialize;
    /// Whether it takes arguments. A tool without them does not look at the request's body.
    const TAKES_ARGUMENTS: bool;
    /// Whether it takes the caller's session.
    const TAKES_SESSION: bool;

    /// Runs it once.
    fn call(
        &self,
        server: Arc<E>,
        session: Option<Session<E::State>>,
        arguments: Option<Self::Arguments>,
    ) -> impl Future<Output = Result<Self::Output>> + Send;
}

/// The caller's side has read and found what the tool's constants ask for; else nothing is called.
fn given<T>(value: Option<T>) -> Result<T> {
    value.ok_or_else(|| crate::Failure::fault("a tool was called without its session or its arguments"))
}

macro_rules! tool_form {
    ($marker:ty, [$($generic:ident)?], ($($taken:ty),*), $arguments:ty, $takes_arguments:literal, $takes_session:literal,
     |$server:ident, $session:ident, $given:ident| ($($passed:expr),*)) => {
        impl<E, F, Fut, T, $($generic)?> Tool<E, $marker> for F
        where
            E: ResourcesServer,
            F: Fn($($taken),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<T>> + Send,
            T: Serialize,
            $($generic: DeserializeOwned + JsonSchema + Send + 'static,)?
        {
            type Arguments = $arguments;
            type Output = T;
            const TAKES_ARGUMENTS: bool = $takes_arguments;
            const TAKES_SESSION: bool = $takes_session;

            #[allow(unused_variables)]
            async fn call(
                &self,
                $server: Arc<E>,
                $session: Option<Session<E::State>>,
                $given: Option<$arguments>,
            ) -> Result<T> {
                self($($passed),*).await
            }
        }
    };
}

/// Marks the forms of [`Tool`].
#[derive(Debug)]
pub struct Form<const SERVER: bool, const SESSION: bool, const ARGUMENTS: bool, A>(
    std::marker::PhantomData<A>,
);

tool_form!(Form<false, false, true, A>, [A], (A), A, true, false, |server, session, arguments| (given(arguments)?));
tool_form!(Form<false, true, false, ()>, [], (Session<E::State>), (), false, true, |server, session, arguments| (given(session)?));
tool_form!(Form<false, true, true, A>, [A], (Session<E::State>, A), A, true, true, |server, session, arguments| (given(session)?, given(arguments)?));
tool_form!(Form<true, false, false, ()>, [], (Arc<E>), (), false, false, |server, session, arguments| (server));
tool_form!(Form<true, false, true, A>, [A], (Arc<E>, A), A, true, false, |server, session, arguments| (server, given(arguments)?));
tool_form!(Form<true, true, false, ()>, [], (Arc<E>, Session<E::State>), (), false, true, |server, session, arguments| (server, given(session)?));
tool_form!(Form<true, true, true, A>, [A], (Arc<E>, Session<E::State>, A), A, true, true, |server, session, arguments| (server, given(session)?, given(arguments)?));
