//! What can be a tool: an async function of the environment and typed arguments.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ToolOutput;
use crate::Result;
use crate::body::from_value;
use crate::errors::Invalid;

/// What a tool takes beside its environment: [`Takes`] its own type, or [`TakesNothing`].
pub trait Arguments: Send + 'static {
    /// The arguments.
    type Given: Send + 'static;

    /// Their schema; `None` if there are none.
    fn schema() -> Option<Schema>;

    /// Reads them, as pydantic does.
    ///
    /// # Errors
    /// All that is wrong.
    fn read(input: Value) -> Result<Self::Given, Invalid>;
}

/// The tool takes arguments of this type, which is read from JSON and has a JSON schema.
#[derive(Debug)]
pub struct Takes<A>(PhantomData<A>);

/// The tool takes no arguments, and looks past any.
#[derive(Debug)]
pub struct TakesNothing;

impl<A: DeserializeOwned + JsonSchema + Send + 'static> Arguments for Takes<A> {
    type Given = A;

    fn schema() -> Option<Schema> {
        Some(schemars::schema_for!(A))
    }

    fn read(input: Value) -> Result<A, Invalid> {
        from_value(input, &[])
    }
}

impl Arguments for TakesNothing {
    type Given = ();

    fn schema() -> Option<Schema> {
        None
    }

    fn read(_input: Value) -> Result<(), Invalid> {
        Ok(())
    }
}

macro_rules! tool_trait {
    ($(#[$doc:meta])* $name:ident, $environment:ty) => {
        $(#[$doc])*
        pub trait $name<'e, E: 'e, M: Arguments>: Send + Sync + 'static {
            /// What it returns.
            type Future: Future<Output = Result<ToolOutput>> + Send + 'e;

            /// Calls it.
            fn call(&self, environment: $environment, arguments: M::Given) -> Self::Future;
        }

        impl<'e, E, A, F, Fut> $name<'e, E, Takes<A>> for F
        where
            E: 'e,
            A: DeserializeOwned + JsonSchema + Send + 'static,
            F: Fn($environment, A) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<ToolOutput>> + Send + 'e,
        {
            type Future = Fut;

            fn call(&self, environment: $environment, arguments: A) -> Fut {
                self(environment, arguments)
            }
        }

        impl<'e, E, F, Fut> $name<'e, E, TakesNothing> for F
        where
            E: 'e,
            F: Fn($environment) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<ToolOutput>> + Send + 'e,
        {
            type Future = Fut;

            fn call(&self, environment: $environment, _nothing: ()) -> Fut {
                self(environment)
            }
        }
    };
}

tool_trait! {
    /// A tool that is alone with its environment `E` while it runs: `async fn(&mut E, Arguments) -> Result<ToolOutput>`,
    /// with arguments or without; a method is one. `M` says which; it is always inferred.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not a tool of `{E}`",
        note = "a tool is `async fn(&mut {E}, arguments) -> gym_worker_sdk::Result<ToolOutput>`, or without arguments",
        note = "its arguments need `#[derive(Deserialize, JsonSchema)]` (of schemars 1), and its future must be `Send`",
        note = "a closure must be an async function here: closures do not lend `&mut` to their futures"
    )]
    Tool, &'e mut E
}

tool_trait! {
    /// The same for a tool that runs beside others of its kind: `async fn(&E, Arguments) -> Result<ToolOutput>`.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not a concurrent tool of `{E}`",
        note = "a concurrent tool is `async fn(&{E}, arguments) -> gym_worker_sdk::Result<ToolOutput>`, or without arguments",
        note = "its arguments need `#[derive(Deserialize, JsonSchema)]` (of schemars 1), and its future must be `Send`"
    )]
    ConcurrentTool, &'e E
}
