//! An example server of the SDK as a lone process on a Unix socket.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use gym_gateway_tests::harness::{binary, poll};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::UnixStream;

use crate::recording::Recorded;

/// A running example; killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
}

impl Server {
    /// Starts the twin of `recorded` under its name and with its settings, and waits until it listens.
    pub(crate) async fn start(example: &str, recorded: &Recorded) -> Self {
        let name = example.to_owned();
        let program =
            tokio::task::spawn_blocking(move || binary::example(&name)).await.expect("the example is built");
        let folder = tempfile::tempdir().expect("a folder");
        let log = File::create(folder.path().join("log")).expect("a log");
        let mut config = recorded.config.clone();
        if let Some(deck) = &recorded.deck {
            config.insert("deck".into(), json!(deck));
        }
        let child = Command::new(program)
            .env("GYM_WORKER_SOCKET", folder.path().join("socket"))
            .env("GYM_SERVER_NAME", &recorded.name)
            .env("GYM_SERVER_CONFIG", serde_json::Value::from(config).to_string())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log"))
            .stderr(log)
            .spawn()
            .expect("start the example");
        let mut server = Self { child, folder };
        server.listens().await;
        server
    }

    async fn listens(&mut self) {
        let socket = self.socket().to_owned();
        let (child, log) = (&mut self.child, self.folder.path().join("log"));
        poll("a server that listens", || {
            if let Some(status) = child.try_wait().expect("the example's state") {
                panic!("the example ended: {status}\n{}", read(&log));
            }
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.ok() }
        })
        .await;
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// The last that it printed.
    pub(crate) fn log(&self) -> String {
        let text = read(&self.folder.path().join("log"));
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

fn read(log: &Path) -> String {
    fs::read_to_string(log).unwrap_or_else(|error| format!("no log: {error}"))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
