//! Configs for tests.

use crate::config::{GatewaySettings, Kind, Launch, Listen, ServerConfig, ServerSettings};

pub(crate) fn server(name: &str, num_workers: u16) -> ServerConfig {
    ServerConfig {
        name: name.into(),
        kind: Kind::Generic,
        file: None,
        listen: Listen { written: "127.0.0.1:0".into(), address: ([127, 0, 0, 1], 0).into() },
        num_workers,
        launch: Launch::Command {
            argv: vec!["true".into()],
            directory: "/".into(),
            env: Default::default(),
            server_config: serde_json::json!({}),
        },
        settings: ServerSettings::default(),
    }
}

pub(crate) fn gateway() -> GatewaySettings {
    GatewaySettings { admin: None, threads: 1, ..GatewaySettings::default() }
}
