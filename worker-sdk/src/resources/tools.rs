//! A server's tools, whatever their types.

use std::fmt;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use indexmap::IndexMap;
use schemars::Schema;
use serde_json::Value;
use serde_json::value::RawValue;

use super::app::Core;
use super::{ResourcesServer, ToolFunction, ToolReturns, ToolTakes};
use crate::body::from_value;
use crate::errors::{Failure, Invalid};
use crate::http::{collect_bytes, collect_object, json_text_reply, to_json};
use crate::session::{Caller, Session};

/// Why a tool's call gave no result.
#[derive(Debug)]
pub(crate) enum ToolError {
    /// Its arguments are not what it takes: 422.
    Invalid(Invalid),
    /// It failed, or the session is unknown.
    Failure(Failure),
}

/// One tool.
pub(crate) struct ErasedTool<E: ResourcesServer> {
    /// Its route, without the slash.
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// Of its arguments; `None` of a tool that takes none.
    pub(crate) schema: Option<Schema>,
    pub(crate) takes_session: bool,
    run: Run<E>,
}

type Run<E> = Box<dyn Fn(Call<E>) -> BoxFuture<'static, Result<Box<RawValue>, ToolError>> + Send + Sync>;

/// What a tool is called with.
pub(crate) struct Call<E: ResourcesServer> {
    pub(crate) server: Arc<E>,
    /// Needed if it takes one.
    pub(crate) session: Option<Session<E::State>>,
    /// An object; not looked at if it takes none.
    pub(crate) arguments: Value,
    /// What precedes a path in the arguments, in a 422: `body` over HTTP, nothing over MCP.
    pub(crate) place: &'static [&'static str],
}

impl<E: ResourcesServer> ErasedTool<E> {
    fn new<F, T, M>(name: &str, description: Option<&str>, tool: F) -> Self
    where
        F: ToolFunction<T, Returned: Future<Output: ToolReturns> + Send>,
        T: ToolTakes<E, M>,
    {
        let tool = Arc::new(tool);
        Self {
            name: name.to_owned(),
            description: description.map(str::to_owned),
            schema: T::TAKES_ARGUMENTS.then(|| schemars::schema_for!(T::Arguments)),
            takes_session: T::TAKES_SESSION,
            run: Box::new(move |call| {
                let tool = tool.clone();
                Box::pin(async move {
                    let arguments = match T::TAKES_ARGUMENTS {
                        true => Some(from_value(call.arguments, call.place).map_err(ToolError::Invalid)?),
                        false => None,
                    };
                    let takes = T::given(call.server, call.session, arguments).map_err(ToolError::Failure)?;
                    let output = tool.call(takes).await.result().map_err(ToolError::Failure)?;
                    to_json(&output).map_err(ToolError::Failure)
                })
            }),
        }
    }

    /// Runs it once; its result is JSON.
    pub(crate) async fn call(&self, call: Call<E>) -> Result<Box<RawValue>, ToolError> {
        (self.run)(call).await
    }

    /// Whether the body of a request is its arguments.
    pub(crate) fn takes_arguments(&self) -> bool {
        self.schema.is_some()
    }
}

/// A server's tools by name, in the order in which they were added.
pub(crate) struct Tools<E: ResourcesServer>(IndexMap<String, Arc<ErasedTool<E>>>);

impl<E: ResourcesServer> Tools<E> {
    pub(crate) fn new() -> Self {
        Self(IndexMap::new())
    }

    /// Adds one; `false` if the name is taken.
    pub(crate) fn add<F, T, M>(&mut self, name: &str, description: Option<&str>, tool: F) -> bool
    where
        F: ToolFunction<T, Returned: Future<Output: ToolReturns> + Send>,
        T: ToolTakes<E, M>,
    {
        let tool = Arc::new(ErasedTool::new(name, description, tool));
        self.0.insert(name.to_owned(), tool).is_none()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<ErasedTool<E>>> {
        self.0.get(name)
    }

    /// All, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ErasedTool<E>>> {
        self.0.values()
    }
}

impl<E: ResourcesServer> fmt::Debug for Tools<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The handler of one tool's route.
pub(super) fn endpoint<E: ResourcesServer>(
    tool: Arc<ErasedTool<E>>,
) -> impl Fn(State<Arc<Core<E>>>, Extension<Caller>, Request) -> BoxFuture<'static, Response>
+ Clone
+ Send
+ Sync
+ 'static {
    move |State(core), Extension(caller), request| {
        let tool = tool.clone();
        Box::pin(async move {
            let arguments = match tool.takes_arguments() {
                true => match collect_object(request).await {
                    Ok(arguments) => Value::Object(arguments),
                    Err(refused) => return refused,
                },
                // Read all the same: behind a body that is left unread, nobody sees the client leave.
                false => match collect_bytes(request).await {
                    Ok(_unused) => Value::Null,
                    Err(refused) => return refused,
                },
            };
            match core.call(&tool, &caller, arguments, &["body"]).await {
                Ok(result) => json_text_reply(Box::<str>::from(result).into()),
                Err(ToolError::Invalid(invalid)) => invalid.into_response(),
                Err(ToolError::Failure(failure)) => failure.into_response(),
            }
        })
    }
}

impl<E: ResourcesServer> Core<E> {
    /// Calls a tool for the caller: over HTTP, or over MCP.
    pub(crate) async fn call(
        &self,
        tool: &ErasedTool<E>,
        caller: &Caller,
        arguments: Value,
        place: &'static [&'static str],
    ) -> Result<Box<RawValue>, ToolError> {
        let session = match tool.takes_session {
            true => Some(self.store.session(caller).map_err(ToolError::Failure)?),
            false => None,
        };
        let server = self.server.clone();
        tool.call(Call { server, session, arguments, place }).await
    }
}
