//! `check`: what a configuration means, without starting anything (but for `--ask`).

use std::{path::Path, process::ExitCode};

use tokio_util::sync::CancellationToken;

use super::describe;
use crate::{
    config::{Config, Description, ServerConfig},
    keeper,
    workers::{self, Asked, ask},
};

/// Prints what the configuration means; with `ask`, also what each server says of itself and to several workers.
pub(super) fn check(config: Config, ask: bool) -> ExitCode {
    let printed = super::print(&crate::config::describe(&config));
    if !ask {
        return printed;
    }
    match ask_all(config.servers) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("gym-gateway: {error}");
            ExitCode::FAILURE
        }
    }
}

fn ask_all(servers: Vec<ServerConfig>) -> std::io::Result<bool> {
    keeper::become_subreaper()?;
    let binary = keeper::own_binary();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut all = true;
        for server in servers {
            let name = server.name.clone();
            let answer = if server.settings.describe.is_some() {
                description(server, &binary).await
            } else {
                agreement(&server, &binary).await
            };
            all &= answer.is_ok();
            match answer {
                Ok(text) => println!("{name}: {text}"),
                Err(error) => println!("{name}: {error}"),
            }
        }
        Ok(all)
    })
}

/// What a server says to several workers.
async fn agreement(server: &ServerConfig, binary: &Path) -> Result<String, String> {
    match ask(server, binary).await {
        Ok(Asked::NotNeeded(why)) => Ok(format!("not asked: {why}")),
        Ok(Asked::Agreed) => Ok(format!("can have {} workers", server.most_workers())),
        Err(error) => Err(error.to_string()),
    }
}

/// What a server says of itself, and what holds then.
async fn description(mut server: ServerConfig, binary: &Path) -> Result<String, String> {
    let told = workers::describe(&server, binary, &CancellationToken::new())
        .await
        .map_err(|error| error.to_string())?;
    let overruled = describe::settled(&mut server, &told)?;
    let mut lines = vec![format!("{}; {}", describe::summary(&server), several(&server, &told))];
    lines.extend(overruled.into_iter().map(|text| format!("  {text}")));
    Ok(lines.join("\n"))
}

fn several(server: &ServerConfig, told: &Description) -> String {
    match (&told.multiple_workers_unsupported_reason, server.most_workers()) {
        (None, 1) => "can have several workers".into(),
        (None, workers) => format!("can have {workers} workers"),
        (Some(reason), 1) => format!("must have one worker: {reason}"),
        (Some(reason), workers) => {
            format!("has {workers} workers by its config, against its own word: {reason}")
        }
    }
}
