//! A whole server as a program.

use std::fmt;
use std::io::{IsTerminal as _, Write as _, stderr, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use super::arguments::{Asked, HELP, asked};
use super::describe::Description;
use super::{ServeError, SettingsError, Signals, serve_until_stopped};
use crate::session::Store;

/// A server that is put together.
pub(crate) struct Built {
    router: Router,
    description: Description,
    num_workers: u32,
    life: Life,
}

/// What a server does besides answering.
pub(crate) struct Life {
    /// Told when the stop begins.
    pub(crate) stopping: CancellationToken,
    /// Begins to reclaim idle sessions.
    pub(crate) begin: Box<dyn FnOnce() + Send>,
    /// Releases what is open; whether it waits for sessions that are in use.
    pub(crate) end: Box<dyn FnOnce(bool) -> BoxFuture<'static, ()> + Send>,
}

impl Life {
    /// Of a server whose sessions are in this store.
    pub(crate) fn of<S: Send + 'static>(store: Arc<Store<S>>) -> Self {
        let swept = store.clone();
        Self {
            stopping: store.stopping().clone(),
            begin: Box::new(move || swept.keep_swept()),
            end: Box::new(move |waits| Box::pin(async move { store.shut_down(waits).await })),
        }
    }
}

impl Built {
    pub(crate) fn new(router: Router, description: Description, num_workers: u32, life: Life) -> Self {
        Self { router, description, num_workers, life }
    }

    /// Its routes, with idle sessions reclaimed from now on.
    pub(crate) fn into_router(self) -> Router {
        (self.life.begin)();
        self.router
    }

    /// What it says of itself.
    #[cfg(test)]
    pub(crate) fn description(&self) -> &Description {
        &self.description
    }

    /// The routes, and what happens at the stop.
    #[cfg(test)]
    pub(crate) fn into_parts(self) -> (Router, impl FnOnce(bool) -> BoxFuture<'static, ()>) {
        (self.life.begin)();
        (self.router, self.life.end)
    }
}

/// How long the program may take to return once requests were cut off.
const LAST_GRACE: Duration = Duration::from_secs(1);

/// Why a server cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Its settings cannot be read.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Its routes or tools cannot stand side by side.
    #[error("the server's routes: {0}")]
    Routes(String),
    /// Its tools cannot be served over MCP.
    #[error("expose_tools_over_mcp: {0}")]
    Mcp(String),
    /// Its environment cannot be served as it is set.
    #[error("the environment: {0}")]
    Environment(String),
}

/// Why a server did not run.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("nothing can be written to standard output: {0}")]
    Print(std::io::Error),
    #[error("stopped by a further signal, while sessions' states were released: some may not be")]
    Released,
    #[error("this is one of {workers} workers, but the server must be alone: {reason}; set num_workers to 1")]
    Alone { workers: u32, reason: String },
}

/// Serves what `build` puts together, or describes it.
pub(crate) async fn run(build: impl FnOnce() -> Result<Built, SetupError>) -> ExitCode {
    log_to_stderr();
    match try_run(build).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            if matches!(error, RunError::Released | RunError::Serve(ServeError::CutOff)) {
                end_for_good();
            }
            ExitCode::FAILURE
        }
    }
}

/// Ends the process soon, if the author's code keeps a thread for longer: the runtime's end would wait for it for ever, and
/// no signal but SIGKILL ends the process any more.
fn end_for_good() {
    std::thread::spawn(|| {
        std::thread::sleep(LAST_GRACE);
        tracing::error!("a thread is still busy: the process ends under it");
        std::process::exit(1);
    });
}

async fn try_run(build: impl FnOnce() -> Result<Built, SetupError>) -> Result<(), RunError> {
    let (asked, unknown) = asked(std::env::args().skip(1));
    if asked == Asked::Help {
        return print(HELP.trim_end()).map_err(RunError::Print);
    }
    let built = build()?;
    let description = &built.description;
    if asked == Asked::Describe {
        let json = serde_json::to_string(description).map_err(|error| RunError::Print(error.into()))?;
        return print(&json).map_err(RunError::Print);
    }
    if !unknown.is_empty() {
        tracing::warn!(
            "looked past arguments that say nothing to this server: {}; see --help",
            unknown.join(" ")
        );
    }
    let workers = built.num_workers;
    if let Some(reason) = description.multiple_workers_unsupported_reason.as_ref().filter(|_| workers > 1) {
        return Err(RunError::Alone { workers, reason: reason.clone() });
    }
    if description.is_forgeable {
        tracing::warn!(
            "session cookies are signed with their own name ({}), so anyone can forge one; \
             set session_secret in the server's config, or GYM_SESSION_SECRET",
            description.session_cookie.as_deref().unwrap_or_default(),
        );
    }
    let mut signals = Signals::watch()?;
    let Life { stopping, begin, end } = built.life;
    begin();
    let served = serve_until_stopped(built.router, &mut signals, stopping).await;
    // What was cut off may hold its session for ever.
    let waits = !matches!(served, Err(ServeError::CutOff));
    tokio::select! {
        () = end(waits) => Ok(served?),
        () = signals.next() => Err(RunError::Released),
    }
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Logs to standard error, unless the program has set up its own.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // The gateway takes the lines apart: no colours for it.
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal());
    // An error says that there is a subscriber already.
    let _own = logs.try_init();
}

impl fmt::Debug for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Built").field("description", &self.description).finish_non_exhaustive()
    }
}
