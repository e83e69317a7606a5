//! The command line.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use gym_worker_sdk::tasks::TaskRange;

use crate::config::Kind;

/// One front address for N worker processes of an RL environment server; every session has one owner.
///
/// Exit codes: 0 done, 1 failed, 2 bad usage or configuration.
#[derive(Debug, Parser)]
#[command(name = "gym-gateway", version, max_term_width = 100)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start the servers of configuration files and stay in front of them
    Serve {
        /// YAML files: NeMo Gym's own, with a `gateway:` block beside
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        log: LogOptions,
    },
    /// Start one server without a file: anything that listens on a socket or port
    Run {
        #[command(flatten)]
        run: Box<RunArgs>,
        #[command(flatten)]
        log: LogOptions,
    },
    /// Read configuration files, say what they mean, start nothing
    Check {
        /// YAML files
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Also start each NeMo Gym server once, dry, to hear whether it can have several workers, and each command
        /// with `describe: true` to hear what it is
        #[arg(long)]
        ask: bool,
    },
    /// Show a running gateway's servers and workers
    Status {
        #[command(flatten)]
        admin: AdminOptions,
        /// Show it again and again, until Ctrl-C; without SECONDS every 2
        #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = seconds)]
        watch: Option<Duration>,
    },
    /// List a running gateway's sessions
    Sessions {
        #[command(flatten)]
        admin: AdminOptions,
        /// Only this server's
        #[arg(long)]
        server: Option<String>,
        /// Only those in this state: claimed, open, ended, lost
        #[arg(long)]
        state: Option<String>,
        /// At most so many
        #[arg(long, default_value_t = 1000)]
        limit: usize,
        /// Whole session IDs; whoever has one can act as its session
        #[arg(long)]
        full: bool,
    },
    /// Let a worker keep its sessions and get no new ones, until its slot is empty
    ///
    /// The slot stays empty until it is restarted. What is left after `drain_timeout_seconds` is lost. Says what is left,
    /// and waits; the drain goes on if the command is ended.
    Drain {
        /// The worker's server and slot, as counter/2
        #[arg(value_name = "SERVER/SLOT", value_parser = target)]
        target: Target,
        #[command(flatten)]
        order: OrderOptions,
    },
    /// Replace a server's workers one by one: each new one is ready before the old one drains
    ///
    /// A new worker that does not start stops it, and the rest stays as it was. Waits until the last new worker is ready;
    /// the rolling restart goes on if the command is ended.
    Restart {
        /// The server's name
        server: String,
        /// Only this slot, which may be empty since it was drained
        #[arg(long)]
        slot: Option<u16>,
        #[command(flatten)]
        order: OrderOptions,
    },
    /// Have a gateway that was started by `serve` read its files again, and apply what has changed
    ///
    /// The same as SIGHUP, and tells what it came to. Exit codes: 0 applied, 1 something could not be done, 2 the files are
    /// not valid: nothing has changed.
    Reload {
        #[command(flatten)]
        admin: AdminOptions,
    },
    /// Check that a running resources server, Python or Rust, keeps the contract of episode sessions
    ///
    /// Seeds, verifies and closes sessions of its own: repeatedly, for the wrong episode, too late, and without the
    /// cookie of a lost reply. Exit codes: 0 it keeps the contract, 1 it does not or cannot be reached, 2 a file or
    /// the usage is bad.
    Conform(ConformArgs),
    /// List the tasks of a running server with the Task API, OpenEnv's or ORS's
    ///
    /// JSON Lines: the environments; with --env its splits; with --split the tasks, as the server tells of them, page by
    /// page. Exit codes: 0 listed, 1 the server refuses or cannot be reached, 2 the usage is bad.
    Tasks(TasksArgs),
    /// The parent process of one worker; started by the gateway itself
    #[command(hide = true)]
    Keeper,
    /// Becomes a worker; started by a keeper
    #[command(hide = true)]
    ExecWorker {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Worker processes
    #[arg(long, short = 'n', default_value_t = 1, value_name = "N")]
    pub(super) num_workers: u32,
    /// The front address; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8000", value_name = "HOST:PORT")]
    pub(super) listen: String,
    /// The server's protocol [default: generic, or what --describe says]
    #[arg(long, value_enum)]
    pub(super) kind: Option<KindName>,
    /// Name of the session cookie (kind generic: without it no request names a session)
    #[arg(long, value_name = "NAME")]
    pub(super) cookie: Option<String>,
    /// Secret that signs the session cookie; by default its name, as NeMo Gym does
    #[arg(long, env = "GYM_SESSION_SECRET", hide_env_values = true, value_name = "SECRET")]
    pub(super) session_secret: Option<String>,
    /// Address of /metrics, /status and the rest; `off` for none
    #[arg(long, default_value = "127.0.0.1:9090", value_name = "HOST:PORT", value_parser = admin_address)]
    pub(super) admin: AdminAddress,
    /// The server's name in logs and metrics
    #[arg(long, default_value = "server")]
    pub(super) name: String,
    /// Run the command once with --describe behind its arguments, to hear its kind, session cookie and routes
    #[arg(long)]
    pub(super) describe: bool,
    /// A log line per request
    #[arg(long)]
    pub(super) access_log: bool,
    /// The worker's command; {socket} or {port} in it say where to listen, and so do the environment variables
    /// GYM_WORKER_SOCKET and PORT
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(super) argv: Vec<String>,
}

/// An admin address, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdminAddress(pub(super) Option<SocketAddr>);

fn admin_address(text: &str) -> Result<AdminAddress, String> {
    match text {
        "off" => Ok(AdminAddress(None)),
        _ => text
            .parse()
            .map(|a| AdminAddress(Some(a)))
            .map_err(|_| "expected an address such as 127.0.0.1:9090, or off".into()),
    }
}

#[derive(Debug, Args)]
pub(super) struct ConformArgs {
    /// The server's address, as http://127.0.0.1:8000
    #[arg(value_name = "URL", value_parser = http_url)]
    pub(super) url: String,
    /// JSON file with an episode seed that the server takes: resources_session_id, episode_id, task_id, task_data.
    /// Each scenario adds a random suffix to its IDs
    #[arg(long, value_name = "FILE")]
    pub(super) seed: PathBuf,
    /// JSON file with a body of /verify that fits the seed; without it nothing is verified
    #[arg(long, value_name = "FILE")]
    pub(super) verify_body: Option<PathBuf>,
    /// The server keeps state for each session, so it must refuse what would bring back, rebind or take one away
    #[arg(long)]
    pub(super) keeps_state: bool,
    /// Statuses and bodies must be exactly the documented ones, not just any refusal or success
    #[arg(long)]
    pub(super) strict: bool,
    /// How long one request may take
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = seconds)]
    pub(super) timeout_seconds: Duration,
    /// JSON instead of text
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct TasksArgs {
    /// The server's address, as http://127.0.0.1:8000 or ws://127.0.0.1:8000
    #[arg(value_name = "URL")]
    pub(super) url: String,
    /// The environment, in any letter case [default: the only one that the server has, if --split is given]
    #[arg(long, value_name = "NAME")]
    pub(super) env: Option<String>,
    /// The split whose tasks are listed
    #[arg(long, value_name = "SPLIT")]
    pub(super) split: Option<String>,
    /// Only these rows, as Python's slices: from A, short of B; either may be left out, and counts from the end if negative
    #[arg(long, value_name = "A:B", requires = "split", allow_hyphen_values = true, value_parser = task_range)]
    pub(super) range: Option<TaskRange>,
    /// How long one request may take
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = seconds)]
    pub(super) timeout_seconds: Duration,
}

fn task_range(text: &str) -> Result<TaskRange, String> {
    let bound = |text: &str| match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| format!("{text:?} is no row")),
    };
    let (start, stop) = text.split_once(':').ok_or("expected A:B, such as 0:10, :10 or -10:")?;
    Ok(TaskRange { start: bound(start)?, stop: bound(stop)? })
}

fn http_url(text: &str) -> Result<String, String> {
    let uri: http::Uri = text.parse().map_err(|error| format!("{error}"))?;
    if matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none() {
        Ok(text.into())
    } else {
        Err("expected an address such as http://127.0.0.1:8000".into())
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|time| !time.is_zero()).ok_or_else(|| "expected a number of seconds above 0".into())
}

#[derive(Debug, Args)]
pub(super) struct AdminOptions {
    /// The gateway's admin address
    #[arg(long, default_value = "127.0.0.1:9090", value_name = "HOST:PORT")]
    pub(super) admin: String,
    /// JSON instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct OrderOptions {
    #[command(flatten)]
    pub(super) admin: AdminOptions,
    /// Begin it, and do not wait for its end
    #[arg(long)]
    pub(super) no_wait: bool,
}

/// A slot of a server.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) server: String,
    pub(super) slot: u16,
}

fn target(text: &str) -> Result<Target, String> {
    let (server, slot) = text.rsplit_once('/').ok_or("expected SERVER/SLOT, such as counter/2")?;
    let slot = slot.parse().map_err(|_| format!("{slot:?} is no slot: a number from 0"))?;
    Ok(Target { server: server.into(), slot })
}

#[derive(Clone, Copy, Debug, Args)]
pub(super) struct LogOptions {
    /// How log lines are written to stderr
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(super) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum KindName {
    Resources,
    Agent,
    Environment,
    Model,
    #[value(name = "openenv")]
    OpenEnv,
    Ors,
    Mcp,
    Generic,
}

impl From<KindName> for Kind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::Resources => Self::Resources,
            KindName::Agent => Self::Agent,
            KindName::Environment => Self::Environment,
            KindName::Model => Self::Model,
            KindName::OpenEnv => Self::OpenEnv,
            KindName::Ors => Self::Ors,
            KindName::Mcp => Self::Mcp,
            KindName::Generic => Self::Generic,
        }
    }
}
