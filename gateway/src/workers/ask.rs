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
    /// One worker, another kind of server, or the config says what it would.
    NotNeeded,
    /// It went through its dry run with that many.
    Agreed,
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
/// Not asked: one worker, a server of another kind, and one whose `multiple_workers_unsupported_reason` is set.
/// `binary` is the `gym-gateway` program, for the keeper.
///
/// # Errors
/// It ended with a failure, or not within `start_timeout_seconds`; nothing of it is left then.
pub async fn ask(server: &ServerConfig, binary: &Path) -> Result<Asked, Refused> {
    let settled = server.settings.multiple_workers_unsupported_reason.is_some();
    if server.num_workers <= 1 || settled || !matches!(server.launch, Launch::NemoGym { .. }) {
        return Ok(Asked::NotNeeded);
    }
    let num_workers = server.num_workers;
    let refused = |seen, output| Refused { server: server.name.clone(), num_workers, seen, output };
    let plan = plan_gym(server, GymRun { num_workers, dry_run: true })
        .map_err(|error| refused(format!("it could not be asked: {error}"), Vec::new()))?;
    tracing::info!(
        server = server.name,
        num_workers,
        "asking the server whether it can have several workers (dry run)"
    );
    let label = Label { server: server.name.clone(), slot: None };
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
