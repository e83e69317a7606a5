//! The stop: our own shutdown signal in place of pingora's, which sleeps for minutes on SIGTERM.

use std::sync::Arc;

use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::Mutex,
    time::timeout,
};

use super::plant::Plant;
use crate::{systemd, workers::Supervisor};

/// Waits for the end, and carries it out.
pub(super) struct Watch {
    pub(super) plant: Arc<Plant>,
    pub(super) signals: Signals,
}

#[async_trait]
impl ShutdownSignalWatch for Watch {
    async fn recv(&self) -> ShutdownSignal {
        let plant = &self.plant;
        tokio::select! {
            () = plant.failed.cancelled() => {}
            () = self.signals.terminated() => self.finish_requests().await,
        }
        systemd::stopping();
        let stop = &plant.shared.stop;
        stop.begun.cancel();
        stop.cut.cancel();
        stop.connections.close();
        // The cores answer what they cut, and end within a second or so; a worker's own last words come too late then.
        stop.cores.close();
        stop.cores.wait().await;
        // A reload that is under way ends first, so that no server is added to those that are stopped here.
        let _one = plant.changing.lock().await;
        let units = plant.units();
        let supervisors = || units.iter().filter_map(|unit| unit.supervisor());
        // All at once: a worker that takes its time keeps no other server's waiting.
        supervisors().for_each(Supervisor::begin_stop);
        for supervisor in supervisors() {
            supervisor.stop().await;
        }
        // All is done: pingora's grace periods would only wait.
        ShutdownSignal::FastShutdown
    }
}

impl Watch {
    /// No new connections; requests in flight finish, for `shutdown_timeout_seconds` at most or until told again.
    async fn finish_requests(&self) {
        let (stop, limit) = (&self.plant.shared.stop, self.plant.gateway.load().shutdown_timeout);
        systemd::stopping();
        tracing::info!(limit_seconds = limit.as_secs_f64(), "stopping: requests in flight may finish");
        stop.begun.cancel();
        stop.connections.close();
        tokio::select! {
            done = timeout(limit, stop.connections.wait()) => {
                if done.is_err() {
                    tracing::warn!(connections = stop.connections.len(), "stopping: the time is over, the rest is cut");
                }
            }
            () = self.signals.terminated() => tracing::warn!("stopping: told again, requests in flight are cut"),
        }
    }
}

/// SIGTERM and SIGINT, watched from the first wait on: none that comes between two waits is missed.
#[derive(Debug, Default)]
pub(super) struct Signals(Mutex<Option<[Signal; 2]>>);

impl Signals {
    /// Waits for either.
    pub(super) async fn terminated(&self) {
        let mut watched = self.0.lock().await;
        let [term, int] = match &mut *watched {
            Some(signals) => signals,
            none => match watch() {
                Ok(signals) => none.insert(signals),
                Err(error) => {
                    // Without its handlers the process would die of the signal and leave its workers to their keepers.
                    tracing::error!(%error, "signals cannot be watched; only SIGKILL ends this process");
                    std::future::pending().await
                }
            },
        };
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    }
}

/// SIGHUPs; without files to read again none is watched, and the signal ends the process as it always did.
pub(super) fn hangups(watched: bool) -> Hangups {
    let signals = watched.then(|| signal(SignalKind::hangup())).transpose();
    Hangups(signals.unwrap_or_else(|error| {
        tracing::error!(%error, "SIGHUP cannot be watched; `gym-gateway reload` still works");
        None
    }))
}

/// See [`hangups`].
#[derive(Debug)]
pub(super) struct Hangups(Option<Signal>);

impl Hangups {
    /// Waits for the next.
    pub(super) async fn next(&mut self) {
        let came = match &mut self.0 {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if came.is_none() {
            std::future::pending().await
        }
    }
}

fn watch() -> std::io::Result<[Signal; 2]> {
    Ok([signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?])
}
