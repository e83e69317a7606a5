//! What can be a tool: an async function of typed arguments.
//!
//! The bounds are many small traits, each with a message of its own, so that the compiler names the one thing that is
//! wrong with a function and not all that a tool needs. For the same reason an impl's head says no more than its shape:
//! the compiler looks at what is wrong within an impl only if it is the only one of that shape.

mod bounds;

use std::sync::Arc;

pub use bounds::{FromJson, HasJsonSchema, SameServer, ToJson, ToolArguments, ToolReturns};

use super::ResourcesServer;
use crate::Result;
use crate::session::{Session, SessionState};

/// A function of one to three arguments, which are the tuple `Takes`. Implemented for every one; what else a tool must
/// be is said by [`ToolTakes`] of its arguments and [`ToolReturns`] of what comes of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool: it is not a function of one to three arguments",
    label = "not a function of a tool's arguments",
    note = "a tool is `async fn(arguments) -> gym_worker_sdk::Result<T>`; one that needs nothing takes `Arc<Server>`",
    note = "it must be `Send + Sync + 'static`, with all that a closure has captured"
)]
pub trait ToolFunction<Takes>: Send + Sync + 'static {
    /// What a call gives: a future of its result.
    type Returned;

    /// Calls it.
    fn call(&self, takes: Takes) -> Self::Returned;
}

macro_rules! function {
    ($($taken:ident),*) => {
        impl<F, R, $($taken),*> ToolFunction<($($taken,)*)> for F
        where
            F: Fn($($taken),*) -> R + Send + Sync + 'static,
        {
            type Returned = R;

            #[allow(non_snake_case)] // A variable for each type.
            fn call(&self, ($($taken,)*): ($($taken,)*)) -> R {
                self($($taken),*)
            }
        }
    };
}

function!(A);
function!(A, B);
function!(A, B, C);

/// What a tool of the resources server `E` may take: any of these, in this order: `Arc<E>`, the server (so that a method with
/// `self: Arc<Self>` is a tool); `Session<E::State>`, the caller's session; the tool's own arguments, a type that is read
/// from JSON and has a JSON schema.
///
/// `Form` tells these apart; it is always inferred.
#[diagnostic::on_unimplemented(
    message = "a tool of `{E}` cannot take `{Self}`",
    label = "its arguments are not those of a tool",
    note = "a tool takes `Arc<{E}>`, `Session<S>` with `S` the type `State` of `{E}`, and its own arguments: any of these, in this order",
    note = "a method takes `self: Arc<Self>`, not `&self`",
    note = "its own arguments are one type with `#[derive(serde::Deserialize, schemars::JsonSchema)]`"
)]
pub trait ToolTakes<E: ResourcesServer, Form>: Sized + Send + 'static {
    /// The tool's own arguments; `()` if it takes none.
    type Arguments: ToolArguments;
    /// Whether it takes arguments. A tool without them does not look at the request's body.
    const TAKES_ARGUMENTS: bool;
    /// Whether it takes the caller's session.
    const TAKES_SESSION: bool;

    /// Puts together what it takes.
    ///
    /// # Errors
    /// If it takes a session or arguments, and there are none.
    fn given(
        server: Arc<E>,
        session: Option<Session<E::State>>,
        arguments: Option<Self::Arguments>,
    ) -> Result<Self>;
}

/// The caller's side has read and found what the tool's constants ask for; else nothing is called.
fn there<T>(value: Option<T>) -> Result<T> {
    value.ok_or_else(|| crate::Failure::fault("a tool was called without its session or its arguments"))
}

/// Marks the forms of [`ToolTakes`].
#[derive(Debug)]
pub struct Form<const SERVER: bool, const SESSION: bool, const ARGUMENTS: bool>;

macro_rules! form {
    (
        $takes_server:literal, $takes_session:literal, $takes_arguments:literal, [$($generics:tt)*], ($($taken:ty),*),
        $state:ty, $arguments:ty, |$server:ident, $session:ident, $given:ident| $put_together:expr
    ) => {
        impl<E: ResourcesServer<State = $state>, $($generics)*>
            ToolTakes<E, Form<$takes_server, $takes_session, $takes_arguments>> for ($($taken,)*)
        {
            type Arguments = $arguments;
            const TAKES_ARGUMENTS: bool = $takes_arguments;
            const TAKES_SESSION: bool = $takes_session;

            #[allow(unused_variables)]
            fn given(
                $server: Arc<E>,
                $session: Option<Session<$state>>,
                $given: Option<$arguments>,
            ) -> Result<Self> {
                Ok($put_together)
            }
        }
    };
}

form!(false, false, true, [S: SessionState, A: ToolArguments], (A), S, A,
    |server, session, arguments| (there(arguments)?,));
form!(false, true, false, [S: SessionState], (Session<S>), S, (),
    |server, session, arguments| (there(session)?,));
form!(false, true, true, [S: SessionState, A: ToolArguments], (Session<S>, A), S, A,
    |server, session, arguments| (there(session)?, there(arguments)?));
form!(true, false, false, [S: SessionState, Me: SameServer<E>], (Arc<Me>), S, (),
    |server, session, arguments| (Me::server(server),));
form!(true, false, true, [S: SessionState, Me: SameServer<E>, A: ToolArguments], (Arc<Me>, A), S, A,
    |server, session, arguments| (Me::server(server), there(arguments)?));
form!(true, true, false, [S: SessionState, Me: SameServer<E>], (Arc<Me>, Session<S>), S, (),
    |server, session, arguments| (Me::server(server), there(session)?));
form!(true, true, true, [S: SessionState, Me: SameServer<E>, A: ToolArguments], (Arc<Me>, Session<S>, A), S, A,
    |server, session, arguments| (Me::server(server), there(session)?, there(arguments)?));
