//! `conform`: does a running resources server keep the contract of episode sessions?

use std::{path::Path, process::ExitCode};

use gym_worker_sdk::conformance::{Options, Report, Seed, SeedError, check_resources_session_contract};
use serde_json::Value;

use super::args::ConformArgs;

/// Checks the server and prints the report: 0 if the contract is kept, 1 if not, 2 if a file cannot be used.
pub(super) fn conform(args: &ConformArgs) -> ExitCode {
    let (seed, options) = match read(args) {
        Ok(read) => read,
        Err(error) => {
            eprintln!("gym-gateway: {error}");
            return ExitCode::from(super::BAD_CONFIG);
        }
    };
    let checked = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map(|runtime| runtime.block_on(check_resources_session_contract(&args.url, &seed, &options)));
    match checked {
        Ok(report) => show(&report, args.json),
        Err(error) => {
            eprintln!("gym-gateway: cannot start a runtime: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
enum BadFile {
    #[error("cannot read {file}: {error}")]
    Unreadable { file: String, error: std::io::Error },
    #[error("{file}: {error}")]
    Seed { file: String, error: SeedError },
    #[error("{file}: the verify body is not JSON: {error}")]
    NotJson { file: String, error: serde_json::Error },
    #[error("{file}: the verify body must be a JSON object, as `POST /verify` takes it")]
    NotAnObject { file: String },
}

fn read(args: &ConformArgs) -> Result<(Seed, Options), BadFile> {
    let named = |path: &Path| path.display().to_string();
    let contents =
        |path: &Path| std::fs::read(path).map_err(|error| BadFile::Unreadable { file: named(path), error });
    let seed = Seed::from_json(&contents(&args.seed)?)
        .map_err(|error| BadFile::Seed { file: named(&args.seed), error })?;
    let mut options =
        Options::new().keeps_state(args.keeps_state).strict(args.strict).timeout(args.timeout_seconds);
    if let Some(path) = &args.verify_body {
        let body: Value = serde_json::from_slice(&contents(path)?)
            .map_err(|error| BadFile::NotJson { file: named(path), error })?;
        if !body.is_object() {
            return Err(BadFile::NotAnObject { file: named(path) });
        }
        options = options.verify_body(body);
    }
    Ok((seed, options))
}

fn show(report: &Report, json: bool) -> ExitCode {
    let text = if json {
        serde_json::to_string_pretty(report).map_err(|error| error.to_string())
    } else {
        Ok(report.to_string())
    };
    match text {
        Ok(text) => {
            let printed = super::print(&text);
            if report.is_ok() { printed } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("gym-gateway: cannot write the report: {error}");
            ExitCode::FAILURE
        }
    }
}
