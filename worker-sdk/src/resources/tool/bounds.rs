//! What a tool's types must be: a trait for each thing that can be missing, which says what to do about it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::Result;
use crate::resources::ResourcesServer;

/// A tool's own arguments: a type that is read from JSON, has a JSON schema, and can go to another thread.
pub trait ToolArguments: FromJson + HasJsonSchema + Send + 'static {}

impl<T: FromJson + HasJsonSchema + Send + 'static> ToolArguments for T {}

/// A type that is read from JSON: any that owns its content and implements `serde::Deserialize`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from JSON, as a tool's arguments are",
    label = "`{Self}` does not implement `serde::Deserialize`",
    note = "add `#[derive(serde::Deserialize)]` to `{Self}`; its fields must own what they hold: `String`, not `&str`"
)]
pub trait FromJson: DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned> FromJson for T {}

/// A type with a JSON schema, which tells a model what to call a tool with.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON schema, by which a model knows a tool's arguments",
    label = "`{Self}` does not implement `schemars::JsonSchema`",
    note = "add `#[derive(schemars::JsonSchema)]` to `{Self}`, of schemars 1: another version's trait is not this one"
)]
pub trait HasJsonSchema: JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema> HasJsonSchema for T {}

/// A type that is written as JSON: any that implements `serde::Serialize`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as JSON, as a tool's result is",
    label = "`{Self}` does not implement `serde::Serialize`",
    note = "add `#[derive(serde::Serialize)]` to `{Self}`"
)]
pub trait ToJson: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> ToJson for T {}

/// What comes of a tool: [`Result<T>`](crate::Result) of something that is written as JSON.
#[diagnostic::on_unimplemented(
    message = "a tool returns `gym_worker_sdk::Result<T>`, and this one `{Self}`",
    label = "it does not return `gym_worker_sdk::Result<T>`",
    note = "wrap the result in `Ok(...)`; other errors become a `Failure` by `?`"
)]
pub trait ToolReturns {
    /// What it answers.
    type Output: ToJson;

    /// The same.
    ///
    /// # Errors
    /// The tool's own.
    fn result(self) -> Result<Self::Output>;
}

impl<T: ToJson> ToolReturns for Result<T, Failure> {
    type Output = T;

    fn result(self) -> Result<T> {
        self
    }
}

/// The resources server `E`, and no other.
#[diagnostic::on_unimplemented(
    message = "`Arc<{Self}>` is not the server that this tool is added to, `{E}`",
    label = "another server than `{E}`",
    note = "take `Arc<{E}>`, or add the tool to the `ResourcesApp` of `{Self}`"
)]
pub trait SameServer<E>: Send + Sync + 'static {
    /// The same.
    fn server(server: Arc<E>) -> Arc<Self>;
}

impl<E: ResourcesServer> SameServer<E> for E {
    fn server(server: Arc<E>) -> Arc<E> {
        server
    }
}
