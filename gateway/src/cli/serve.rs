//! `serve` and `run`: bind, start, wait, stop.

use std::{process::ExitCode, sync::Arc};

use async_trait::async_trait;
use pingora::{
    server::{ListenFds, RunArgs, Server, ShutdownWatch, configuration::ServerConf},
    services::Service,
};

use super::{
    plant::{Plant, Workers},
    snapshot::Live,
    stop::Watch,
};
use crate::{
    admin::{self, RequestMetrics},
    config::Config,
    keeper,
    proxy::{Address, Front},
};

/// Runs the gateway until it is told to stop.
pub(super) fn serve(config: Config) -> ExitCode {
    match start(config) {
        Ok(plant) => match plant.failure() {
            None => ExitCode::SUCCESS,
            Some(why) => failed(&why),
        },
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("gym-gateway: {why}");
    ExitCode::FAILURE
}

/// Binds every address before anything runs, so that a failed start is an error; returns after the stop.
fn start(config: Config) -> std::io::Result<Arc<Plant>> {
    keeper::become_subreaper()?;
    if let Err(error) = keeper::raise_nofile_limit() {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
    let binary = keeper::own_binary();
    let registry = prometheus::Registry::new();
    let metrics = RequestMetrics::register(&registry).map_err(std::io::Error::other)?;
    let plant = Plant::new(config, metrics);
    let addresses = plant.servers.iter().map(|s| Address::bind(s.clone())).collect::<Result<Vec<_>, _>>()?;
    let admin = Admin::bind(&plant, registry)?;
    for address in &addresses {
        let (name, kind) = (&address.server.config.name, address.server.config.kind);
        tracing::info!(server = name, ?kind, address = %address.local()?, "listening");
    }
    let front = Front::new(addresses, plant.gateway.threads, plant.shared.clone())?;

    let mut server = Server::new_with_opt_and_conf(None, ServerConf { threads: 1, ..ServerConf::default() });
    server.bootstrap();
    server.add_service(front);
    server.add_service(Workers { plant: plant.clone(), binary });
    if let Some(admin) = admin {
        server.add_service(admin);
    }
    server.run(RunArgs { shutdown_signal: Box::new(Watch { plant: plant.clone() }) });
    Ok(plant)
}

/// The service behind the admin address.
struct Admin {
    listener: Option<std::net::TcpListener>,
    router: axum::Router,
}

impl Admin {
    fn bind(plant: &Arc<Plant>, registry: prometheus::Registry) -> std::io::Result<Option<Self>> {
        let Some(address) = plant.gateway.admin else { return Ok(None) };
        let listener = std::net::TcpListener::bind(address).map_err(|error| {
            let what = format!("cannot listen on the admin address {address}: {error}; choose another with `admin` (run: --admin)");
            std::io::Error::new(error.kind(), what)
        })?;
        listener.set_nonblocking(true)?;
        tracing::info!(address = %listener.local_addr()?, "admin listening");
        let router = admin::router(Arc::new(Live(plant.clone())), registry);
        Ok(Some(Self { listener: Some(listener), router }))
    }
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
