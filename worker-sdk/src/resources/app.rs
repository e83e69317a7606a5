//! A resources server's routes.

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use axum::{Json, Router};

use super::{ResourcesServer, Tool, Tools, close, seed, tools, verify};
use crate::body::Body;
use crate::http::{get_alone, metrics_reply};
use crate::mcp;
use crate::metrics::AggregateMetricsRequest;
use crate::serve::{Built, Routes, Settings, SetupError, Workers, health, run};
use crate::session::{SessionCookie, Store, keeps_state};
use crate::tasks::{MadeProvider, TaskApi};

/// What the endpoints share.
pub(crate) struct Core<E: ResourcesServer> {
    pub(crate) server: Arc<E>,
    pub(crate) store: Arc<Store<E::State>>,
    pub(crate) cookie: SessionCookie,
    pub(crate) tools: Tools<E>,
    /// The tools over MCP, if they are exposed.
    pub(crate) mcp: Option<mcp::Exposed>,
}

impl<E: ResourcesServer> Core<E> {
    /// Whether a session holds anything here.
    pub(crate) const KEEPS_STATE: bool = keeps_state::<E::State>();
}

/// A resources server: its environment, its tools, and routes of its own.
///
/// ```no_run
/// # use gym_worker_sdk::{Empty, ResourcesApp, ResourcesServer, Result, Session, Verdict, VerifyRequest};
/// # struct Calculator;
/// # impl ResourcesServer for Calculator {
/// #     const CLASS: &'static str = "CalculatorServer";
/// #     type Seed = Empty;
/// #     type State = ();
/// #     type Verify = Empty;
/// #     type Details = Empty;
/// #     async fn verify(&self, _: Session<()>, _: VerifyRequest<Empty>) -> Result<Verdict> {
/// #         Ok(Verdict::reward(1.0))
/// #     }
/// # }
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Square {
///     value: i64,
/// }
///
/// async fn square(Square { value }: Square) -> Result<i64> {
///     Ok(value * value)
/// }
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> std::process::ExitCode {
///     ResourcesApp::new(Calculator).tool("square", square).run().await
/// }
/// ```
#[must_use = "it serves nothing until it runs"]
pub struct ResourcesApp<E: ResourcesServer> {
    server: Arc<E>,
    tools: Tools<E>,
    routes: Routes,
    settings: Option<Settings>,
    over_mcp: bool,
}

impl<E: ResourcesServer> ResourcesApp<E> {
    /// A server without tools. Its settings come from the environment, unless [`settings`](Self::settings) is called.
    pub fn new(server: E) -> Self {
        let others = ["/close_session", "/verify", "/aggregate_metrics", "/reverify_mode"];
        Self {
            server: Arc::new(server),
            tools: Tools::new(),
            routes: Routes::beside("seed_verify", "/seed_session", &others, mcp::is_mcp),
            settings: None,
            over_mcp: false,
        }
    }

    /// Adds the tool `POST /{name}`, which an agent calls for a model's function call of that name.
    ///
    /// Also `reset`, `step` and `close` are free names: `--describe` says that the server does not speak the Gymnasium
    /// protocol. A gateway that was not told (no `describe: true`, no `protocol: seed_verify`) ends a session at `/close`.
    pub fn tool<M>(self, name: &str, tool: impl Tool<E, M>) -> Self {
        self.add_tool(name, None, tool)
    }

    /// The same with a description, for agents that find tools by MCP.
    pub fn described_tool<M>(self, name: &str, description: &str, tool: impl Tool<E, M>) -> Self {
        self.add_tool(name, Some(description), tool)
    }

    fn add_tool<M>(mut self, name: &str, description: Option<&str>, tool: impl Tool<E, M>) -> Self {
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if !is_name {
            self.routes.refuse(format!("the tool's name {name:?} must be of letters, digits, '_' and '-'"));
        }
        self.routes.claim(&format!("/{name}"), false);
        self.tools.add(name, description, tool);
        self
    }

    /// Adds a route of the author's own. Its handler may take [`Session<E::State>`](crate::Session) as an extractor: 404 if
    /// that is unknown, and the reply sets the cookie if the handler used it.
    pub fn route(mut self, path: &str, handlers: MethodRouter) -> Self {
        self.routes.add(path, handlers);
        self
    }

    /// The same for a further start route: its handler takes [`Start<E::State>`](crate::Start) and opens the session.
    /// Every reply sets the session cookie. The path has no parameters: the gateway knows it by comparison.
    pub fn start_route(mut self, path: &str, handlers: MethodRouter) -> Self {
        self.routes.add_start(path, handlers);
        self
    }

    /// The same for a further end route: a POST that succeeds (2xx) ends its session, if the handler has not called
    /// [`Session::end`](crate::Session::end) itself. The gateway is told of the route by `--describe`.
    pub fn end_route(mut self, path: &str, handlers: MethodRouter) -> Self {
        self.routes.add_end(path, handlers);
        self
    }

    /// Serves the Task API beside it: what tasks there are, for OpenEnv's trainers. Episodes begin as ever.
    pub fn tasks<F, M>(mut self, api: TaskApi<F>) -> Self
    where
        F: Fn() -> M + Send + Sync + 'static,
        M: MadeProvider,
    {
        self.routes.add_tasks(api);
        self
    }

    /// Serves the tools at `/mcp` too, as the setting `expose_tools_over_mcp` does, unless the config has that setting and
    /// says otherwise.
    pub fn tools_over_mcp(mut self) -> Self {
        self.over_mcp = true;
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

    /// The server as a router, for tests and for servers that listen in their own way. Must be called within a tokio
    /// runtime: idle sessions are reclaimed on a task. A stream of `GET /mcp` ends with its client alone.
    ///
    /// # Errors
    /// If a tool or route cannot be served, such as two of one name, or the environment's settings cannot be read.
    pub fn into_router(self) -> Result<Router, SetupError> {
        Ok(self.built()?.into_router())
    }

    /// Puts it together.
    pub(crate) fn built(self) -> Result<Built, SetupError> {
        self.routes.check()?;
        let mut settings = Settings::given(self.settings, E::CLASS)?;
        settings.expose_tools_over_mcp |= self.over_mcp && !settings.block.contains_key(Settings::OVER_MCP);
        let cookie = settings.cookie(E::CLASS);
        let mcp = mcp::Exposed::of(&settings, &cookie, &self.tools)?;
        let server = self.server.clone();
        let hook = Box::new(move |id, state, why| {
            let server = server.clone();
            Box::pin(async move { server.release(id, state, why).await }) as _
        });
        let store = Store::new(settings.limits(), hook);
        let workers = Workers {
            routes_sessions_to_owner: E::ROUTES_SESSIONS_TO_OWNER,
            multiple_workers_unsupported_reason: self.server.multiple_workers_unsupported_reason(),
        };
        let (server, tools) = (self.server, self.tools);
        let core = Arc::new(Core { server, store: store.clone(), cookie: cookie.clone(), tools, mcp });
        Ok(self.routes.built(protocol(&core), workers, &settings, cookie, store))
    }
}

/// The protocol's own routes, and the tools'.
fn protocol<E: ResourcesServer>(core: &Arc<Core<E>>) -> Router {
    let mut router = Router::new()
        .route("/seed_session", post(seed::seed_session::<E>))
        .route("/close_session", post(close::close_session::<E>))
        .route("/verify", post(verify::verify::<E>))
        .route("/aggregate_metrics", post(aggregate_metrics::<E>))
        .route("/reverify_mode", get_alone(async || Json(E::REVERIFY_MODE)));
    for tool in core.tools.iter() {
        router = router.route(&format!("/{}", tool.name), post(tools::endpoint::<E>(tool.clone())));
    }
    router = router.merge(health::routes());
    if core.mcp.is_some() {
        router = router.merge(mcp::routes());
    }
    router.with_state(core.clone())
}

async fn aggregate_metrics<E: ResourcesServer>(
    State(core): State<Arc<Core<E>>>,
    Body(request): Body<AggregateMetricsRequest>,
) -> Response {
    metrics_reply(&request, core.server.metrics())
}

impl<E: ResourcesServer> fmt::Debug for ResourcesApp<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourcesApp")
            .field("tools", &self.tools)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}
