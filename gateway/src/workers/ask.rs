//! Asks a NeMo Gym server whether it can have several workers.

use std::{fmt, path::Path, time::Duration};

use tokio::time::timeout;

use super::{
    launch::{GymRun, plan_gym},
    process::{Label, Process},
};
use crate::{
    config::{Launch, ServerConfig},
    keeper::{Exit, Order},
};

/// A server that may have its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It was not asked.
    NotNeeded(Unasked),
    /// It went through its dry run with that many.
    Agreed,
}

/// Why a server is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unasked {
    /// It has one worker.
    OneWorker,
    /// It runs a command, and only NeMo Gym's own servers know the dry run. (It may describe itself.)
    Command,
    /// Its `multiple_workers_unsupported_reason` is set.
    Reason,
}

impl fmt::Display for Unasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneWorker => "it has one worker",
            Self::Command => "it runs a command, which is asked only with `describe: true`",
            Self::Reason => "its multiple_workers_unsupported_reason is set",
        })
    }
}

/// Why the config leaves nothing to ask; `None`: ask.
fn unasked(server: &ServerConfig) -> Option<Unasked> {
    if server.most_workers() <= 1 {
        Some(Unasked::OneWorker)
    } else if !matches!(server.launch, Launch::NemoGym { .. }) {
        Some(Unasked::Command)
    } else {
        server.settings.multiple_workers_unsupported_reason.as_ref().map(|_| Unasked::Reason)
    }
}

/// A server that did not agree to have several workers: it refused, broke down, or could not be asked.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The server's name.
    pub server: String,
    /// How many workers it was asked for.
    pub num_workers: u16,
    /// What happened.
    pub seen: String,
    /// The last lines of its output: its reason.
    pub output: Vec<String>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, num_workers, seen, output } = self;
        write!(f, "server {server}: did not agree to num_workers: {num_workers} in a dry run: {seen}")?;
        if !output.is_empty() {
            write!(f, "\n  its last output:")?;
        }
        for line in output {
            write!(f, "\n    | {line}")?;
        }
        write!(
            f,
            "\n  what to do: read its output. If it says that the server must have one worker, set num_workers: 1 \
             (or, if you know better, gateway.servers.{server}.multiple_workers_unsupported_reason: \"\"). \
             If it could not start at all, such as for a missing module, mend that first: \
             gateway.servers.{server}.python and .directory say with what and where it runs"
        )
    }
}

impl std::error::Error for Refused {}

/// Runs a NeMo Gym server once with `dry_run: true` and the configured `num_workers`: it loads its config, makes itself, and
/// ends before it would listen.
///
/// Not asked: see [`Unasked`].
/// `binary` is the `gym-gateway` program, for the keeper.
///
/// # Errors
/// It ended with a failure, or not within `start_timeout_seconds`; nothing of it is left then.
pub async fn ask(server: &ServerConfig, binary: &Path) -> Result<Asked, Refused> {
    if let Some(why) = unasked(server) {
        return Ok(Asked::NotNeeded(why));
    }
    let num_workers = server.most_workers();
    let refused = |seen, output| Refused { server: server.name.clone(), num_workers, seen, output };
    let plan = plan_gym(server, GymRun { num_workers, dry_run: true })
        .map_err(|error| refused(format!("it could not be asked: {error}"), Vec::new()))?;
    tracing::info!(
        server = server.name,
        num_workers,
        "asking the server whether it can have several workers (dry run)"
    );
    let label = Label { server: server.name.clone(), slot: None, log: None };
    let process = Process::start(binary.to_owned(), plan.spec, label);
    let seen = outcome(&process, server.settings.start_timeout).await;
    process.gone().await;
    match seen {
        None => Ok(Asked::Agreed),
        Some(seen) => Err(refused(seen, process.output().last_lines())),
    }
}

/// What went wrong, if anything.
async fn outcome(process: &Process, limit: Duration) -> Option<String> {
    match timeout(limit, process.exited()).await {
        Ok(Exit::Code(0)) => None,
        Ok(exit) => Some(process.stage().failed.map_or_else(|| format!("it {exit}"), |(_, error)| error)),
        Err(_) => {
            process.order(Order::Kill);
            Some(format!("it had not ended after {} s", limit.as_secs_f64()))
        }
    }
}
