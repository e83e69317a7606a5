//! One run of many sessions: `ors_sessions.py` or `mcp_sessions.py`.

use std::{path::Path, process::Stdio};

use gym_gateway_tests::harness::Peers;
use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

/// How the sessions came out.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Every value, and the reward, were the session's own.
    pub(crate) ok: u32,
    /// Another value than the session's own.
    pub(crate) wrong: u32,
    /// No usable answer.
    pub(crate) errors: u32,
    /// Told that it is lost, by the protocol's own word, and then played anew.
    pub(crate) lost: u32,
    /// What was wrong with some of them.
    pub(crate) details: Vec<String>,
}

impl Tally {
    /// All ok.
    pub(crate) fn good(ok: u32) -> Self {
        Self { ok, ..Self::default() }
    }
}

/// How many sessions a suite has, from the environment.
pub(crate) fn count() -> u32 {
    let name = "GYM_E2E_EPISODES";
    std::env::var(name)
        .map_or(40, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

/// Sessions that are being played.
pub(crate) struct Sessions {
    client: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Sessions {
    /// Starts so many with the arguments `more`.
    pub(crate) fn start(python: &Path, script: &str, url: &str, count: u32, more: &[&str]) -> Self {
        let mut client = Command::new(python)
            .arg(Peers::OpenEnvs.script(script))
            .args(["--base-url", url, "--sessions", &count.to_string()])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("start the client");
        let lines = BufReader::new(client.stdout.take().expect("piped")).lines();
        Self { client, lines }
    }

    /// Waits until all are in the middle, every other one with a call under way.
    pub(crate) async fn held(&mut self) {
        let line = self.lines.next_line().await.expect("the client's output");
        assert_eq!(line.as_deref(), Some("held"));
    }

    /// Lets them go on.
    pub(crate) async fn go_on(&mut self) {
        self.client.stdin.as_mut().expect("piped").write_all(b"\n").await.expect("tell the client");
    }

    /// Waits for the end of all.
    pub(crate) async fn end(mut self) -> Tally {
        let mut last = String::new();
        while let Some(line) = self.lines.next_line().await.expect("the client's output") {
            last = line;
        }
        self.client.wait().await.expect("the client's end");
        // Into the log of `make e2e`.
        println!("sessions: {}", last.chars().take(200).collect::<String>());
        serde_json::from_str(&last).unwrap_or_else(|error| panic!("no tally ({error}): {last:?}"))
    }

    /// Plays so many from their beginning to their end.
    pub(crate) async fn play(python: &Path, script: &str, url: &str, count: u32, more: &[&str]) -> Tally {
        Self::start(python, script, url, count, more).end().await
    }
}
