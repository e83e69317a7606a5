//! How a slot comes to a process, and hears that it is ready: the seam between the state machine and the system.

use std::{io, path::PathBuf, time::Duration};

use async_trait::async_trait;
use http::HeaderMap;
use tokio::time::sleep;

use super::{
    Address, Resident,
    address::Places,
    launch, listener,
    log_file::LogFile,
    probe::{Probed, answers, is_listening, probe},
    process::{Label, Process},
    progress::Progress,
    report::Phase,
    run_dir::socket_in,
};
use crate::{config::ServerConfig, worker_id::WorkerId};

/// How soon a worker that is not ready is asked again.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A process that was started.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) process: Process,
    pub(crate) places: Places,
    pub(crate) command: String,
}

/// A worker that answered.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) address: Address,
    pub(crate) headers: HeaderMap,
}

/// Starts processes and waits for them to be ready.
#[async_trait]
pub(crate) trait Spawner: Send + Sync {
    /// Starts a process of this server; an error is the system's, in words.
    fn launch(&self, server: &ServerConfig, id: WorkerId) -> Result<Launched, String>;

    /// Returns when the worker answers as a ready one does; what it waits for stands in `progress`.
    async fn ready(&self, launched: &Launched, progress: &mut Progress) -> Answered;

    /// Whether a worker gives any reply at all; may take for ever.
    async fn answers(&self, address: &Address) -> bool;

    /// What memory processes take now; blocks.
    fn resident(&self) -> io::Result<Resident> {
        Resident::read()
    }
}

/// Starts real processes.
#[derive(Debug)]
pub(crate) struct KeeperSpawner {
    pub(crate) binary: PathBuf,
    /// The folder of their sockets.
    pub(crate) sockets: PathBuf,
}

#[async_trait]
impl Spawner for KeeperSpawner {
    fn launch(&self, server: &ServerConfig, id: WorkerId) -> Result<Launched, String> {
        let plan =
            launch::plan(server, id, socket_in(&self.sockets, id)).map_err(|error| error.to_string())?;
        let command = format!("{} (in {})", plan.spec.argv.join(" "), plan.spec.directory);
        let log = match &server.settings.process.log_file {
            Some(settings) => Some(
                LogFile::of(settings, &server.name, id)
                    .map_err(|error| format!("cannot start a thread for `log_file`: {error}"))?,
            ),
            None => None,
        };
        let label = Label { server: server.name.clone(), slot: Some(id.slot), log };
        let process = Process::start(self.binary.clone(), plan.spec, label);
        Ok(Launched { process, places: plan.places, command })
    }

    async fn ready(&self, launched: &Launched, progress: &mut Progress) -> Answered {
        launched.process.kept().await;
        progress.reach(Phase::Exec, "its command was not run");
        launched.process.started().await;
        progress.reach(Phase::Listen, nothing_listens(launched));
        loop {
            if let Some(answered) = ask(launched, progress).await {
                return answered;
            }
            sleep(ASK_EVERY).await;
        }
    }

    async fn answers(&self, address: &Address) -> bool {
        answers(address).await
    }
}

/// Asks once, wherever it listens.
async fn ask(launched: &Launched, progress: &mut Progress) -> Option<Answered> {
    let Places { socket, port } = &launched.places;
    let mut elsewhere = None;
    for address in
        socket.iter().cloned().map(Address::Unix).chain(port.iter().map(|port| Address::Tcp(port.address)))
    {
        if !is_listening(&address).await {
            continue;
        }
        if let Err(why) = check_owner(&address, launched).await {
            elsewhere = Some(why);
            continue;
        }
        // What an earlier probe saw says more than that there is another.
        if progress.phase != Phase::Probe {
            progress.reach(Phase::Probe, format!("it listens and does not answer at {address}"));
        }
        match probe(&address).await {
            Probed::Ready(headers) => return Some(Answered { address, headers }),
            Probed::NotReady(seen) => {
                progress.reach(Phase::Probe, format!("{seen} at {address}"));
                return None;
            }
            Probed::NotListening => {}
        }
    }
    progress.reach(Phase::Listen, elsewhere.unwrap_or_else(|| nothing_listens(launched)));
    None
}

fn nothing_listens(launched: &Launched) -> String {
    format!("nothing listens at {}", launched.places)
}

/// A port must be listened on by the worker, or by what it forked. (Its socket's folder is closed to others.)
async fn check_owner(address: &Address, launched: &Launched) -> Result<(), String> {
    let Address::Tcp(address) = *address else { return Ok(()) };
    let Some(keeper) = launched.process.stage().keeper else { return Err("its keeper is gone".into()) };
    match tokio::task::spawn_blocking(move || listener::is_own(address, keeper)).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(format!("another program listens at {address}")),
        Ok(Err(error)) => Err(format!("cannot tell who listens at {address}: {error}")),
        Err(error) => Err(format!("cannot tell who listens at {address}: {error}")),
    }
}
