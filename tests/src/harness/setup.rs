//! What a test's gateway is to be like: its configuration, its workers' behaviour.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};

use super::{Gateway, binary};

/// The server's name in every test.
pub const SERVER: &str = "stub";

/// The stub's session cookie, and the secret it is signed with.
pub const COOKIE: &str = "Stub___stub";

/// The server's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `resources_servers`.
    Resources,
    /// `responses_api_agents`.
    Agent,
    /// `responses_api_models`.
    Model,
    /// `openenv_servers`.
    OpenEnv,
    /// `ors_servers`.
    Ors,
    /// `mcp_servers`.
    Mcp,
    /// `http_servers`.
    Generic,
}

impl Kind {
    fn key(self) -> &'static str {
        match self {
            Self::Resources => "resources_servers",
            Self::Agent => "responses_api_agents",
            Self::Model => "responses_api_models",
            Self::OpenEnv => "openenv_servers",
            Self::Ors => "ors_servers",
            Self::Mcp => "mcp_servers",
            Self::Generic => "http_servers",
        }
    }

    /// Whether the settings for the gateway stand under `gateway.servers`.
    fn is_nemo_gym(self) -> bool {
        matches!(self, Self::Resources | Self::Agent | Self::Model)
    }
}

/// A gateway to be started with [`Setup::start`]: one server of two stub workers, unless told otherwise.
#[derive(Clone, Debug)]
pub struct Setup {
    kind: Kind,
    workers: u16,
    settings: Map<String, Value>,
    gateway: Map<String, Value>,
    stub: Vec<String>,
    on_port: bool,
}

impl Setup {
    /// A server of that kind.
    pub fn new(kind: Kind) -> Self {
        let gateway = json!({"admin": "127.0.0.1:0", "threads": 2});
        let Value::Object(gateway) = gateway else { unreachable!("an object") };
        Self { kind, workers: 2, settings: Map::new(), gateway, stub: Vec::new(), on_port: false }
    }

    /// A resources server.
    pub fn resources() -> Self {
        Self::new(Kind::Resources)
    }

    /// A server of kind generic.
    pub fn generic() -> Self {
        Self::new(Kind::Generic)
    }

    /// How many workers.
    #[must_use]
    pub fn workers(mut self, workers: u16) -> Self {
        self.workers = workers;
        self
    }

    /// A setting of the server's.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.settings.insert(key.into(), value.into());
        self
    }

    /// A setting of the gateway's own.
    #[must_use]
    pub fn gateway(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.gateway.insert(key.into(), value.into());
        self
    }

    /// More arguments for the stub worker, as in `--behave stray`.
    #[must_use]
    pub fn stub(mut self, words: &str) -> Self {
        self.stub.extend(words.split_whitespace().map(str::to_owned));
        self
    }

    /// The server describes itself: it is asked, and prints this.
    #[must_use]
    pub fn describes(mut self, answer: &Value) -> Self {
        self.stub.extend(["--describes".into(), answer.to_string()]);
        self.set("describe", true)
    }

    /// Workers listen on TCP ports instead of sockets.
    #[must_use]
    pub fn on_port(mut self) -> Self {
        self.on_port = true;
        self
    }

    /// The worker's command.
    pub fn command(&self, report: &Path) -> Vec<String> {
        let program = binary::stub_worker().to_string_lossy().into_owned();
        let place = if self.on_port { ["--port", "{port}"] } else { ["--socket", "{socket}"] };
        let report = report.to_string_lossy().into_owned();
        let mut command = vec![program, place[0].into(), place[1].into(), "--report".into(), report];
        command.extend(["--cookie".into(), COOKIE.into()]);
        command.extend(self.stub.iter().cloned());
        command
    }

    /// The configuration as a value: JSON is YAML.
    pub fn config(&self, report: &Path) -> Value {
        let mut settings = self.settings.clone();
        settings.insert("command".into(), json!(self.command(report)));
        let mut block = Map::new();
        let mut gateway = self.gateway.clone();
        let place = json!({"host": "127.0.0.1", "port": 0, "num_workers": self.workers});
        block.extend(place.as_object().cloned().unwrap_or_default());
        let block = if !self.kind.is_nemo_gym() {
            block.extend(settings);
            json!({self.kind.key(): {SERVER: block}})
        } else {
            if let Some(window) = settings.remove("session_close_retry_window_seconds") {
                block.insert("session_close_retry_window_seconds".into(), window);
            }
            gateway.insert("servers".into(), json!({SERVER: settings}));
            json!({self.kind.key(): {SERVER: block}})
        };
        json!({SERVER: block, "gateway": gateway})
    }

    /// Writes the configuration into the folder and returns the file.
    pub fn write(&self, directory: &Path) -> std::path::PathBuf {
        let file = directory.join("gateway.yaml");
        let text = serde_json::to_string_pretty(&self.config(&directory.join("report"))).expect("JSON");
        fs::write(&file, text).expect("write the configuration");
        file
    }

    /// Starts the gateway and waits until all workers are ready.
    pub async fn start(self) -> Gateway {
        let gateway = self.launch();
        gateway.ready().await;
        gateway
    }

    /// Starts the gateway and waits until its front listens.
    pub async fn start_front(self) -> Gateway {
        let gateway = self.launch();
        gateway.front_listens().await;
        gateway
    }

    /// Starts the gateway and waits for nothing.
    pub fn launch(&self) -> Gateway {
        Gateway::launch(|directory| {
            vec!["serve".into(), self.write(directory).to_string_lossy().into_owned()]
        })
    }
}
