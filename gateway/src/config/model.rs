//! The validated configuration: what the rest of the gateway reads.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use super::{ElasticSettings, Protocol, WorkerLimits, process::ProcessSettings};

/// Everything that `serve`, `run` and `check` need, validated.
#[derive(Clone, Debug)]
pub struct Config {
    /// The gateway's own settings.
    pub gateway: GatewaySettings,
    /// The servers to put a front in front of, in the order of the files.
    pub servers: Vec<ServerConfig>,
    /// NeMo Gym servers that stand in the files and are not served: they have no `port`, or Gym composes them.
    pub left_to_gym: Vec<String>,
}

/// The top-level `gateway:` block, but for `servers`.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewaySettings {
    /// Address of `/metrics`, `/status` and the rest; default 127.0.0.1:9090; `None` (`admin: off`)
    /// switches it off.
    pub admin: Option<SocketAddr>,
    /// Threads that carry requests; default: the machine's cores.
    pub threads: usize,
    /// How long requests in flight may go on after SIGTERM; default 30 s.
    pub shutdown_timeout: Duration,
    /// How long a worker may take from SIGTERM to its end, before its group is killed; default 10 s.
    pub worker_stop_timeout: Duration,
    /// Bytes of request bodies held in memory over all requests; default 1 GiB.
    pub max_buffered_bytes: usize,
    /// One log line per request; default off.
    pub access_log: bool,
}

/// A server's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// NeMo Gym `resources_servers`.
    Resources,
    /// NeMo Gym `responses_api_agents`.
    Agent,
    /// NeMo Gym `environment_servers`.
    Environment,
    /// NeMo Gym `responses_api_models`.
    Model,
    /// OpenEnv `openenv_servers`.
    OpenEnv,
    /// Open Reward Standard `ors_servers`.
    Ors,
    /// Model Context Protocol over streamable HTTP, `mcp_servers`.
    Mcp,
    /// Anything else that speaks HTTP: `http_servers`, and `run` without `--kind`.
    Generic,
}

impl Kind {
    /// All kinds that this version serves.
    pub const ALL: [Kind; 8] = [
        Kind::Resources,
        Kind::Agent,
        Kind::Environment,
        Kind::Model,
        Kind::OpenEnv,
        Kind::Ors,
        Kind::Mcp,
        Kind::Generic,
    ];

    /// Whether a server of this kind is NeMo Gym's: its block is Gym's own, and the gateway's settings for it stand
    /// under `gateway.servers`. The block of any other kind takes them directly.
    pub fn is_nemo_gym(self) -> bool {
        match self {
            Kind::Resources | Kind::Agent | Kind::Environment | Kind::Model => true,
            Kind::OpenEnv | Kind::Ors | Kind::Mcp | Kind::Generic => false,
        }
    }

    /// The key that a server of this kind has in the config: `resources_servers` and so on.
    pub fn key(self) -> &'static str {
        match self {
            Kind::Resources => "resources_servers",
            Kind::Agent => "responses_api_agents",
            Kind::Environment => "environment_servers",
            Kind::Model => "responses_api_models",
            Kind::OpenEnv => "openenv_servers",
            Kind::Ors => "ors_servers",
            Kind::Mcp => "mcp_servers",
            Kind::Generic => "http_servers",
        }
    }

    /// The word for the command line and `/status`: `resources`, `agent`, `environment`, `model`, `openenv`, `ors`,
    /// `mcp`, `generic`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Resources => "resources",
            Kind::Agent => "agent",
            Kind::Environment => "environment",
            Kind::Model => "model",
            Kind::OpenEnv => "openenv",
            Kind::Ors => "ors",
            Kind::Mcp => "mcp",
            Kind::Generic => "generic",
        }
    }

    /// The routes of which the kind itself says what they do to a session; those of a resources server by `protocol`.
    pub fn session_routes(self, protocol: Protocol) -> &'static [&'static str] {
        match self {
            Kind::Resources => protocol.session_routes(),
            Kind::Agent => &["/v1/agent_sessions", "/v1/agent_sessions/close"],
            Kind::OpenEnv => &["/mcp"],
            Kind::Ors => &["/create", "/delete", "/delete_session"],
            Kind::Environment | Kind::Model | Kind::Mcp | Kind::Generic => &[],
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Kind {
    type Err = String;

    /// Takes the short word (`resources`) and the config's key (`resources_servers`).
    fn from_str(text: &str) -> Result<Self, String> {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == text || kind.key() == text)
            .ok_or_else(|| format!("unknown kind {text:?}: one of {}", Kind::ALL.map(Kind::name).join(", ")))
    }
}

/// One server: a front address and the workers behind it.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The instance name: the top-level key.
    pub name: String,
    /// Its protocol.
    pub kind: Kind,
    /// The file it stands in; `None` for `run`.
    pub file: Option<PathBuf>,
    /// The front address.
    pub listen: Listen,
    /// How many worker processes, at the start; at least 1.
    pub num_workers: u16,
    /// How a worker is started.
    pub launch: Launch,
    /// The rest.
    pub settings: ServerSettings,
}

/// A front address: as written, and resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// `host:port` as the config has it, for messages.
    pub written: String,
    /// What to bind; port 0 takes a free one.
    pub address: SocketAddr,
}

/// How a worker is started.
#[derive(Clone, Debug, PartialEq)]
pub enum Launch {
    /// An unmodified NeMo Gym server: `PYTHON ENTRYPOINT` in its directory, with its config in the environment.
    NemoGym {
        /// The interpreter.
        python: PathBuf,
        /// The server's folder: the worker's working directory.
        directory: PathBuf,
        /// The script, relative to `directory`.
        entrypoint: PathBuf,
        /// `resources_servers` and so on: the key of the block.
        kind_key: String,
        /// The implementation: the key under the kind.
        implementation: String,
        /// The united config without the `gateway` block, interpolations as written: the worker resolves them itself.
        global_config: serde_json::Value,
        /// Environment variables on top of the gateway's own.
        env: BTreeMap<String, String>,
    },
    /// A command; `{socket}` and `{port}` in its arguments are replaced.
    Command {
        /// Program and arguments; not empty.
        argv: Vec<String>,
        /// Working directory; default: the config file's folder (`run`: the current one).
        directory: PathBuf,
        /// Environment variables on top of the gateway's own.
        env: BTreeMap<String, String>,
        /// JSON that the worker gets in `GYM_SERVER_CONFIG`.
        server_config: serde_json::Value,
    },
}

/// A server's settings under `gateway.servers.<name>` (NeMo Gym kinds) or in its own block (the gateway's kinds).
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// The command is asked to describe itself before it is started, which settles what the config leaves open;
    /// `None` (default): it is not asked. See [`super::Description`].
    pub describe: Option<LeftOpen>,
    /// The session cookie's name; `None`: learned from the readiness probe (kind generic: no cookie, no sessions).
    pub session_cookie: Option<String>,
    /// The session cookie's signing secret; `None`: its name, as NeMo Gym does. A command gets it in its environment.
    pub session_secret: Option<String>,
    /// Which protocol a resources server speaks; `None`: what it says itself if it is asked, else
    /// [`Protocol::Both`].
    pub protocol: Option<Protocol>,
    /// More routes that start a session, beside the kind's own.
    pub session_start_routes: Vec<String>,
    /// More routes that end a session, beside the kind's own.
    pub session_end_routes: Vec<String>,
    /// `false` turns the server into plain balancing.
    pub routes_sessions_to_owner: bool,
    /// Why the server must have one worker; refuses `num_workers` above 1. `Some("")` overrides what the server says.
    pub multiple_workers_unsupported_reason: Option<String>,
    /// How long an ended or claimed session is remembered after its last request; default 300 s.
    pub session_close_retry_window: Duration,
    /// How long an open session may be idle before it counts as lost; default 86,400 s, of kind ors 900 s.
    pub session_idle_timeout: Duration,
    /// How long a lost session is answered with 410; default 86,400 s.
    pub lost_session_retention: Duration,
    /// The most lost sessions that are remembered; default 1,000,000.
    pub max_lost_sessions: u64,
    /// The most sessions that a worker may have (kind openenv): the server's own limit; `None` (default): the gateway
    /// counts none, and passes on what the workers say.
    pub max_sessions_per_worker: Option<usize>,
    /// The largest body of a naming route; default 64 MiB.
    pub max_naming_body_bytes: usize,
    /// How long a request waits for a ready worker; default 10 s.
    pub queue_timeout: Duration,
    /// How long a worker may take to become ready; default 120 s.
    pub start_timeout: Duration,
    /// How long a worker may take for the head of its reply; default: for ever.
    pub worker_timeout: Option<Duration>,
    /// How long an unused connection to a worker is kept; default 4 s (uvicorn closes after 5).
    pub worker_idle_timeout: Duration,
    /// How long a client may take for a request's head, or leave its connection idle; default 75 s.
    pub client_idle_timeout: Duration,
    /// First wait before a dead worker is started again; doubles up to `restart_backoff_max`; default 0.5 s.
    pub restart_backoff: Duration,
    /// Longest wait before a dead worker is started again; default 60 s.
    pub restart_backoff_max: Duration,
    /// After so many failures in a row a slot is failed; default 10; 0: never.
    pub max_start_failures: u32,
    /// How often a failed slot is tried again; default 300 s.
    pub failed_retry: Duration,
    /// How long a draining worker may keep its sessions, before they are lost; default 3600 s; `None` (0): for ever.
    pub drain_timeout: Option<Duration>,
    /// How many extra workers a replacement may have at a time, old ones that drain among them; default 1.
    pub max_surge: usize,
    /// When workers are replaced, and how much they are given at a time; default: no limits.
    pub limits: WorkerLimits,
    /// How many workers there may be; default: `num_workers`.
    pub elastic: ElasticSettings,
    /// What a worker's process is besides its command; default: as the gateway's own.
    pub process: ProcessSettings,
}

/// What a server that describes itself may settle, because the config does not. (Where a setting can be absent, its
/// absence says so.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOpen {
    /// Its kind: `run` without `--kind`.
    pub kind: bool,
    /// `session_start_routes`.
    pub session_start_routes: bool,
    /// `session_end_routes`.
    pub session_end_routes: bool,
    /// `routes_sessions_to_owner`.
    pub routes_sessions_to_owner: bool,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            admin: Some(SocketAddr::from(([127, 0, 0, 1], 9090))),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            shutdown_timeout: Duration::from_secs(30),
            worker_stop_timeout: Duration::from_secs(10),
            max_buffered_bytes: 1 << 30,
            access_log: false,
        }
    }
}

impl ServerSettings {
    /// The defaults of a kind. An Open Reward Standard server gives up a session that was idle for 900 s.
    pub fn of(kind: Kind) -> Self {
        let mut settings = Self::default();
        if kind == Kind::Ors {
            settings.session_idle_timeout = Duration::from_secs(900);
        }
        settings
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            describe: None,
            session_cookie: None,
            session_secret: None,
            protocol: None,
            session_start_routes: Vec::new(),
            session_end_routes: Vec::new(),
            routes_sessions_to_owner: true,
            multiple_workers_unsupported_reason: None,
            session_close_retry_window: Duration::from_secs(300),
            session_idle_timeout: Duration::from_secs(86_400),
            lost_session_retention: Duration::from_secs(86_400),
            max_lost_sessions: 1_000_000,
            max_sessions_per_worker: None,
            max_naming_body_bytes: 64 << 20,
            queue_timeout: Duration::from_secs(10),
            start_timeout: Duration::from_secs(120),
            worker_timeout: None,
            worker_idle_timeout: Duration::from_secs(4),
            client_idle_timeout: Duration::from_secs(75),
            restart_backoff: Duration::from_millis(500),
            restart_backoff_max: Duration::from_secs(60),
            max_start_failures: 10,
            failed_retry: Duration::from_secs(300),
            drain_timeout: Some(Duration::from_secs(3600)),
            max_surge: 1,
            limits: WorkerLimits::default(),
            elastic: ElasticSettings::default(),
            process: ProcessSettings::default(),
        }
    }
}

/// Everything that is wrong with a configuration, each with its file and key.
#[derive(Clone, Debug)]
pub struct ErrorList(pub Vec<String>);

impl std::fmt::Display for ErrorList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ErrorList {}
