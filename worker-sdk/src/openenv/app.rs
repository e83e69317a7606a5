//! An environment as a server.

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;

use super::live::{Core, Factory, class};
use super::settings::{Limits, Said};
use super::{Environment, MadeEnvironment, Mode, front, routes, schemas, tasks};
use crate::body::BodyLimit;
use crate::serve::{Built, Description, Life, Settings, SetupError, run};
use crate::tasks::{MadeProvider, TaskApi, TaskProvider};

/// Names that would be taken for the environment's own calls.
const RESERVED: [&str; 4] = ["reset", "step", "state", "close"];

/// Puts the Task API's routes together.
type Tasks<E> = Box<dyn FnOnce(&Arc<Core<E>>) -> Router + Send>;

/// An OpenEnv environment server.
///
/// ```no_run
/// # use gym_worker_sdk::openenv::{Environment, Observed, Reset, State, StepInfo};
/// # use gym_worker_sdk::{Empty, Result};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Say {}
/// # #[derive(serde::Serialize, schemars::JsonSchema)] struct Echo {}
/// # #[derive(Default)] struct EchoEnvironment;
/// # impl Environment for EchoEnvironment {
/// #     type Action = Say;
/// #     type Observation = Echo;
/// #     type State = ();
/// #     type Params = Empty;
/// #     async fn reset(&mut self, _: Reset) -> Result<Observed<Echo>> { Ok(Observed::new(Echo {})) }
/// #     async fn step(&mut self, _: Say, _: StepInfo) -> Result<Observed<Echo>> { Ok(Observed::new(Echo {})) }
/// #     async fn state(&mut self) -> Result<State<()>> { Ok(State::default()) }
/// # }
/// use gym_worker_sdk::openenv::EnvironmentApp;
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> std::process::ExitCode {
///     EnvironmentApp::new(EchoEnvironment::default).named("echo_env").run().await
/// }
/// ```
#[must_use = "it serves nothing until it runs"]
pub struct EnvironmentApp<E: Environment> {
    factory: Factory<E>,
    name: Option<String>,
    said: Said,
    settings: Option<Settings>,
    tasks: Tasks<E>,
}

impl<E: Environment> EnvironmentApp<E> {
    /// A server of the environments that `factory` makes: one for each session, and one for each call that has none. It is
    /// a constructor; what takes long belongs into the methods, unless [`Environment::BLOCKS`].
    ///
    /// Its settings come from the environment, unless [`settings`](Self::settings) is called.
    pub fn new<F, M>(factory: F) -> Self
    where
        F: Fn() -> M + Send + Sync + 'static,
        M: MadeEnvironment<Environment = E>,
    {
        Self {
            factory: Box::new(move || factory().made()),
            name: None,
            said: Said::default(),
            settings: None,
            tasks: Box::new(tasks::none),
        }
    }

    /// Names it: what stands in the Task API's routes. Default: the name of its type.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Serves its own tasks by the Task API.
    pub fn with_tasks(mut self) -> Self
    where
        E: TaskProvider,
    {
        self.tasks = Box::new(tasks::of_its_own);
        self
    }

    /// Serves the tasks of another provider, which may be that of a server of NeMo Gym's, too
    /// ([`ResourcesApp::tasks`](crate::ResourcesApp::tasks)).
    pub fn tasks<F, M>(mut self, provider: F) -> Self
    where
        F: Fn() -> M + Send + Sync + 'static,
        M: MadeProvider,
    {
        self.tasks = Box::new(move |core| TaskApi::new(provider).named(&core.name).into_router());
        self
    }

    /// How many sessions there may be at a time, if neither the server's block (`max_concurrent_envs`) nor the variable
    /// `MAX_CONCURRENT_ENVS` says. Default: 100; 1 without
    /// [`SUPPORTS_CONCURRENT_SESSIONS`](Environment::SUPPORTS_CONCURRENT_SESSIONS).
    pub fn max_concurrent_envs(mut self, most: usize) -> Self {
        self.said.max_concurrent_envs = Some(most);
        self
    }

    /// Takes this mode, whatever the variable `OPENENV_MODE` says. Default: simulation.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.said.mode = Some(mode);
        self
    }

    /// Takes these settings instead of the environment's.
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

    /// The server as a router, for tests, for routes beside it, and for servers that listen in their own way. Must be called
    /// within a tokio runtime: idle sessions are ended on a task.
    ///
    /// # Errors
    /// If a tool or a type cannot be served, or the environment's settings cannot be read.
    pub fn into_router(self) -> Result<Router, SetupError> {
        Ok(self.built()?.into_router())
    }

    /// Puts it together.
    fn built(self) -> Result<Built, SetupError> {
        let settings = Settings::given(self.settings, class::<E>())?;
        let variable = |name| std::env::var(name).ok();
        let can_be_several = E::SUPPORTS_CONCURRENT_SESSIONS;
        let limits = Limits::read(&settings, self.said, can_be_several, variable)?;
        let name = self.name.unwrap_or_else(|| class::<E>().to_owned());
        let core = Arc::new(Core::new(name, self.factory, limits));
        check(&core)?;
        let routes = routes::protocol(&core).merge((self.tasks)(&core));
        let router = front::front(routes, BodyLimit(settings.max_body_bytes));
        let (begins, ends) = (core.clone(), core.clone());
        let life = Life {
            stopping: core.stopping.clone(),
            begin: Box::new(move || begins.keep_swept()),
            end: Box::new(move |waits| Box::pin(async move { ends.shut_down(waits).await })),
        };
        let description = Description {
            kind: "openenv",
            protocol: None,
            session_cookie: None,
            session_start_routes: Vec::new(),
            session_end_routes: Vec::new(),
            routes_sessions_to_owner: true,
            multiple_workers_unsupported_reason: None,
            max_sessions_per_worker: Some(core.limits.max_concurrent_envs),
            is_forgeable: false,
        };
        Ok(Built::new(router, description, settings.num_workers, life))
    }
}

/// What clients could never call, or would misread.
fn check<E: Environment>(core: &Core<E>) -> Result<(), SetupError> {
    let reserved = core.tools.names().filter(|name| RESERVED.contains(name));
    let reserved =
        reserved.map(|name| format!("{name} is no name for a tool: it is one of the environment's calls"));
    let problems = core.tools.problems().map(str::to_owned).chain(reserved);
    let problems: Vec<String> = problems.chain(schemas::problems::<E>()).collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(SetupError::Environment(problems.join("; "))),
    }
}

impl<E: Environment> fmt::Debug for EnvironmentApp<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvironmentApp").field("name", &self.name).finish_non_exhaustive()
    }
}
