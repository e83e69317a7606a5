//! The real NeMo Gym: one suite of episodes run through a front address.

use std::{fmt, path::Path, process::Stdio};

use gym_gateway_tests::harness::Peers;
use serde::Deserialize;

/// The Python that has NeMo Gym; `None`, after saying so, if there is none to be had.
pub(crate) fn python(test: &str) -> Option<&'static Path> {
    Peers::NemoGym.python(test)
}

/// How many episodes a suite has, from the environment.
pub(crate) fn episodes() -> u32 {
    number("GYM_E2E_EPISODES", 40)
}

/// How many run at a time.
pub(crate) fn concurrency() -> u32 {
    number("GYM_E2E_CONCURRENCY", 16)
}

fn number(name: &str, default: u32) -> u32 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

/// Whether agents use the `/ng-rollout/<id>/` prefix: each of these in turn.
pub(crate) fn observability() -> &'static [bool] {
    match std::env::var("GYM_E2E_OBSERVABILITY").as_deref() {
        Err(_) | Ok("off") => &[false],
        Ok("on") => &[true],
        Ok("both") => &[false, true],
        Ok(other) => panic!("GYM_E2E_OBSERVABILITY={other}: off, on or both"),
    }
}

/// One run of `episodes.py`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suite<'a> {
    /// The suite's name there.
    pub(crate) name: &'a str,
    /// The implementation of the resources server, where the suite asks for it.
    pub(crate) server: Option<&'a str>,
    /// How many episodes.
    pub(crate) episodes: u32,
    /// How many at a time.
    pub(crate) concurrency: u32,
    /// Whether agents use the `/ng-rollout/<id>/` prefix.
    pub(crate) observability: bool,
    /// How long the model thinks before each answer.
    pub(crate) model_delay_ms: u32,
    /// The model answers nothing before there is such a file.
    pub(crate) model_waits_for: Option<&'a Path>,
}

/// What became of one episode.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Outcome {
    /// Its number.
    pub(crate) episode: u32,
    /// `ok`, `wrong_reward` or `http_errors`.
    pub(crate) outcome: String,
    /// What was wrong.
    pub(crate) detail: String,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "episode {}: {}: {}", self.episode, self.outcome, self.detail)
    }
}

impl Outcome {
    /// The episodes that are not ok, one a line.
    pub(crate) fn failures(outcomes: &[Self]) -> Vec<String> {
        outcomes.iter().filter(|outcome| !outcome.is_ok()).map(Self::to_string).collect()
    }

    /// Whether the reward, and every value that the agent was shown, were right.
    pub(crate) fn is_ok(&self) -> bool {
        self.outcome == "ok"
    }
}

impl Suite<'_> {
    /// Plays the episodes through a front address; panics only if they could not be played.
    pub(crate) async fn play(&self, port: u16, python: &Path) -> Vec<Outcome> {
        let folder = tempfile::tempdir().expect("a folder");
        let report = folder.path().join("report.jsonl");
        let mut command = tokio::process::Command::new(python);
        command
            .arg(Peers::NemoGym.script("episodes.py"))
            .args(["--suite", self.name, "--timeout", "120"])
            .args(["--resources-port", &port.to_string()])
            .args(["--episodes", &self.episodes.to_string(), "--concurrency", &self.concurrency.to_string()])
            .args(["--model-delay-ms", &self.model_delay_ms.to_string()])
            .arg("--report")
            .arg(&report)
            .arg("--log-dir")
            .arg(folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if let Some(file) = self.model_waits_for {
            command.arg("--model-waits-for").arg(file);
        }
        if let Some(server) = self.server {
            command.args(["--server", server]);
        }
        if self.observability {
            command.arg("--observability");
        }
        let played = command.output().await.expect("run episodes.py");
        let Ok(text) = std::fs::read_to_string(&report) else {
            panic!("{self:?} was not played: {}\n{}", played.status, String::from_utf8_lossy(&played.stderr));
        };
        // Into the log of `make e2e`.
        println!("{}: {}", self.name, String::from_utf8_lossy(&played.stdout).trim_end());
        text.lines().map(|line| serde_json::from_str(line).expect("an outcome")).collect()
    }
}
