//! No output ever shows a secret: not status, sessions, metrics, log (with everything in it), `check`, command lines.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path, process::Command};

use gym_gateway_tests::harness::{Gateway, admin, binary, poll, processes};
use http::Method;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// In every secret.
const CANARY: &str = "canary-7f3a";

fn secret(name: &str) -> String {
    format!("{CANARY}-{name}")
}

/// Two servers, with a secret everywhere where one can be.
fn config(directory: &Path) -> Value {
    fs::write(directory.join("token"), secret("file") + "\n").unwrap();
    fs::write(directory.join("more.env"), format!("MORE={}\n", secret("env-file"))).unwrap();
    fs::create_dir(directory.join("gym")).unwrap();
    fs::write(directory.join("gym/app.py"), "").unwrap();
    let stub = binary::stub_worker();
    let environment = json!({"PLAIN": secret("plain"), "HF_TOKEN": {"file": "token"}});
    json!({
        "gateway": {
            "admin": "127.0.0.1:0",
            "access_log": true,
            "servers": {"gyms": {
                "python": stub, "directory": "gym", "environment": environment, "environment_files": ["more.env"],
                "session_cookie": "Stub___gyms", "session_secret": secret("gyms"),
                "restart_backoff_seconds": 0.02,
            }},
        },
        "stub": {"http_servers": {"stub": {
            "port": 0, "num_workers": 1,
            "command": [stub, "--socket", "{socket}", "--cookie", "Stub___stub"],
            "session_cookie": "Stub___stub", "session_secret": secret("stub"),
            "environment": environment, "environment_files": ["more.env"],
            "config": {"api_key": secret("config")},
            "restart_backoff_seconds": 0.02,
            "log_file": "{server}-{slot}.log",
        }}},
        "gyms": {"resources_servers": {"gyms": {
            "entrypoint": "app.py", "port": 0, "num_workers": 1, "api_key": secret("block"),
        }}},
        "policy_api_key": secret("global"),
    })
}

/// Every worker process below the gateway, keepers and shims among them.
fn command_lines(root: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let Some(pid) = entry.unwrap().file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let below = std::iter::successors(Some(pid), |pid| processes::parent(*pid)).any(|pid| pid == root);
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if below && !line.is_empty() {
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

fn holds(text: &str, name: &str) -> bool {
    text.contains(&secret(name))
}

#[track_caller]
fn clean(what: &str, text: &str) {
    assert!(!text.is_empty(), "{what}: nothing to look at");
    let line = text.lines().find(|line| line.contains(CANARY));
    assert!(line.is_none(), "{what} shows a secret: {}", line.unwrap_or_default());
}

async fn worker_pids(gateway: &Gateway) -> Vec<u32> {
    let status = admin::status(gateway).await;
    let servers = status["servers"].as_array().unwrap();
    let workers = servers.iter().flat_map(|server| server["workers"].as_array().unwrap());
    workers.filter_map(|worker| u32::try_from(worker["pid"].as_u64()?).ok()).collect()
}

#[tokio::test]
async fn a_secret_is_in_the_workers_environment_and_nowhere_else() {
    let mut checked = String::new();
    let gateway = Gateway::launch_as(
        binary::gateway(),
        |command, _| {
            command.env("GYM_GATEWAY_LOG", "trace");
        },
        |directory| {
            let file = directory.join("gateway.yaml");
            fs::write(&file, config(directory).to_string()).unwrap();
            let file = file.to_str().unwrap().to_owned();
            let said = Command::new(binary::gateway()).args(["check", &file]).output().unwrap();
            assert!(said.status.success(), "{said:?}");
            checked = String::from_utf8(said.stdout).unwrap();
            vec!["serve".into(), file]
        },
    );
    clean("check", &checked);
    gateway.ready().await;
    let both = || async { Some(worker_pids(&gateway).await).filter(|pids| pids.len() == 2) };
    let pids = poll("both workers", both).await;

    // They are there.
    let environments: String = pids
        .iter()
        .map(|pid| String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/environ")).unwrap()).into_owned())
        .collect();
    for name in ["plain", "file", "env-file", "stub", "config", "block", "global"] {
        assert!(holds(&environments, name), "{name} is in no worker's environment");
    }

    // Sessions, refusals, a death, a restart.
    for id in ["one", "two"] {
        gateway.post("/seed_session").session(id).json(&json!({"start": 0})).send().await.assert(200);
    }
    gateway.call(Method::POST, "/verify").session("one").json(&json!({})).send().await;
    processes::signal(pids[0], Signal::SIGKILL);
    poll("a new worker", async || {
        Some(worker_pids(&gateway).await).filter(|new| new.len() == 2 && *new != pids)
    })
    .await;

    for line in command_lines(gateway.pid()) {
        clean("a command line", &line);
    }
    for target in ["/status", "/metrics", "/sessions?full=true", "/"] {
        let answer = admin::get(&gateway, target).await.assert(200);
        clean(target, std::str::from_utf8(&answer.body).unwrap());
    }
    for command in [&["status"][..], &["status", "--json"], &["sessions", "--full"]] {
        let address = gateway.admin().to_string();
        let mut run = Command::new(binary::gateway());
        run.args(command).args(["--admin", &address]);
        let said = tokio::task::spawn_blocking(move || run.output().unwrap()).await.unwrap();
        clean(&command.join(" "), std::str::from_utf8(&said.stdout).unwrap());
    }
    clean("the log file", &fs::read_to_string(gateway.directory().join("stub-0.log")).unwrap());
    let log = gateway.log().clone();
    gateway.finish().await;
    log.ended().await;
    let text = log.text();
    assert!(text.contains("/verify"), "requests are in the log");
    clean("the log", &text);
}

#[tokio::test]
async fn a_start_that_fails_shows_none_either() {
    let gateway = Gateway::launch(|directory| {
        let mut config = config(directory);
        config.as_object_mut().unwrap().remove("gyms");
        config["gateway"]["servers"] = json!({});
        config["stub"]["http_servers"]["stub"]["command"] = json!(["false"]);
        let file = directory.join("gateway.yaml");
        fs::write(&file, config.to_string()).unwrap();
        vec!["serve".into(), file.to_str().unwrap().into()]
    });
    assert_eq!(gateway.exit().await.code(), Some(1));
    gateway.log().ended().await;
    let said = gateway.log().text();
    assert!(said.contains("exited with status 1"), "{said}");
    clean("the log", &said);
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_is_a_failed_start_that_names_it() {
    let gateway = Gateway::launch(|directory| {
        let mut config = config(directory);
        config.as_object_mut().unwrap().remove("gyms");
        config["gateway"]["servers"] = json!({});
        fs::write(directory.join("token"), [0xff, 0xfe]).unwrap();
        let file = directory.join("gateway.yaml");
        fs::write(&file, config.to_string()).unwrap();
        vec!["serve".into(), file.to_str().unwrap().into()]
    });
    assert_eq!(gateway.exit().await.code(), Some(1));
    gateway.log().ended().await;
    let said = gateway.log().text();
    assert!(said.contains("`environment.HF_TOKEN`: ") && said.contains("/token is not UTF-8"), "{said}");
    clean("the log", &said);
}
