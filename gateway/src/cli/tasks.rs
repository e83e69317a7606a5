//! `tasks`: what tasks does a running server have?

use std::{
    io::{self, BufWriter, IsTerminal as _, Write},
    process::ExitCode,
};

use gym_worker_sdk::tasks::client::{ClientError, EnvTasks, TaskClient, Tasks, Walk};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde_json::{Value, json};

use super::args::TasksArgs;

/// Lists environments, splits or tasks: 0 if they are listed, 1 if the server does not answer so, 2 for bad usage.
pub(super) fn tasks(args: &TasksArgs) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("gym-gateway: cannot start a runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut lines = Lines::new();
    let listed = runtime.block_on(list(args, &mut lines));
    drop(lines); // what was listed is written, and the bar is gone, before an error is told
    match listed {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough (`| head`) is no failure.
        Err(Unlisted::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gym-gateway: {error}");
            error.code()
        }
    }
}

/// Why not all is listed.
#[derive(Debug, thiserror::Error)]
enum Unlisted {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    #[error("{url} has no environment")]
    NoEnvironment { url: String },
    #[error("{url} has several environments; choose one with --env: {}", names.join(", "))]
    SeveralEnvironments { url: String, names: Vec<String> },
}

impl Unlisted {
    fn code(&self) -> ExitCode {
        match self {
            Self::Client(ClientError::Url { .. }) | Self::SeveralEnvironments { .. } => {
                ExitCode::from(super::BAD_CONFIG)
            }
            Self::Client(_) | Self::Write(_) | Self::NoEnvironment { .. } => ExitCode::FAILURE,
        }
    }
}

async fn list(args: &TasksArgs, lines: &mut Lines) -> Result<(), Unlisted> {
    let client = TaskClient::new(&args.url)?.timeout(args.timeout_seconds);
    match (&args.env, &args.split) {
        (None, None) => {
            for name in client.list_environments().await? {
                lines.write(&json!({"env": name}))?;
            }
        }
        (Some(env), None) => {
            for split in client.env(env).list_splits().await? {
                lines.write(&split)?;
            }
        }
        (env, Some(split)) => {
            let env = match env {
                Some(env) => client.env(env),
                None => only_environment(&client, &args.url).await?,
            };
            let walk = Walk::new().range(args.range.unwrap_or_default());
            list_tasks(env.walk(split, walk).await?, lines).await?;
        }
    }
    Ok(lines.end()?)
}

async fn only_environment(client: &TaskClient, url: &str) -> Result<EnvTasks, Unlisted> {
    let mut names = client.list_environments().await?;
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(client.env(name)),
        (None, _) => Err(Unlisted::NoEnvironment { url: url.to_owned() }),
        (Some(last), false) => {
            names.push(last);
            Err(Unlisted::SeveralEnvironments { url: url.to_owned(), names })
        }
    }
}

async fn list_tasks(mut tasks: Tasks<Value>, lines: &mut Lines) -> Result<(), Unlisted> {
    lines.expect(tasks.remaining());
    while let Some(found) = tasks.next().await {
        lines.write(&found?.task)?;
    }
    Ok(())
}

/// Standard output, line by line, and how far it is on standard error.
struct Lines {
    out: BufWriter<io::Stdout>,
    /// Hidden where standard error is no terminal.
    bar: ProgressBar,
    /// Lines and the bar are on one screen: each line is shown above the bar at once.
    shared: bool,
}

impl Lines {
    fn new() -> Self {
        let shared = io::stdout().is_terminal();
        Self { out: BufWriter::new(io::stdout()), bar: ProgressBar::hidden(), shared }
    }

    /// Shows a bar up to so many lines, if anybody can see it.
    fn expect(&mut self, lines: u64) {
        self.bar.set_length(lines);
        // The template is a constant, and right.
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} {eta}") {
            self.bar.set_style(style);
        }
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
    }

    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let out = &mut self.out;
        if self.shared {
            self.bar.suspend(|| out.write_all(text.as_bytes()).and_then(|()| out.flush()))?;
        } else {
            out.write_all(text.as_bytes())?;
        }
        self.bar.inc(1);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.bar.finish_and_clear();
        self.out.flush()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
