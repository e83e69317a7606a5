//! Listening where the gateway says, and stopping as it expects.

mod address;
mod arguments;
mod describe;
mod front;
pub(crate) mod health;
mod routes;
mod run;
mod settings;

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::pin::pin;

use axum::Router;
use axum::serve::ListenerExt as _;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub use address::Address;
#[cfg(feature = "openenv")]
pub(crate) use describe::Description;
pub(crate) use front::redirect;
pub(crate) use routes::{Routes, Workers};
pub use run::SetupError;
pub(crate) use run::{Built, Life, run};
pub use settings::{Settings, SettingsError};

/// Why a server could not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Neither the environment nor the arguments name an address.
    #[error(
        "nowhere to listen: set GYM_WORKER_SOCKET to a path or PORT to a number, or pass --port (and --host)"
    )]
    NoAddress,
    /// An argument without its value.
    #[error("{0} needs a value")]
    NoValue(&'static str),
    /// A port that is not a number from 0 to 65535.
    #[error("{name} is no port: {value:?}; give a number from 0 to 65535")]
    BadPort {
        /// The variable or argument.
        name: &'static str,
        /// What it holds.
        value: String,
    },
    /// The address could not be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// Where.
        address: Address,
        /// Why not.
        source: io::Error,
    },
    /// The handlers for SIGTERM and SIGINT could not be set.
    #[error("cannot watch for SIGTERM and SIGINT: {0}")]
    Signals(io::Error),
    /// Serving failed.
    #[error("serving failed: {0}")]
    Serve(io::Error),
    /// A second signal came before the requests in flight had finished.
    #[error("stopped by a second signal: the requests in flight were cut off")]
    CutOff,
}

/// NeMo Gym's own limit on open files.
const OPEN_FILES: u64 = 65_535;

/// Serves `router` until SIGTERM or SIGINT, then lets the requests in flight finish. A second signal cuts them off: for
/// those that have no end.
///
/// Listens on the Unix socket `GYM_WORKER_SOCKET`, else on port `PORT` of 127.0.0.1 (both set by the gateway), else
/// where the arguments `--host` (127.0.0.1) and `--port` say.
///
/// # Errors
/// If there is no address, it cannot be listened on, serving fails, or requests were cut off.
pub async fn serve(router: Router) -> Result<(), ServeError> {
    serve_until_stopped(router, &mut Signals::watch()?, CancellationToken::new()).await
}

/// The same; `stopping` is cancelled when the stop begins, for requests that have no end of their own.
async fn serve_until_stopped(
    router: Router,
    signals: &mut Signals,
    stopping: CancellationToken,
) -> Result<(), ServeError> {
    let address = Address::choose(|name| std::env::var(name).ok(), std::env::args().skip(1))?;
    raise_file_limit();
    let mut served = pin!(listen(&address, router, stopping.clone().cancelled_owned()));
    tokio::select! {
        served = &mut served => return served,
        () = signals.next() => {}
    }
    tracing::info!("stopping: requests in flight finish first; a second signal cuts them off");
    stopping.cancel();
    tokio::select! {
        served = served => served,
        () = signals.next() => Err(ServeError::CutOff),
    }
}

/// SIGTERM and SIGINT.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn watch() -> Result<Self, ServeError> {
        let watch = |kind| signal(kind).map_err(ServeError::Signals);
        Ok(Self { terminate: watch(SignalKind::terminate())?, interrupt: watch(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Raises the limit on open files to what NeMo Gym's servers have: each connection is one, and at the limit new ones wait
/// unseen.
fn raise_file_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        let wanted = hard.min(OPEN_FILES);
        if soft < wanted { setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) } else { Ok(()) }
    });
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit on open files stays as it is");
    }
}

async fn listen(
    address: &Address,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let failed = |source| ServeError::Bind { address: address.clone(), source };
    match address {
        Address::Unix(path) => {
            remove_stale(path).await.map_err(failed)?;
            let listener = UnixListener::bind(path).map_err(failed)?;
            tracing::info!(%address, "listening");
            axum::serve(listener, router).with_graceful_shutdown(stop).await.map_err(ServeError::Serve)
        }
        Address::Tcp(host, port) => {
            let listener = TcpListener::bind((host.as_str(), *port)).await.map_err(failed)?;
            let bound = listener.local_addr().map_err(failed)?;
            tracing::info!(address = %bound, "listening");
            let listener = listener.tap_io(|stream| {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY not set");
                }
            });
            axum::serve(listener, router).with_graceful_shutdown(stop).await.map_err(ServeError::Serve)
        }
    }
}

/// Removes a socket that nobody listens on: its server was killed and could not.
async fn remove_stale(path: &std::path::Path) -> io::Result<()> {
    match UnixStream::connect(path).await {
        // A file of another type refuses too, and is somebody's.
        Err(error)
            if error.kind() == io::ErrorKind::ConnectionRefused
                && std::fs::symlink_metadata(path)?.file_type().is_socket() =>
        {
            std::fs::remove_file(path)
        }
        // Nothing there, or somebody listens: binding says so.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
