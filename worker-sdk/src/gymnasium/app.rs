//! A Gymnasium server's routes.

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use gym_wire::message::ResetResponse;

use super::{GymnasiumServer, close, reset, step};
use crate::body::Body;
use crate::http::metrics_reply;
use crate::metrics::AggregateMetricsRequest;
use crate::serve::{Built, Routes, Settings, SetupError, Workers, health, run};
use crate::session::{Store, keeps_state};
use crate::tasks::{MadeProvider, TaskApi};

/// What the endpoints share.
pub(super) struct Core<E: GymnasiumServer> {
    pub(super) server: Arc<E>,
    pub(super) store: Arc<Store<E::State>>,
    pub(super) settings: Settings,
}

impl<E: GymnasiumServer> Core<E> {
    /// Whether anything is kept of a session: what its author keeps, or the reply that may be repeated.
    pub(super) const KEEPS_SESSIONS: bool = keeps_state::<E::State>() || E::SUPPORTS_STEP_IDEMPOTENCY;

    /// A reset's reply, with what the agent must know of the server.
    pub(super) fn tell(&self, response: &mut ResetResponse) {
        for (key, is_supported) in [
            ("supports_explicit_close", E::SUPPORTS_EXPLICIT_CLOSE),
            ("supports_step_idempotency", E::SUPPORTS_STEP_IDEMPOTENCY),
        ] {
            if is_supported {
                response.info.insert(key.to_owned(), true.into());
            }
        }
    }
}

/// A Gymnasium server: its environment, and routes of its own.
///
/// ```no_run
/// # use gym_worker_sdk::{Empty, GymnasiumApp, GymnasiumServer, NeMoGymResponse, Result, Session, Step};
/// # struct Calculator;
/// # impl GymnasiumServer for Calculator {
/// #     const CLASS: &'static str = "CalculatorEnv";
/// #     type Metadata = Empty;
/// #     type State = ();
/// #     async fn step(&self, _: Session<()>, _: NeMoGymResponse, _: Empty) -> Result<Step> {
/// #         Ok(Step::reward(1.0).terminated())
/// #     }
/// # }
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> std::process::ExitCode {
///     GymnasiumApp::new(Calculator).run().await
/// }
/// ```
#[must_use = "it serves nothing until it runs"]
pub struct GymnasiumApp<E: GymnasiumServer> {
    server: Arc<E>,
    routes: Routes,
    settings: Option<Settings>,
}

impl<E: GymnasiumServer> GymnasiumApp<E> {
    /// A server of this environment. Its settings come from the environment, unless [`settings`](Self::settings) is
    /// called.
    pub fn new(server: E) -> Self {
        let mut others = vec!["/step", "/aggregate_metrics"];
        if E::SUPPORTS_EXPLICIT_CLOSE {
            others.push("/close");
        }
        let routes = Routes::beside("gymnasium", "/reset", &others, |_| false);
        Self { server: Arc::new(server), routes, settings: None }
    }

    /// Adds a route of the author's own. Its handler may take [`Session<E::State>`](crate::Session) as an extractor: 404
    /// if that is unknown, and the reply sets the cookie if the handler used it.
    pub fn route(mut self, path: &str, handlers: MethodRouter) -> Self {
        if self.may_go_on_after(path) {
            self.routes.add(path, handlers);
        }
        self
    }

    /// Whether a session may go on after a POST to the path: the gateway takes `/close` as the protocol has it.
    fn may_go_on_after(&mut self, path: &str) -> bool {
        let ends = path == "/close" && !E::SUPPORTS_EXPLICIT_CLOSE;
        if ends {
            self.routes.refuse(
                "the route /close ends its session in this protocol: set SUPPORTS_EXPLICIT_CLOSE to have it served, \
                 add yours with end_route, or name it otherwise"
                    .into(),
            );
        }
        !ends
    }

    /// The same for a further start route: its handler takes [`Start<E::State>`](crate::Start) and opens the session.
    /// Every reply sets the session cookie. The path has no parameters: the gateway knows it by comparison.
    pub fn start_route(mut self, path: &str, handlers: MethodRouter) -> Self {
        if self.may_go_on_after(path) {
            self.routes.add_start(path, handlers);
        }
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
    /// runtime: idle sessions are reclaimed on a task.
    ///
    /// # Errors
    /// If a route cannot be served, such as two of one path, or the environment's settings cannot be read.
    pub fn into_router(self) -> Result<Router, SetupError> {
        Ok(self.built()?.into_router())
    }

    /// Puts it together.
    fn built(self) -> Result<Built, SetupError> {
        self.routes.check()?;
        let settings = Settings::given(self.settings, E::CLASS)?;
        let cookie = settings.cookie(E::CLASS);
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
        let core = Arc::new(Core { server: self.server, store: store.clone(), settings });
        Ok(self.routes.built(protocol(&core), workers, &core.settings, cookie, store))
    }
}

/// The protocol's own routes.
fn protocol<E: GymnasiumServer>(core: &Arc<Core<E>>) -> Router {
    let mut router = Router::new()
        .route("/reset", post(reset::reset::<E>))
        .route("/step", post(step::step::<E>))
        .route("/aggregate_metrics", post(aggregate_metrics::<E>));
    if E::SUPPORTS_EXPLICIT_CLOSE {
        router = router.route("/close", post(close::close::<E>));
    }
    router.merge(health::routes()).with_state(core.clone())
}

async fn aggregate_metrics<E: GymnasiumServer>(
    State(core): State<Arc<Core<E>>>,
    Body(request): Body<AggregateMetricsRequest>,
) -> Response {
    metrics_reply(&request, core.server.metrics())
}

impl<E: GymnasiumServer> fmt::Debug for GymnasiumApp<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GymnasiumApp").field("routes", &self.routes).finish_non_exhaustive()
    }
}
