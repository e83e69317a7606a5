//! Configs for tests.

use std::time::Duration;

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
        settings: settings(),
    }
}

pub(crate) fn settings() -> ServerSettings {
    let day = Duration::from_secs(86_400);
    ServerSettings {
        session_cookie: None,
        session_secret: None,
        session_start_routes: Vec::new(),
        session_end_routes: Vec::new(),
        routes_sessions_to_owner: true,
        multiple_workers_unsupported_reason: None,
        session_close_retry_window: Duration::from_secs(300),
        session_idle_timeout: day,
        lost_session_retention: day,
        max_lost_sessions: 1000,
        max_naming_body_bytes: 1 << 20,
        queue_timeout: Duration::from_secs(10),
        start_timeout: Duration::from_secs(120),
        worker_timeout: None,
        worker_idle_timeout: Duration::from_secs(4),
        client_idle_timeout: Duration::from_secs(75),
        restart_backoff: Duration::from_millis(500),
        restart_backoff_max: Duration::from_secs(60),
    }
}

pub(crate) fn gateway() -> GatewaySettings {
    GatewaySettings {
        admin: None,
        threads: 1,
        shutdown_timeout: Duration::from_secs(30),
        worker_stop_timeout: Duration::from_secs(10),
        max_buffered_bytes: 1 << 30,
        access_log: false,
    }
}
