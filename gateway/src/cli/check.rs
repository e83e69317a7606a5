//! `check`: what a configuration means, without starting anything (but for `--ask`).

use std::process::ExitCode;

use crate::{
    config::Config,
    keeper,
    workers::{Asked, ask},
};

/// Prints what the configuration means; with `ask`, also what each server says to several workers.
pub(super) fn check(config: &Config, ask: bool) -> ExitCode {
    let printed = super::print(&crate::config::describe(config));
    if !ask {
        return printed;
    }
    match ask_all(config) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("gym-gateway: {error}");
            ExitCode::FAILURE
        }
    }
}

fn ask_all(config: &Config) -> std::io::Result<bool> {
    keeper::become_subreaper()?;
    let binary = keeper::own_binary();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut all = true;
        for server in &config.servers {
            match ask(server, &binary).await {
                Ok(Asked::NotNeeded(why)) => println!("{}: not asked: {why}", server.name),
                Ok(Asked::Agreed) => println!("{}: can have {} workers", server.name, server.num_workers),
                Err(error) => {
                    all = false;
                    println!("{}: {error}", server.name);
                }
            }
        }
        Ok(all)
    })
}
