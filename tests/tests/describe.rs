//! Servers that describe themselves: what they say holds where the config does not say it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::{fs, path::Path, process::Command};

use gym_gateway_tests::harness::{
    Gateway, Http1, Setup, admin, binary, cookie, poll, processes, setup::COOKIE,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// What a server of the worker SDK would say.
fn counter() -> Value {
    json!({
        "kind": "resources",
        "session_cookie": COOKIE,
        "session_start_routes": ["/seed_session", "/echo/begin"],
        "session_end_routes": ["/close_session", "/verify", "/echo/end"],
        "routes_sessions_to_owner": true,
        "multiple_workers_unsupported_reason": null,
        "of_a_later_version": [1],
    })
}

fn alone(reason: &str) -> Value {
    json!({"kind": "resources", "session_cookie": COOKIE, "multiple_workers_unsupported_reason": reason})
}

/// Waits for a failed start: what the gateway said. No worker was started.
async fn fails(gateway: &Gateway) -> String {
    let status = gateway.exit().await;
    gateway.log().ended().await;
    let said = gateway.log().text();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(gateway.workers.count_of("started", |_| true).len(), 0, "{said}");
    for pid in gateway.workers.pids() {
        assert!(!processes::runs(pid), "process {pid} is left");
    }
    said
}

#[track_caller]
fn says(said: &str, what: &[&str]) {
    for what in what {
        assert!(said.contains(what), "no {what:?} in:\n{said}");
    }
}

async fn open(gateway: &Gateway) -> f64 {
    admin::sessions(gateway, "open").await
}

async fn server_status(gateway: &Gateway) -> Value {
    admin::status(gateway).await["servers"][0].clone()
}

#[tokio::test]
async fn what_a_server_says_settles_its_sessions() {
    let gateway = Setup::resources().describes(&counter()).stub("--behave no-probe-cookie").start().await;
    let asked = gateway.workers.count_of("described", |_| true);
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(
        (&asked[0]["num_workers"], &asked[0]["name"], &asked[0]["given_socket"]),
        (&json!("2"), &json!("stub"), &json!(null))
    );
    let status = server_status(&gateway).await;
    assert_eq!(status["session_cookie"], COOKIE, "before any reply has shown it");
    assert_eq!(status["session_start_routes"], json!(["/echo/begin"]));
    assert_eq!(status["session_end_routes"], json!(["/echo/end"]));
    assert_eq!(status["routes_sessions_to_owner"], true);

    gateway.post("/echo/begin").session("s").send().await.assert(200);
    assert_eq!(open(&gateway).await, 1.0);
    gateway.post("/echo/end").session("s").send().await.assert(200);
    assert_eq!(open(&gateway).await, 0.0);
    // The protocol's own routes stay as they are: a verify does not end what a body ID seeded.
    let body = json!({"resources_session_id": "b"});
    gateway.post("/seed_session").json(&body).send().await.assert(200);
    gateway.post("/verify").session("b").send().await.assert(200);
    assert_eq!(open(&gateway).await, 1.0);
    gateway.post("/close_session").json(&body).send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn what_the_config_says_holds_against_the_server() {
    let setup = Setup::resources().describes(&counter()).set("session_end_routes", json!(["/echo/stop"]));
    let gateway = setup.start().await;
    let status = server_status(&gateway).await;
    assert_eq!(status["session_end_routes"], json!(["/echo/stop"]));
    assert_eq!(status["session_start_routes"], json!(["/echo/begin"]));
    let told = |event: &Value| event["level"] == "WARN" && event["server"] == "stub";
    let warning = gateway.log().event("the difference", told).await.expect("a line");
    assert_eq!(
        warning["message"],
        "server stub says session_end_routes: [/echo/end], and the config [/echo/stop], which holds"
    );
    gateway.post("/seed_session").session("s").send().await.assert(200);
    gateway.post("/echo/end").session("s").send().await.assert(200);
    assert_eq!(open(&gateway).await, 1.0);
    gateway.post("/echo/stop").session("s").send().await.assert(200);
    assert_eq!(open(&gateway).await, 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_server_that_balances_itself_says_so() {
    let gateway = Setup::resources()
        .describes(&json!({"kind": "resources", "routes_sessions_to_owner": false}))
        .start()
        .await;
    // Over one connection: each core has its own turn.
    let (mut client, seed) =
        (Http1::connect(gateway.front()).await, gateway.post("/seed_session").session("s"));
    let slots = [client.send(&seed).await.slot(), client.send(&seed).await.slot()];
    assert_ne!(slots[0], slots[1], "balanced");
    assert_eq!(server_status(&gateway).await["routes_sessions_to_owner"], false);
    gateway.finish().await;
}

#[tokio::test]
async fn a_server_that_must_have_one_worker_is_refused_several() {
    let gateway = Setup::resources().describes(&alone("it keeps one board for all")).launch();
    says(
        &fails(&gateway).await,
        &[
            "server stub: did not agree to num_workers: 2: it keeps one board for all",
            "set num_workers: 1",
            "gateway.servers.stub.multiple_workers_unsupported_reason: \"\"",
        ],
    );
    assert_eq!(gateway.workers.count_of("described", |_| true).len(), 1);
}

#[tokio::test]
async fn one_worker_and_those_who_know_better_get_what_they_ask_for() {
    let reason = alone("it keeps one board for all");
    for setup in
        [Setup::resources().workers(1), Setup::resources().set("multiple_workers_unsupported_reason", "")]
    {
        let gateway = setup.describes(&reason).start().await;
        assert_eq!(gateway.workers.count_of("described", |_| true).len(), 1, "asked in any case");
        assert_eq!(server_status(&gateway).await["session_cookie"], COOKIE);
        gateway.finish().await;
    }
}

#[tokio::test]
async fn a_server_of_another_kind_than_its_block_says() {
    let gateway = Setup::resources().describes(&json!({"kind": "agent"})).launch();
    says(
        &fails(&gateway).await,
        &[
            "server stub: it says that it is of kind agent, and the config says resources",
            "`responses_api_agents`",
        ],
    );
}

#[tokio::test]
async fn a_command_that_does_not_know_the_question() {
    let gateway = Setup::resources().set("describe", true).launch();
    says(
        &fails(&gateway).await,
        &[
            "server stub: was asked with --describe what it is: it exited with status 64",
            "| stub-worker: --describe needs a value",
            "take `describe: true` out",
        ],
    );
}

#[tokio::test]
async fn a_command_that_takes_too_long_to_say_it() {
    let setup = Setup::resources().describes(&counter()).set("start_timeout_seconds", 1);
    let gateway = setup.stub("--behave describe-late").launch();
    says(&fails(&gateway).await, &["server stub", "it had not ended after 1 s (start_timeout_seconds)"]);
}

#[tokio::test]
async fn clients_that_come_while_the_server_is_asked_are_served_then() {
    let setup = Setup::resources().describes(&counter()).stub("--behave describe-late");
    let gateway = setup.start_front().await;
    gateway.workers.event("described", |_| true).await;
    let mut early = Http1::connect(gateway.front()).await;
    gateway.workers.open("describe").await;
    early.send(&gateway.post("/echo/begin").session("s")).await.assert(200);
    assert_eq!(open(&gateway).await, 1.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_stop_while_the_server_is_asked_is_heeded() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGKILL] {
        let setup = Setup::resources().describes(&counter()).stub("--behave describe-late");
        let gateway = setup.start_front().await;
        gateway.workers.event("described", |_| true).await;
        gateway.signal(signal);
        let status = gateway.exit().await;
        assert_eq!(status.success(), signal != Signal::SIGKILL, "{}", gateway.log().text());
        for pid in gateway.workers.pids() {
            processes::gone(pid).await;
        }
        assert_eq!(gateway.workers.count_of("started", |_| true).len(), 0);
    }
}

#[tokio::test]
async fn run_takes_the_kind_from_the_server() {
    let gateway = Gateway::launch(|directory| {
        let mut args: Vec<String> = "run -n 2 --listen 127.0.0.1:0 --admin 127.0.0.1:0 --describe --"
            .split(' ')
            .map(str::to_owned)
            .collect();
        args.extend(Setup::resources().describes(&counter()).command(&directory.join("report")));
        args
    });
    gateway.front_listens().await;
    let body = json!({"resources_session_id": "b"});
    let answer = gateway.post("/seed_session").json(&body).send().await.assert(200);
    assert_eq!(answer.session().as_deref(), Some("b"), "a resources server's seed names its session");
    assert_eq!(server_status(&gateway).await["kind"], "resources");
    gateway.finish().await;
}

#[tokio::test]
async fn a_secret_is_set_once_for_gateway_and_workers_and_shown_nowhere() {
    const SECRET: &str = "not-for-everyone";
    let setup = Setup::resources().describes(&counter()).set("session_secret", SECRET);
    let gateway = setup.stub(&format!("--secret {SECRET}")).start().await;
    for name in ["described", "started"] {
        for event in gateway.workers.count_of(name, |_| true) {
            assert_eq!(event["secret"], SECRET, "{event}");
        }
    }
    // The gateway signs with it what it adds.
    let seed = gateway.post("/seed_session").json(&json!({"resources_session_id": "b"})).fault("no-cookie");
    let line = seed.send().await.assert(200).text("set-cookie");
    let value = cookie::find(line.split(';').next().unwrap(), COOKIE).expect("a cookie");
    assert_eq!(cookie::read(SECRET, &value).expect("signed with it")["session_id"], "b");
    let command = fs::read(format!("/proc/{}/cmdline", gateway.workers.pid(0))).unwrap();
    // The stub itself is told on its command line; once.
    assert_eq!(String::from_utf8_lossy(&command).matches(SECRET).count(), 1);
    assert!(!admin::status(&gateway).await.to_string().contains(SECRET));
    let log = gateway.log().text();
    assert!(!log.contains(SECRET), "{log}");
    gateway.finish().await;
}

#[tokio::test]
async fn a_command_gets_its_block_as_its_config() {
    let gateway = Gateway::launch(|directory| {
        let file = Setup::resources().write(directory);
        let mut config: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let block = &mut config["stub"]["resources_servers"]["stub"];
        block["expose_tools_over_mcp"] = json!(true);
        block["session_close_retry_window_seconds"] = json!(17);
        block["domain"] = json!("${kind_of_thing}");
        block["of_its_own"] = json!({"size": [1, 2.5, null]});
        config["kind_of_thing"] = json!("games");
        fs::write(&file, config.to_string()).unwrap();
        vec!["serve".into(), file.to_string_lossy().into_owned()]
    });
    gateway.ready().await;
    for started in gateway.workers.events_until("started", 2, |_| true).await {
        assert_eq!(
            started["config"],
            json!({
                "host": "127.0.0.1", "port": 0, "num_workers": 2, "expose_tools_over_mcp": true,
                "session_close_retry_window_seconds": 17, "domain": "games",
                "of_its_own": {"size": [1, 2.5, null]},
            })
        );
        assert_eq!(started["secret"], json!(null));
    }
    gateway.finish().await;
}

/// Runs `check` on these setups' servers, named by their places: exit code and output.
fn check(arguments: &[&str], setups: &[Setup]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = json!({"gateway": {"admin": "127.0.0.1:0", "servers": {}}});
    for (number, setup) in setups.iter().enumerate() {
        let mut one = setup.config(Path::new("/no/report"));
        let name = format!("s{number}");
        config[&name] = one["stub"].take();
        config["gateway"]["servers"][&name] = one["gateway"]["servers"]["stub"].take();
    }
    let file = folder.path().join("my.yaml");
    fs::write(&file, config.to_string()).unwrap();
    let output = Command::new(binary::gateway()).arg("check").args(arguments).arg(&file).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn check_asks_only_when_told_to_and_reports_what_was_said() {
    let several = Setup::resources().describes(&counter());
    let alone = Setup::resources().describes(&alone("it keeps one board for all"));
    let good = [several.clone(), several.workers(1), alone.clone().workers(1)];
    let (code, said) = check(&[], std::slice::from_ref(&alone));
    assert_eq!(code, Some(0), "{said}");
    says(&said, &["describe: true (default: false)"]);
    assert!(!said.contains("did not agree"), "{said}");

    let (code, said) = check(&["--ask"], &good);
    assert_eq!(code, Some(0), "{said}");
    let routes = "sessions also started by /echo/begin; sessions also ended by /echo/end";
    for line in [
        format!("s0: kind resources; session cookie {COOKIE}; {routes}; can have 2 workers"),
        format!("s1: kind resources; session cookie {COOKIE}; {routes}; can have several workers"),
        format!(
            "s2: kind resources; session cookie {COOKIE}; must have one worker: it keeps one board for all"
        ),
    ] {
        assert!(said.lines().any(|seen| seen == line), "no {line:?} in:\n{said}");
    }

    let unknowing = Setup::resources().set("describe", true);
    let (code, said) = check(&["--ask"], &[alone, unknowing]);
    assert_eq!(code, Some(1), "{said}");
    says(
        &said,
        &[
            "s0: server s0: did not agree to num_workers: 2: it keeps one board for all",
            "s1: server s1: was asked with --describe what it is: it exited with status 64",
        ],
    );
}

#[tokio::test]
async fn the_status_command_shows_what_holds() {
    let gateway = Setup::resources().describes(&counter()).start().await;
    let admin = gateway.admin().to_string();
    let said = poll("the status", async || {
        let output =
            Command::new(binary::gateway()).args(["status", "--admin", &admin]).output().expect("status");
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    })
    .await;
    says(
        &said,
        &[&format!(
            "session cookie {COOKIE}; sessions also started by /echo/begin; sessions also ended by /echo/end"
        )],
    );
    gateway.finish().await;
}
