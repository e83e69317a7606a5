//! A server of environments.

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use indexmap::IndexMap;
use tokio::sync::OnceCell;

use super::front::{Core, ROOTS};
use super::hosted::{Create, Environment, Hosted};
use super::open::Open;
use super::tasks::{Asked, asked};
use super::tools::{Listing, Run, Tools};
use super::{Arguments, ConcurrentTool, OrsEnvironment, Secrets, Tool, routes};
use crate::Result;
use crate::serve::{Built, Description, Life, Settings, SetupError, run};
use crate::session::Store;
use crate::tasks::{MadeProvider, TaskApi, TaskProvider};

/// How long a session may go unused, as in the Python server.
const IDLE: Duration = Duration::from_secs(900);

/// A server of the Open Reward Standard: an environment with its tasks and tools, and others beside it.
///
/// ```no_run
/// # use gym_worker_sdk::ors::{Block, OrsApp, OrsEnvironment, Secrets, ToolOutput};
/// # use gym_worker_sdk::tasks::{TaskApi, TaskProvider};
/// # use gym_worker_sdk::Result;
/// # use serde_json::{Map, Value};
/// # struct Tasks;
/// # impl TaskProvider for Tasks { type Task = Map<String, Value>; }
/// # struct Chess;
/// # impl OrsEnvironment for Chess {
/// #     type Task = Map<String, Value>;
/// #     async fn prompt(&self) -> Result<Vec<Block>> { Ok(vec![]) }
/// # }
/// # impl Chess {
/// #     async fn new(_: Map<String, Value>, _: Secrets) -> Result<Self> { Ok(Self) }
/// #     async fn play(&mut self) -> Result<ToolOutput> { Ok(ToolOutput::text("Your turn.")) }
/// #     async fn board(&self) -> Result<ToolOutput> { Ok(ToolOutput::text("empty")) }
/// # }
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> std::process::ExitCode {
///     OrsApp::new(TaskApi::new(|| Tasks).named("chess"), Chess::new)
///         .tool("play", "Plays a move.", Chess::play)
///         .concurrent_tool("board", "Shows the board.", Chess::board)
///         .run()
///         .await
/// }
/// ```
#[must_use = "it serves nothing until it runs"]
pub struct OrsApp<E: OrsEnvironment> {
    name: String,
    asked: Asked,
    create: Create<E>,
    tools: Tools<E>,
    others: Vec<Arc<dyn Hosted>>,
    problems: Vec<String>,
    settings: Option<Settings>,
    alone: Option<String>,
}

impl<E: OrsEnvironment> OrsApp<E> {
    /// A server of the environments that `create` makes, one for each session, of a task and the client's secrets. Its
    /// name is the one that `tasks` has; clients get it in lower case.
    ///
    /// Its settings come from the environment, unless [`settings`](Self::settings) is called.
    pub fn new<F, M, C, Fut>(tasks: TaskApi<F>, create: C) -> Self
    where
        F: Fn() -> M + Send + Sync + 'static,
        M: MadeProvider,
        M::Provider: TaskProvider<Task = E::Task>,
        C: Fn(E::Task, Secrets) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<E>> + Send + 'static,
    {
        Self {
            name: tasks.name().to_lowercase(),
            asked: asked(tasks),
            create: Box::new(move |task, secrets| Box::pin(create(task, secrets))),
            tools: Tools::new(),
            others: Vec::new(),
            problems: Vec::new(),
            settings: None,
            alone: None,
        }
    }

    /// Adds a tool that every session has, and that is alone with its environment while it runs: the session's other calls
    /// wait. Tools are listed in the order of their names.
    pub fn tool<M: Arguments>(
        self,
        name: &str,
        description: &str,
        tool: impl for<'e> Tool<'e, E, M>,
    ) -> Self {
        self.add::<M>(name, description, Listing::All, Run::alone(tool))
    }

    /// The same for a tool that runs beside others of its kind: one that looks, or that waits for something outside.
    pub fn concurrent_tool<M: Arguments>(
        self,
        name: &str,
        description: &str,
        tool: impl for<'e> ConcurrentTool<'e, E, M>,
    ) -> Self {
        self.add::<M>(name, description, Listing::All, Run::beside(tool))
    }

    /// The same as [`tool`](Self::tool) for one that only some tasks have:
    /// [`task_tools`](OrsEnvironment::task_tools) says which, and only their sessions list it.
    pub fn task_tool<M: Arguments>(
        self,
        name: &str,
        description: &str,
        tool: impl for<'e> Tool<'e, E, M>,
    ) -> Self {
        self.add::<M>(name, description, Listing::OfTask, Run::alone(tool))
    }

    /// The same for the one tool that models are not told of: the harness calls it with the text of the model's first message
    /// that calls no tool. It has one argument, or none if it looks at the environment alone.
    pub fn terminal_tool<M: Arguments>(
        self,
        name: &str,
        description: &str,
        tool: impl for<'e> Tool<'e, E, M>,
    ) -> Self {
        self.add::<M>(name, description, Listing::Terminal, Run::alone(tool))
    }

    fn add<M: Arguments>(mut self, name: &str, description: &str, listing: Listing, run: Run<E>) -> Self {
        if let Err(problem) = self.tools.add::<M>(name, description, listing, run) {
            self.problems.push(format!("{}: {problem}", self.name));
        }
        self
    }

    /// Serves another app's environments too, behind this one's. This one's settings hold.
    pub fn and<O: OrsEnvironment>(mut self, other: OrsApp<O>) -> Self {
        let (hosted, problems, alone) = other.hosted();
        self.others.extend(hosted);
        self.problems.extend(problems);
        self.alone = self.alone.or(alone);
        self
    }

    /// Says why this server must not have several workers. Default: it may.
    pub fn multiple_workers_unsupported(mut self, reason: impl Into<String>) -> Self {
        self.alone = Some(reason.into());
        self
    }

    /// Takes these settings instead of the environment's. Their
    /// [`session_idle_timeout`](Settings::session_idle_timeout) holds as it is; from the environment its default is 900 s
    /// here.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Serves until SIGTERM or SIGINT, where the environment or the arguments say; with `--describe`, prints what the
    /// gateway asks, and serves nothing. Logs go to standard error, by `RUST_LOG` (`info`).
    ///
    /// What comes back is the program's exit status: 1 if it could not be served, with the reason in the log.
    pub async fn run(self) -> ExitCode {
        run(|| self.built()).await
    }

    /// The server as a router, for tests and for servers that listen in their own way. Must be called within a tokio
    /// runtime: idle sessions are reclaimed on a task.
    ///
    /// # Errors
    /// If an environment has no tools, two have one name, or the environment's settings cannot be read.
    pub fn into_router(self) -> Result<Router, SetupError> {
        Ok(self.built()?.into_router())
    }

    /// Its environments in their order, what is wrong with them, and why it must be alone.
    fn hosted(self) -> (Vec<Arc<dyn Hosted>>, Vec<String>, Option<String>) {
        let mut problems = self.problems;
        if self.tools.is_empty() {
            problems.push(format!("{}: no tools; add at least one", self.name));
        }
        let listed = self.tools.listed(&[]);
        let environment = Environment {
            name: self.name,
            asked: self.asked,
            create: self.create,
            tools: Arc::new(self.tools),
            listed,
            splits: OnceCell::new(),
        };
        let first: Arc<dyn Hosted> = Arc::new(environment);
        (std::iter::once(first).chain(self.others).collect(), problems, self.alone)
    }

    fn built(mut self) -> Result<Built, SetupError> {
        let settings = match self.settings.take() {
            Some(settings) => settings,
            None => from_environment()?,
        };
        let (hosted, mut problems, alone) = self.hosted();
        let mut environments = IndexMap::new();
        for environment in hosted {
            let name = environment.name().to_owned();
            if !is_name(&name) {
                problems.push(format!(
                    "{name:?} cannot be an environment's name, which is a part of paths: letters and digits of ASCII,                      `_`, `-` and `.`, and no other route's first part"
                ));
            }
            if environments.insert(name.clone(), environment).is_some() {
                problems.push(format!("two environments of the name {name}"));
            }
        }
        if !problems.is_empty() {
            return Err(SetupError::Environment(problems.join("; ")));
        }
        let hook = Box::new(|_id, open: Arc<Open>, why| Box::pin(async move { open.end(why).await }) as _);
        let store = Store::new(settings.limits(), hook);
        let (num_workers, life) = (settings.num_workers, Life::of(store.clone()));
        let core = Core { environments, store, settings };
        Ok(Built::new(routes::router(Arc::new(core)), description(alone), num_workers, life))
    }
}

/// Whether a path can hold it as it is, and means it.
fn is_name(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    is_plain && !matches!(name, "" | "." | "..") && !ROOTS.contains(&name)
}

/// What the environment says, with the idle limit of the Python server.
fn from_environment() -> Result<Settings, SetupError> {
    let mut settings = Settings::from_env("ors")?;
    if !settings.block.contains_key(Settings::IDLE_TIMEOUT) {
        settings.session_idle_timeout = IDLE;
    }
    Ok(settings)
}

fn description(alone: Option<String>) -> Description {
    Description {
        kind: "ors",
        protocol: None,
        session_cookie: None,
        session_start_routes: Vec::new(),
        session_end_routes: Vec::new(),
        routes_sessions_to_owner: true,
        multiple_workers_unsupported_reason: alone,
        max_sessions_per_worker: None,
        is_forgeable: false,
    }
}

impl<E: OrsEnvironment> fmt::Debug for OrsApp<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others: Vec<_> = self.others.iter().map(|other| other.name()).collect();
        f.debug_struct("OrsApp")
            .field("name", &self.name)
            .field("tools", &self.tools)
            .field("others", &others)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
