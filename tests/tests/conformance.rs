//! `gym-gateway conform`: its report, its exit codes, and what it says of files that it cannot use.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

#[path = "../../worker-sdk/tests/conformance/faulty.rs"]
mod faulty;

use std::{path::PathBuf, process::Stdio};

use faulty::{Fault, Faulty};
use gym_gateway_tests::harness::{binary, soon};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What the command said.
struct Said {
    code: i32,
    out: String,
    err: String,
}

async fn conform(args: &[&str]) -> Said {
    let mut command = tokio::process::Command::new(binary::gateway());
    command.arg("conform").args(args).stdin(Stdio::null()).kill_on_drop(true);
    let output = soon("the end of conform", command.output()).await.expect("run conform");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Said { code: output.status.code().expect("a code"), out: text(output.stdout), err: text(output.stderr) }
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

fn seed() -> Value {
    json!({
        "resources_session_id": "session",
        "episode_id": {"rollout_id": "rollout", "attempt": 0},
        "task_id": {"taskset": "tests", "task_id": "0"},
        "task_data": {"initial_count": 3},
    })
}

const VERIFY: &str =
    r#"{"responses_create_params": {"input": "hello"}, "response": {"id": "r", "output": []}}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_keeps_the_contract() {
    let (_server, address) = Faulty::start(Fault::None).await;
    let (files, url) = (Files::new(), format!("http://{address}/"));
    let (seed, verify) = (files.write("seed.json", &seed().to_string()), files.write("verify.json", VERIFY));
    let args = [&url, "--seed", &seed, "--verify-body", &verify, "--keeps-state", "--strict"];
    for _ in 0..2 {
        let said = conform(&args).await;
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
        assert!(said.out.ends_with("keeps the contract: 23 steps ok, 0 wrong, 0 not run\n"), "{}", said.out);
    }
    let said = conform(&[&args[..], &["--json"]].concat()).await;
    let report: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((said.code, &report["ok"], &report["strict"]), (0, &json!(true), &json!(true)), "{report:#}");
    assert_eq!(report["steps"].as_array().unwrap().len(), 23);
    assert!(report["steps"][0]["resources_session_id"].as_str().unwrap().starts_with("session-"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not() {
    let (_server, address) = Faulty::start(Fault::LateSeedRecreates).await;
    let (files, url) = (Files::new(), format!("http://{address}"));
    let seed = files.write("seed.json", &seed().to_string());
    let said = conform(&[&url, "--seed", &seed, "--keeps-state"]).await;
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.out.contains("WRONG    seed after the close: it is not refused"), "{}", said.out);
    assert!(said.out.contains("wanted  a refusal: any 4xx or 5xx"), "{}", said.out);
    let without_state = conform(&[&url, "--seed", &seed]).await;
    assert_eq!(without_state.code, 0, "nothing to bring back: {}", without_state.out);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there() {
    let files = Files::new();
    let seed = files.write("seed.json", &seed().to_string());
    let said = conform(&["http://127.0.0.1:1", "--seed", &seed]).await;
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.out.contains("Connection refused"), "{}", said.out);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_arguments_that_cannot_be_used() {
    let files = Files::new();
    let mut no_episode = seed();
    no_episode.as_object_mut().unwrap().remove("episode_id");
    let good = files.write("seed.json", &seed().to_string());
    let no_episode = files.write("no-episode.json", &no_episode.to_string());
    let broken = files.write("broken.json", "{\"resources_session_id\": ");
    let list = files.write("list.json", "[]");
    let missing = files.0.path().join("missing.json").display().to_string();
    let url = "http://127.0.0.1:1";
    let cases: &[(&[&str], &[&str])] = &[
        (&[url, "--seed", &missing], &["cannot read", "missing.json", "No such file"]),
        (&[url, "--seed", &broken], &["broken.json", "the seed is not JSON", "line 1 column"]),
        (&[url, "--seed", &no_episode], &["no-episode.json", "episode_id.rollout_id must be a text"]),
        (&[url, "--seed", &list], &["list.json", "resources_session_id", "task_data must be an object"]),
        (&[url, "--seed", &good, "--verify-body", &missing], &["cannot read", "missing.json"]),
        (&[url, "--seed", &good, "--verify-body", &broken], &["broken.json", "verify body is not JSON"]),
        (&[url, "--seed", &good, "--verify-body", &list], &["list.json", "must be a JSON object"]),
        (&[url], &["--seed <FILE>"]),
        (&["--seed", &good], &["<URL>"]),
        (&["127.0.0.1:8000", "--seed", &good], &["http://127.0.0.1:8000"]),
        (&["ftp://127.0.0.1:8000", "--seed", &good], &["such as http://127.0.0.1:8000"]),
        (&[url, "--seed", &good, "--timeout-seconds", "0"], &["a number of seconds above 0"]),
    ];
    for (args, words) in cases {
        let said = conform(args).await;
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
        for word in *words {
            assert!(said.err.contains(word), "{args:?}: no {word:?} in {}", said.err);
        }
    }
}
