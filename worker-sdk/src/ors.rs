//! Open Reward Standard: environments whose episodes are tool calls, with rewards on the way and a tool that ends them.
//!
//! An environment is a type with [`OrsEnvironment`], one value for each session; [`OrsApp`] serves it beside its
//! [tasks](crate::tasks). The client is that of the package `openreward`, which cannot tell it from a Python server.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use gym_worker_sdk::ors::{Block, OrsApp, OrsEnvironment, Secrets, ToolOutput};
//! use gym_worker_sdk::tasks::{self, Split, TaskApi, TaskError, TaskProvider, TaskRange};
//! use gym_worker_sdk::Result;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// What is stored of a sum, and what a session is made of.
//! #[derive(Serialize, Deserialize)]
//! struct Sum {
//!     a: i64,
//!     b: i64,
//! }
//!
//! struct Sums;
//!
//! impl TaskProvider for Sums {
//!     type Task = Sum;
//!
//!     async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
//!         Ok(vec!["train".into()])
//!     }
//!
//!     async fn list_tasks(&self, _split: &str) -> Result<Vec<Sum>, TaskError> {
//!         Ok(vec![Sum { a: 1, b: 2 }, Sum { a: 40, b: 2 }])
//!     }
//! }
//!
//! struct SumSession(Sum);
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Answer {
//!     answer: i64,
//! }
//!
//! impl OrsEnvironment for SumSession {
//!     type Task = Sum;
//!
//!     async fn prompt(&self) -> Result<Vec<Block>> {
//!         Ok(vec![format!("What is {} + {}?", self.0.a, self.0.b).into()])
//!     }
//! }
//!
//! impl SumSession {
//!     async fn submit(&mut self, Answer { answer }: Answer) -> Result<ToolOutput> {
//!         let is_right = answer == self.0.a + self.0.b;
//!         Ok(ToolOutput::text("Thank you.").reward(f64::from(is_right)).finished())
//!     }
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> ExitCode {
//!     let tasks = TaskApi::new(|| Sums).named("sums");
//!     OrsApp::new(tasks, async |sum: Sum, _: Secrets| Ok(SumSession(sum)))
//!         .tool("submit", "Gives the answer.", SumSession::submit)
//!         .run()
//!         .await
//! }
//! ```
//!
//! | route | |
//! |---|---|
//! | `GET /list_environments`, `/{env}/tools`, `/{env}/splits` | what there is |
//! | `POST /{env}/tasks`, `/num_tasks`, `/task`, `/task_range` | the tasks of a split. 400 for a split or an index that is not there |
//! | `POST /create_session` | an ID for a session; nothing begins yet |
//! | `POST /create` | makes the environment of session `X-Session-ID`, from `task_spec`, or from `split` and `index`; its setup goes on behind the reply |
//! | `GET /{env}/prompt`, `/{env}/messages`, `/{env}/task_tools` | of the session |
//! | `POST /{env}/call` | calls a tool; the result is a stream of events |
//! | `POST /ping` | keeps the session; 404 if it is not there |
//! | `POST /delete`, `/delete_session` | ends the session; the latter does nothing, as in the Python server |
//! | `GET /health`, `/version` | |
//!
//! A path without an environment's name is redirected to the first environment. Where [the Task API of
//! OpenEnv](crate::tasks) and these task routes have the same path they differ: here every environment of the server is
//! listed, in lower case; `env_name` is echoed as it was asked for, in all but `/num_tasks`; a split is a name and one of
//! three types; the split is looked up before the provider is asked; what `list_tasks` does not support is 400; methods
//! that the provider lacks are made of those that it has, as in the Python base class.

mod app;
mod block;
mod call;
mod create;
mod events;
mod front;
mod hosted;
mod live;
mod message;
mod open;
mod routes;
mod secrets;
mod tasks;
mod tool;
mod tools;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use app::OrsApp;
pub use block::{Block, ToolOutput};
pub use message::{AssistantBlock, Message, UserBlock};
pub use secrets::Secrets;
pub use tool::{Arguments, ConcurrentTool, Takes, TakesNothing, Tool};

use crate::Result;
use crate::session::Released;

/// An environment of the Open Reward Standard: one value is one session's.
///
/// The value is made by the function that [`OrsApp::new`] is given, from the session's task and secrets; it should be quick,
/// and [`setup`](Self::setup) is for what is not. Its tools are async functions, which the app is told of.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an environment of the Open Reward Standard yet",
    note = "write `impl OrsEnvironment for {Self}` with its `Task` and `prompt`"
)]
pub trait OrsEnvironment: Send + Sync + Sized + 'static {
    /// A task, as its [`TaskProvider`](crate::tasks::TaskProvider) lists it and clients send it back in `/create`. Read as
    /// pydantic reads it ([`body`](crate::body)); what does not fit is a 422.
    type Task: Serialize + DeserializeOwned + Send + 'static;

    /// Prepares what takes its time, such as a sandbox, behind the reply to `/create`. The session's prompt and calls wait
    /// for it up to 25 s, and are then told to come again (503 with `X-Backend-State: starting`), which the client does.
    /// Default: nothing.
    ///
    /// # Errors
    /// Any; prompts and calls are answered with it from then on.
    fn setup(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// What the model is told at first. It does not run beside a tool that is alone.
    ///
    /// # Errors
    /// Any; the reply is the failure's.
    fn prompt(&self) -> impl Future<Output = Result<Vec<Block>>> + Send;

    /// The same as a conversation, for tasks that have a history. [`Message::flatten`] makes its prompt. Default: the
    /// prompt, said by the user.
    ///
    /// # Errors
    /// Any; the reply is the failure's.
    fn messages(&self) -> impl Future<Output = Result<Vec<Message>>> + Send {
        async { Ok(vec![Message::user(self.prompt().await?)]) }
    }

    /// Which of the [task tools](OrsApp::task_tool) this session's task has, beside the tools that all have. Asked once,
    /// before the setup. Default: none.
    fn task_tools(&self) -> Vec<String> {
        Vec::new()
    }

    /// Gives back what the environment holds, exactly once for each: when the session is deleted, was idle for too long,
    /// or the server stops; also after a setup or a tool that failed or panicked. Calls that still run are given up before
    /// it. Default: the environment is dropped.
    fn teardown(self, why: Released) -> impl Future<Output = ()> + Send {
        let _unused = why;
        drop(self);
        async {}
    }
}
