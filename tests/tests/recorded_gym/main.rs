//! What the real NeMo Gym servers answered, asked again of their Rust twins: status, body, headers and cookie are the
//! same, or the difference stands in `differences.rs` with its reason.
//!
//! `tests/python/nemo_gym/record_gym.py` makes the recordings. With `GYM_REPLAY_LIST=1` and `--nocapture` the listed differences
//! and their reasons are printed too.

#![allow(clippy::expect_used, reason = "tests: a broken assumption is to fail the test where it stands")]

mod compare;
mod differences;
mod player;
mod recording;
mod server;
mod sessions;

use std::collections::{BTreeMap, BTreeSet};

use differences::Differences;
use player::{Played, Player};
use recording::{Recording, Scenario, Step};
use server::Server;

/// A recording, and the example of the SDK that answers it.
#[derive(Clone, Copy, Debug)]
struct Replay {
    recording: &'static str,
    example: &'static str,
}

#[tokio::test]
async fn counter() {
    Replay { recording: "counter", example: "counter" }.run().await;
}

#[tokio::test]
async fn counter_with_mcp() {
    Replay { recording: "counter_mcp", example: "counter" }.run().await;
}

#[tokio::test]
async fn weather_with_mcp() {
    Replay { recording: "weather", example: "weather" }.run().await;
}

#[tokio::test]
async fn blackjack() {
    Replay { recording: "blackjack", example: "blackjack" }.run().await;
}

/// What was different, as a report for a person.
#[derive(Debug, Default)]
struct Report {
    requests: usize,
    different: usize,
    unlisted: String,
    listed: String,
    /// How many requests differ for each reason, and how many for that one alone.
    reasons: BTreeMap<&'static str, (usize, usize)>,
}

impl Replay {
    async fn run(self) {
        let recording = Recording::read(self.recording);
        let mut server = Server::start(self.example, &recording.server).await;
        let mut differences = Differences::of(self.recording);
        let mut report = Report::default();
        for scenario in &recording.scenarios {
            if scenario.fresh {
                server = Server::start(self.example, &recording.server).await;
            }
            let mut player = Player::new(server.socket(), recording.server.cookie());
            for step in &scenario.steps {
                let played = player.play(step).await;
                report.add(scenario, step, &played, &mut differences);
            }
        }
        report.check(self, &differences.stale(), &server);
    }
}

impl Report {
    fn add(&mut self, scenario: &Scenario, step: &Step, played: &Played, differences: &mut Differences) {
        self.requests += 1;
        self.different += usize::from(!played.found.is_empty());
        let name =
            format!("{} / {}: {} {}\n", scenario.scenario, step.step, step.request.method, step.request.path);
        let (mut unlisted, mut listed) = (String::new(), String::new());
        let mut reasons = BTreeSet::new();
        for one in &played.found {
            match differences.reason(scenario, step, played, one) {
                None => unlisted += &format!("    {one}\n"),
                Some(reason) => {
                    listed += &format!("    {one}\n        {reason}\n");
                    reasons.insert(reason);
                }
            }
        }
        let is_alone = reasons.len() == 1 && unlisted.is_empty();
        for reason in reasons {
            let (requests, alone) = self.reasons.entry(reason).or_default();
            *requests += 1;
            *alone += usize::from(is_alone);
        }
        for (lines, all) in [(unlisted, &mut self.unlisted), (listed, &mut self.listed)] {
            if !lines.is_empty() {
                *all += &(name.clone() + &lines);
            }
        }
    }

    fn check(&self, replay: Replay, stale: &[String], server: &Server) {
        let Self { requests, different, unlisted, listed, reasons } = self;
        let same = requests - different;
        println!("{}: {requests} requests, {same} the same, {different} different", replay.recording);
        for (reason, (requests, alone)) in reasons {
            println!("{requests:5} ({alone} for this alone)  {reason}");
        }
        if std::env::var_os("GYM_REPLAY_LIST").is_some() {
            println!("different as listed:\n{listed}");
        }
        let stale: String = stale.iter().map(|one| format!("    {one}\n")).collect();
        assert!(
            unlisted.is_empty() && stale.is_empty(),
            "{replay:?}\nnot as recorded, and not in the table of differences:\n{unlisted}\nstale differences, listed and not found:\n{stale}\nthe server said:\n{}",
            server.log()
        );
    }
}

#[test]
fn there_are_enough_requests_and_none_is_named_twice() {
    let mut total = 0;
    for name in ["counter", "counter_mcp", "weather", "blackjack"] {
        let recording = Recording::read(name);
        let mut names = BTreeSet::new();
        for scenario in &recording.scenarios {
            for step in &scenario.steps {
                assert!(
                    names.insert((&scenario.scenario, &step.step)),
                    "twice: {} / {}",
                    scenario.scenario,
                    step.step
                );
            }
        }
        total += names.len();
        differences::assert_names_exist(name, &names);
    }
    assert!(total >= 80, "only {total} requests");
}
