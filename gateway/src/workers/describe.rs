//! Asks a server's command what it is.

use std::{fmt, path::Path, time::Duration};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    launch::{DESCRIBE, plan_describe},
    process::{Label, Process},
};
use crate::{
    config::{Description, ServerConfig},
    keeper::{Exit, Order},
};

/// The most that a command may write on its standard output.
const LONGEST_ANSWER: usize = 64 * 1024;

/// A command that gave no description.
#[derive(Clone, Debug)]
pub struct Undescribed {
    /// The server's name.
    pub server: String,
    /// What happened.
    pub seen: String,
    /// The command and its folder.
    pub command: String,
    /// The last lines of its output.
    pub output: Vec<String>,
}

impl fmt::Display for Undescribed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, seen, command, output } = self;
        write!(f, "server {server}: was asked with {DESCRIBE} what it is: {seen}")?;
        if !command.is_empty() {
            write!(f, "\n  command: {command}")?;
        }
        if !output.is_empty() {
            write!(f, "\n  its last output:")?;
        }
        for line in output {
            write!(f, "\n    | {line}")?;
        }
        write!(
            f,
            "\n  what to do: a server of the worker SDK prints one JSON object then, and exits with 0. If this one does \
             not know the question, take `describe: true` out (run: --describe), and set session_cookie, \
             session_start_routes and session_end_routes yourself where it needs them. Else run the command by hand \
             in that folder to see it fail"
        )
    }
}

impl std::error::Error for Undescribed {}

/// Runs a server's command once with `--describe`: in a worker's environment, but with nowhere to listen. Nothing of
/// it is left when this returns. `binary` is the `gym-gateway` program, for the keeper; `stop` ends it early.
///
/// # Errors
/// It ended with a failure, or not within `start_timeout_seconds`, or wrote no description.
pub async fn describe(
    server: &ServerConfig,
    binary: &Path,
    stop: &CancellationToken,
) -> Result<Description, Undescribed> {
    let failed = |seen, command, output| Undescribed { server: server.name.clone(), seen, command, output };
    let spec = plan_describe(server)
        .map_err(|error| failed(format!("it could not be: {error}"), String::new(), Vec::new()))?;
    let command = format!("{} (in {})", spec.argv.join(" "), spec.directory);
    tracing::info!(server = server.name, "asking the server what it is ({DESCRIBE})");
    let label = Label { server: server.name.clone(), slot: None, log: None };
    let (process, answer) = Process::start_captured(binary.to_owned(), spec, label, LONGEST_ANSWER);
    let trouble = tokio::select! {
        biased;
        () = stop.cancelled() => Some("the gateway was stopped".to_owned()),
        () = answer.overflowed() => Some(too_much()),
        exit = process.exited() => wrong_end(&process, &exit),
        () = sleep(server.settings.start_timeout) => Some(too_long(server.settings.start_timeout)),
    };
    if trouble.is_some() {
        process.order(Order::Kill);
    }
    process.gone().await;
    // The last of its output comes after its exit.
    let trouble = trouble.or_else(|| answer.has_overflowed().then(too_much));
    let described = trouble.map_or_else(|| Description::read(&answer.text()), Err);
    described.map_err(|seen| failed(seen, command, process.output().last_lines()))
}

fn wrong_end(process: &Process, exit: &Exit) -> Option<String> {
    match exit {
        Exit::Code(0) => None,
        exit => Some(process.stage().failed.map_or_else(|| format!("it {exit}"), |(_, error)| error)),
    }
}

fn too_much() -> String {
    format!("it wrote more than {LONGEST_ANSWER} bytes on its standard output")
}

fn too_long(limit: Duration) -> String {
    format!("it had not ended after {} s (start_timeout_seconds)", limit.as_secs_f64())
}
