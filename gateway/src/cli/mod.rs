//! The commands: parse, build, wait, stop.

mod args;
mod check;
mod conform;
mod control;
mod describe;
mod logging;
mod plant;
mod reap;
mod reload;
mod serve;
mod snapshot;
mod stop;
mod tasks;
mod watch;
mod workers;

use std::{io::Write, process::ExitCode};

use clap::Parser;

use self::args::{Cli, Command};
use crate::{
    admin::{self, client::ClientError, orders::Waiting},
    config,
    config::{ErrorList, RunOptions},
    keeper,
};

/// Bad usage or configuration.
const BAD_CONFIG: u8 = 2;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve { files, log } => with_config(config::load(&files), |config| {
            logging::start(log.log_format);
            serve::serve(config, Some(files))
        }),
        Command::Run { run, log } => with_config(config::from_command(run_options(*run)), |config| {
            logging::start(log.log_format);
            serve::serve(config, None)
        }),
        Command::Check { files, ask } => {
            with_config(config::load(&files), |config| {
                if ask {
                    logging::start(args::LogFormat::Text); // starting servers takes a while: what they say is shown
                }
                check::check(config, ask)
            })
        }
        Command::Status { admin, watch } => {
            let ask = || admin::client::status(&admin.admin, admin.json);
            match watch {
                None => said(ask()),
                Some(every) => watch::watch(ask, every),
            }
        }
        Command::Sessions { admin, server, state, limit, full } => {
            let query = admin::client::SessionsQuery { server, state, limit, full };
            said(admin::client::sessions(&admin.admin, &query, admin.json))
        }
        Command::Drain { target, order } => {
            ordered(&order, |waiting| admin::orders::drain(waiting, &target.server, target.slot))
        }
        Command::Restart { server, slot, order } => {
            ordered(&order, |waiting| admin::orders::restart(waiting, &server, slot))
        }
        Command::Reload { admin } => done(admin::orders::reload(&admin.admin, admin.json)),
        Command::Conform(args) => conform::conform(&args),
        Command::Tasks(args) => tasks::tasks(&args),
        Command::Keeper => keeper::run_keeper(),
        Command::ExecWorker { args } => keeper::exec_worker(args),
    }
}

fn run_options(run: args::RunArgs) -> RunOptions {
    RunOptions {
        kind: run.kind.map(Into::into),
        listen: run.listen,
        num_workers: run.num_workers,
        cookie: run.cookie,
        session_secret: run.session_secret,
        admin: run.admin.0,
        name: Some(run.name),
        argv: run.argv,
        describe: run.describe,
        access_log: run.access_log,
    }
}

fn with_config(
    config: Result<config::Config, ErrorList>,
    go: impl FnOnce(config::Config) -> ExitCode,
) -> ExitCode {
    match config {
        Ok(config) => go(config),
        Err(errors) => {
            for error in &errors.0 {
                eprintln!("gym-gateway: {error}");
            }
            ExitCode::from(BAD_CONFIG)
        }
    }
}

/// Has something done by a running gateway, and tells how it goes as it goes.
fn ordered(
    options: &args::OrderOptions,
    order: impl FnOnce(Waiting<'_>) -> Result<String, ClientError>,
) -> ExitCode {
    // Nobody has to listen: the end is told by the exit code.
    let mut tell = |line: &str| _ = writeln!(std::io::stdout(), "{line}");
    let args::AdminOptions { admin, json } = &options.admin;
    done(order(Waiting { admin, json: *json, wait: !options.no_wait, tell: &mut tell }))
}

fn done(result: Result<String, ClientError>) -> ExitCode {
    match result {
        Err(error @ ClientError::InvalidConfig { .. }) => {
            eprintln!("gym-gateway: {error}");
            ExitCode::from(BAD_CONFIG)
        }
        result => said(result),
    }
}

fn said<E: std::fmt::Display>(result: Result<String, E>) -> ExitCode {
    match result {
        Ok(text) => print(&text),
        Err(error) => {
            eprintln!("gym-gateway: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a line; a reader that has seen enough (`| head`) is no failure.
fn print(text: &str) -> ExitCode {
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gym-gateway: cannot write: {error}");
            ExitCode::FAILURE
        }
    }
}
