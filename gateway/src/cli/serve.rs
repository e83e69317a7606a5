//! `serve` and `run`: bind, start, wait, stop.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc};

use async_trait::async_trait;
use pingora::{
    server::{ListenFds, RunArgs, Server, ShutdownWatch, configuration::ServerConf},
    services::Service,
};

use super::{
    describe::{self, Heard},
    plant::Plant,
    snapshot::Live,
    stop::{Signals, Watch},
};
use crate::{
    admin::{self, RequestMetrics},
    config::Config,
    keeper,
    proxy::{self, Address, Front},
};

/// Runs the gateway until it is told to stop.
pub(super) fn serve(config: Config, files: Option<Vec<PathBuf>>) -> ExitCode {
    match start(config, files) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(why)) => failed(&why),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("gym-gateway: {why}");
    ExitCode::FAILURE
}

/// Binds every address before anything runs, so that a failed start is an error; returns after the stop, with why the
/// start failed if it did.
fn start(mut config: Config, files: Option<Vec<PathBuf>>) -> std::io::Result<Option<String>> {
    keeper::become_subreaper()?;
    if let Err(error) = keeper::raise_nofile_limit() {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
    let binary = keeper::own_binary();
    // Clients that come while servers are asked wait in the queues of these.
    let listeners = config.servers.iter().map(proxy::bind).collect::<Result<Vec<_>, _>>()?;
    for (server, listener) in config.servers.iter().zip(&listeners) {
        let kind_is_open = server.settings.describe.is_some_and(|open| open.kind);
        let kind = (!kind_is_open).then(|| tracing::field::debug(server.kind));
        tracing::info!(server = server.name, kind, address = %listener.local_addr()?, "listening");
    }
    let admin = config.gateway.admin.map(bind_admin).transpose()?;
    let signals = Signals::default();
    match describe::settle(&mut config.servers, &binary, &signals)? {
        Heard::All => {}
        Heard::Failed(why) => return Ok(Some(why)),
        Heard::Stopped => return Ok(None),
    }
    let registry = prometheus::Registry::new();
    let metrics = RequestMetrics::register(&registry).map_err(std::io::Error::other)?;
    let (plant, workers) = Plant::new(config, files, metrics, binary);
    let units = plant.units();
    let served = units.iter().map(|unit| unit.state.clone()).zip(listeners);
    let addresses = served.map(|(server, listener)| Address { listener, server }).collect();
    let front = Front::new(addresses, plant.gateway.load().threads, plant.shared.clone())?;
    let _first = plant.opener.set(front.opener());

    let mut server = Server::new_with_opt_and_conf(None, ServerConf { threads: 1, ..ServerConf::default() });
    server.bootstrap();
    server.add_service(front);
    server.add_service(workers);
    if let Some(listener) = admin {
        let live = Arc::new(Live(plant.clone()));
        let router = admin::router(live.clone(), live, registry);
        server.add_service(Admin { listener: Some(listener), router });
    }
    server.run(RunArgs { shutdown_signal: Box::new(Watch { plant: plant.clone(), signals }) });
    Ok(plant.failure())
}

fn bind_admin(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address).map_err(|error| {
        let what = format!("cannot listen on the admin address {address}: {error}; choose another with `admin` (run: --admin)");
        std::io::Error::new(error.kind(), what)
    })?;
    listener.set_nonblocking(true)?;
    tracing::info!(address = %listener.local_addr()?, "admin listening");
    Ok(listener)
}

/// The service behind the admin address.
struct Admin {
    listener: Option<std::net::TcpListener>,
    router: axum::Router,
}

#[async_trait]
impl Service for Admin {
    async fn start_service(&mut self, _fds: Option<ListenFds>, _shutdown: ShutdownWatch, _listeners: usize) {
        let Some(listener) = self.listener.take() else { return };
        let served = match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => axum::serve(listener, self.router.clone()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = served {
            tracing::error!(%error, "the admin address is closed");
        }
    }

    fn name(&self) -> &'static str {
        "admin"
    }

    fn threads(&self) -> Option<usize> {
        Some(1)
    }
}
