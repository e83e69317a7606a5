//! An environment's tools: what a model may call by name, with typed arguments, on the environment of its session.
//!
//! A tool is an async function of the environment and, if it takes any, of its arguments; its result may be anything that
//! is JSON. Whoever serves the environment lists and calls them: [`openenv`](crate::openenv) by JSON-RPC at `/mcp`.
//!
//! ```
//! use gym_worker_sdk::Result;
//! use gym_worker_sdk::tools::Tools;
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! struct Counter(i64);
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Bump {
//!     amount: i64,
//! }
//!
//! impl Counter {
//!     async fn bump(&mut self, Bump { amount }: Bump) -> Result<i64> {
//!         self.0 += amount;
//!         Ok(self.0)
//!     }
//!
//!     async fn peek(&mut self) -> Result<i64> {
//!         Ok(self.0)
//!     }
//! }
//!
//! let tools = Tools::new()
//!     .add("bump", "Add amount to the counter and return the new count.", Counter::bump)
//!     .add("peek", "Return the count.", Counter::peek);
//! ```

mod form;
mod tool;

use std::fmt;

use indexmap::IndexMap;
use serde_json::Value;

pub use form::{Called, CalledAlone, Tool};
use tool::Typed;
pub(crate) use tool::{ErasedTool, Made, ToolError};

/// The tools of the environment `E`, in the order in which they were added.
#[must_use = "it is of no use until it is returned"]
pub struct Tools<E> {
    tools: IndexMap<String, ErasedTool<E>>,
    problems: Vec<String>,
}

impl<E: Send + 'static> Tools<E> {
    /// None yet.
    pub fn new() -> Self {
        Self { tools: IndexMap::new(), problems: Vec::new() }
    }

    /// Adds one: a function `async fn(&mut E, Arguments) -> Result<T>`, or without arguments. What its arguments and its
    /// result look like is told by their JSON schemas, what it does by `description`.
    pub fn add<M: 'static>(mut self, name: &str, description: &str, tool: impl Tool<E, M>) -> Self {
        if name.is_empty() {
            self.problems.push("a tool has no name".to_owned());
        }
        let tool = ErasedTool::new(description, Typed::new(tool));
        if tool.input_schema.get("type").is_some_and(|kind| kind != "object") {
            self.problems.push(format!(
                "the arguments of the tool {name} must be an object, such as a struct with named fields"
            ));
        }
        if self.tools.insert(name.to_owned(), tool).is_some() {
            self.problems.push(format!("there are two tools of the name {name}"));
        }
        self
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// What is wrong with them, for a server that is put together.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(String::as_str)
    }

    /// Their names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// Name, description, schemas of arguments and result, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &ErasedTool<E>)> {
        self.tools.iter().map(|(name, tool)| (name.as_str(), tool))
    }

    /// Calls one. A panic is not caught here.
    ///
    /// # Errors
    /// If there is none of that name, the arguments do not fit, or it failed.
    pub(crate) async fn call(&self, env: &mut E, name: &str, arguments: Value) -> Result<Made, ToolError> {
        let tool = self.tools.get(name).ok_or(ToolError::Unknown)?;
        tool.call(env, arguments).await
    }
}

impl<E: Send + 'static> Default for Tools<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> fmt::Debug for Tools<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}

#[cfg(test)]
mod tests;
