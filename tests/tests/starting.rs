//! Starts that fail, and why: exit 1 with what was seen.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::{net::TcpListener, process::Command, time::Duration};

use gym_gateway_tests::{
    harness::{Call, Gateway, Kind, Setup, admin, binary, processes, setup::COOKIE},
    stub::{LAST_WORDS, SEVERAL_REFUSED},
};
use serde_json::json;

/// Waits for a failed start: everything that the gateway said.
async fn fails(gateway: &Gateway) -> String {
    let status = gateway.exit().await;
    gateway.log().ended().await;
    let said = format!("{}\n{}", gateway.log().text(), gateway.output().text());
    assert_eq!(status.code(), Some(1), "{said}");
    for pid in gateway.workers.pids() {
        assert!(!processes::runs(pid), "process {pid} is left");
    }
    assert!(!said.contains("panicked"), "{said}");
    said
}

#[track_caller]
fn says(said: &str, what: &[&str]) {
    for what in what {
        assert!(said.contains(what), "no {what:?} in:\n{said}");
    }
}

#[tokio::test]
async fn a_worker_that_exits_at_once() {
    let gateway = Setup::resources().stub("--behave exit-at-once").launch();
    let said = fails(&gateway).await;
    says(&said, &["stub", LAST_WORDS, "3"]);
    let own = said.split("gym-gateway: ").last().unwrap();
    let story = [
        "did not listen: it exited with status 3",
        "(after ",
        "spawn ",
        "listen ",
        LAST_WORDS,
        "what to do: ",
    ];
    says(own, &story);
}

/// The stub worker of the second of two slots never starts, and the slot is soon given up.
fn crash_loop() -> Setup {
    Setup::resources()
        .set("restart_backoff_seconds", 0.02)
        .set("restart_backoff_max_seconds", 0.05)
        .set("max_start_failures", 3)
        .stub("--behave exit-at-once --only-slot 1")
}

#[tokio::test]
async fn a_slot_that_never_starts_is_failed_and_tells_why_while_the_others_go_on() {
    let gateway = crash_loop().start_front().await;
    let given_up = gateway.log().event("giving up", |event| event["to"] == "failed").await.expect("a line");
    assert_eq!(
        (&given_up["server"], &given_up["slot"], &given_up["generation"], &given_up["from"]),
        (&json!("stub"), &json!(1), &json!(3), &json!("died"))
    );
    let reason = given_up["reason"].as_str().unwrap();
    says(reason, &["3 failures in a row", "max_start_failures", "300 s"]);
    let died = gateway.log().event("a death", |event| event["to"] == "died").await.expect("a line");
    assert_eq!((&died["from"], &died["reason"]), (&json!("starting"), &json!("it exited with status 3")));
    says(died["message"].as_str().unwrap(), &[LAST_WORDS, "what to do: "]);

    admin::metrics_until(&gateway, "a ready worker", |metrics| {
        metrics.sum(admin::metric::TRANSITIONS, &[("slot", "0"), ("to", "ready")]) == 1.0
    })
    .await;
    admin::get(&gateway, "/readyz").await.assert(200);
    assert_eq!(gateway.post("/increment").send().await.assert(200).slot(), 0);
    let metrics = admin::metrics(&gateway).await;
    for (to, count) in [("starting", 3.0), ("died", 3.0), ("backoff", 2.0), ("failed", 1.0), ("ready", 0.0)] {
        assert_eq!(metrics.sum(admin::metric::TRANSITIONS, &[("slot", "1"), ("to", to)]), count, "{to}");
    }

    let worker = admin::workers(&admin::status(&gateway).await).remove(1);
    assert_eq!((&worker["state"], &worker["failures_in_a_row"]), (&json!("failed"), &json!(3)));
    let failure = &worker["last_failure"];
    assert_eq!(
        (&failure["generation"], &failure["phase"], &failure["exit"]),
        (&json!(3), &json!("listen"), &json!("exited with status 3"))
    );
    assert!(failure["output"].as_array().unwrap().contains(&json!(LAST_WORDS)), "{failure}");
    assert!(failure["seconds"]["spawn"].is_number() && failure["seconds"]["listen"].is_number(), "{failure}");
    assert!(failure["command"].as_str().unwrap().contains("--behave exit-at-once"), "{failure}");
    assert!(failure["advice"].is_string(), "{failure}");
    let address = gateway.admin().to_string();
    let shown = tokio::task::spawn_blocking(move || {
        Command::new(binary::gateway()).args(["status", "--admin", &address]).output().unwrap()
    });
    let shown = String::from_utf8(shown.await.unwrap().stdout).unwrap();
    says(&shown, &["slot 1, last failure: generation 3, ", "listen: it exited with status 3"]);
    let row: Vec<_> =
        shown.lines().find(|line| line.starts_with("1 ")).unwrap().split_whitespace().take(4).collect();
    assert_eq!(row, ["1", "3", "failed", "-"], "{shown}");
    gateway.finish().await;
}

#[tokio::test]
async fn a_failed_slot_is_tried_again() {
    let gateway = crash_loop().set("failed_retry_seconds", 0.05).start_front().await;
    admin::metrics_until(&gateway, "three tries after the first giving up", |metrics| {
        metrics.sum(admin::metric::TRANSITIONS, &[("slot", "1"), ("to", "failed")]) >= 4.0
    })
    .await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_worker_that_dies_whenever_it_is_ready_is_a_crash_loop() {
    let setup =
        Setup::resources().workers(1).set("restart_backoff_seconds", 0.02).set("max_start_failures", 2);
    let gateway = setup.start().await;
    for to in ["backoff", "failed"] {
        gateway.ready().await;
        processes::signal(gateway.workers.pid(0), nix::sys::signal::Signal::SIGKILL);
        gateway.log().event(to, |event| event["to"] == to).await.expect("a line");
    }
    // No slot left: the gateway goes on, and says that it is not ready.
    let answer = admin::get(&gateway, "/readyz").await.assert(503);
    says(&answer.json().to_string(), &["no ready worker: failed"]);
    let failure = admin::workers(&admin::status(&gateway).await)[0]["last_failure"].clone();
    assert_eq!(
        (&failure["phase"], &failure["exit"], &failure["command"]),
        (&json!("ready"), &json!("was killed by SIGKILL"), &json!(null))
    );
    gateway.finish().await;
}

#[tokio::test]
async fn every_state_of_a_worker_s_life_is_a_line_in_the_log() {
    let gateway = Setup::resources().workers(1).start().await;
    let log = gateway.log().clone();
    gateway.finish().await;
    log.ended().await;
    let mut states = Vec::new();
    for event in log.events().into_iter().filter(|event| event["to"].is_string()) {
        assert_eq!(
            (&event["server"], &event["slot"], &event["generation"]),
            (&json!("stub"), &json!(0), &json!(1))
        );
        assert!(!event["reason"].as_str().unwrap().is_empty(), "{event}");
        let state = |key: &str| event[key].as_str().unwrap().to_owned();
        states.extend([state("from"), state("to")]);
    }
    let words = "none starting starting ready ready draining draining exited exited stopped";
    assert_eq!(states.join(" "), words);
}

#[tokio::test]
async fn one_worker_of_two_that_exits_at_once_is_tried_again() {
    let setup =
        Setup::resources().set("restart_backoff_seconds", 0.05).set("restart_backoff_max_seconds", 0.1);
    let gateway = setup.stub("--behave exit-at-once --only-slot 1").start_front().await;
    for _ in 0..3 {
        assert_eq!(gateway.post("/increment").send().await.assert(200).slot(), 0);
    }
    let said = gateway.log().event("its last words", |event| event.to_string().contains(LAST_WORDS)).await;
    assert_eq!(said.expect("a line")["server"], "stub");
    admin::metrics_until(&gateway, "restarts", |metrics| {
        metrics.sum(admin::metric::RESTARTS, &[("slot", "1")]) >= 2.0
    })
    .await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_worker_that_never_listens_or_never_answers() {
    let cases = [("never-listen", "listen"), ("never-answer", "GET /readyz"), ("unready", "503")];
    for (behaviour, seen) in cases {
        for on_port in [false, true] {
            let setup =
                Setup::resources().set("start_timeout_seconds", 1).gateway("worker_stop_timeout_seconds", 1);
            let setup = if on_port { setup.on_port() } else { setup };
            let gateway = setup.stub(&format!("--behave {behaviour}")).launch();
            says(&fails(&gateway).await, &["stub", seen, "start_timeout_seconds"]);
        }
    }
}

#[tokio::test]
async fn a_port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let gateway = Gateway::launch(|directory| {
        let file = Setup::generic().write(directory);
        let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        config["stub"]["http_servers"]["stub"]["port"] = json!(port);
        std::fs::write(&file, config.to_string()).unwrap();
        vec!["serve".into(), file.to_string_lossy().into_owned()]
    });
    says(&fails(&gateway).await, &[&format!("127.0.0.1:{port}"), "stub", "in use"]);
    assert_eq!(
        gateway.workers.events(),
        Vec::<serde_json::Value>::new(),
        "no worker was started for nothing"
    );
}

#[tokio::test]
async fn an_admin_port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let gateway = Setup::generic().gateway("admin", address.as_str()).launch();
    says(&fails(&gateway).await, &[&address, "in use"]);
}

#[tokio::test]
async fn a_command_without_a_program() {
    let gateway = Gateway::launch(|directory| {
        let file = Setup::generic().write(directory);
        let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        config["stub"]["http_servers"]["stub"]["command"] = json!(["/no/such/program", "{socket}"]);
        std::fs::write(&file, config.to_string()).unwrap();
        vec!["serve".into(), file.to_string_lossy().into_owned()]
    });
    let status = gateway.exit().await;
    gateway.log().ended().await;
    assert_eq!(status.code(), Some(2), "{}", gateway.log().text());
    says(&gateway.log().text(), &["gateway.yaml", "command", "/no/such/program"]);
}

#[tokio::test]
async fn run_needs_no_file() {
    let gateway = Gateway::launch(|directory| {
        let report = directory.join("report");
        let mut args: Vec<String> =
            "run --num-workers 2 --listen 127.0.0.1:0 --admin 127.0.0.1:0 --kind resources --"
                .split(' ')
                .map(str::to_owned)
                .collect();
        args.extend(Setup::new(Kind::Resources).command(&report));
        args
    });
    gateway.front_listens().await;
    gateway.workers.events_until("started", 2, |_| true).await;
    let slot = gateway.seed("s").await;
    for _ in 0..3 {
        assert_eq!(gateway.post("/increment").session("s").send().await.assert(200).slot(), slot);
    }
    gateway.finish().await;
}

#[tokio::test]
async fn run_with_a_cookie_is_generic() {
    let gateway = Gateway::launch(|directory| {
        let report = directory.join("report");
        let mut args: Vec<String> = "run --num-workers 2 --listen 127.0.0.1:0 --admin 127.0.0.1:0 --cookie"
            .split(' ')
            .map(str::to_owned)
            .collect();
        args.extend([COOKIE.to_owned(), "--".to_owned()]);
        args.extend(Setup::generic().on_port().command(&report));
        args
    });
    gateway.front_listens().await;
    let first = gateway.post("/increment").send().await.assert(200);
    let id = first.session().expect("a session");
    for _ in 0..3 {
        assert_eq!(gateway.post("/increment").session(&id).send().await.assert(200).slot(), first.slot());
    }
    gateway.finish().await;
}

/// An unmodified NeMo Gym server: a script for an interpreter, its own config in the environment. The stub is both.
fn gym_config(directory: &std::path::Path, more: &str) -> Vec<String> {
    std::fs::write(directory.join("app.py"), "").unwrap();
    let stub = gym_gateway_tests::harness::binary::stub_worker();
    let launcher = directory.join("python");
    let report = directory.join("report");
    let script = format!(
        "#!/bin/sh\nSTUB_ARGS='--report {} --cookie {COOKIE} {more}' exec {} \"$@\"\n",
        report.display(),
        stub.display()
    );
    std::fs::write(&launcher, script).unwrap();
    std::fs::set_permissions(&launcher, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let config = json!({
        "stub": {"resources_servers": {"stub": {
            "entrypoint": "app.py", "host": "127.0.0.1", "port": 0, "num_workers": 2, "domain": "agent",
        }}},
        "gateway": {"admin": "127.0.0.1:0", "servers": {"stub": {"python": launcher, "directory": directory}}},
    });
    let file = directory.join("gym.yaml");
    std::fs::write(&file, config.to_string()).unwrap();
    vec!["serve".into(), file.to_string_lossy().into_owned()]
}

#[tokio::test]
async fn a_gym_server_runs_by_its_own_yaml() {
    let gateway = Gateway::launch(|directory| gym_config(directory, ""));
    gateway.ready().await;
    let asking = |event: &serde_json::Value| event.to_string().contains("asking the server whether");
    let asked = gateway.log().event("the question", asking).await.expect("a line");
    assert_eq!((&asked["server"], &asked["num_workers"]), (&json!("stub"), &json!(2)));
    for (id, owner) in gateway.seed_two().await {
        assert_eq!(gateway.post("/increment").session(&id).send().await.assert(200).slot(), owner);
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_gym_server_that_refuses_several_workers() {
    let gateway = Gateway::launch(|directory| gym_config(directory, "--behave refuse-several"));
    says(&fails(&gateway).await, &["stub", SEVERAL_REFUSED, "num_workers"]);
    assert_eq!(gateway.workers.count_of("started", |_| true).len(), 0, "asked by a dry run");
}

#[tokio::test]
async fn workers_are_told_who_they_are_and_their_output_is_logged() {
    let gateway = Setup::resources().start().await;
    let started = gateway.workers.events_until("started", 2, |_| true).await;
    let mut slots: Vec<_> =
        started.iter().map(|event| (event["slot"].as_u64(), event["generation"].as_u64())).collect();
    slots.sort_unstable();
    assert_eq!(slots, [(Some(0), Some(1)), (Some(1), Some(1))]);
    let line = gateway
        .log()
        .event("a worker's line", |event| event.to_string().contains("stub-worker: hello"))
        .await;
    let line = line.expect("a line");
    assert_eq!(line["server"], "stub");
    assert!(line["slot"].is_number(), "{line}");
    gateway.finish().await;
}

#[tokio::test]
async fn a_restart_waits_longer_each_time() {
    let setup = Setup::resources()
        .workers(1)
        .set("restart_backoff_seconds", 0.05)
        .set("restart_backoff_max_seconds", 0.2);
    let gateway = setup.start().await;
    for generation in 2..=4_u64 {
        processes::signal(gateway.workers.pid(0), nix::sys::signal::Signal::SIGKILL);
        let killed = std::time::Instant::now();
        gateway.workers.event("started", |event| event["generation"] == generation).await;
        // Jitter may halve it.
        assert!(killed.elapsed() >= Duration::from_millis(20), "{:?}", killed.elapsed());
        gateway.ready().await;
    }
    assert_eq!(admin::metrics(&gateway).await.sum(admin::metric::RESTARTS, &[]), 3.0);
    gateway.finish().await;
}

#[tokio::test]
async fn several_servers_in_several_files() {
    let gateway = Gateway::launch(|directory| {
        let report = directory.join("report");
        let mut first = Setup::resources().config(&report);
        first["shared"] = json!({"workers": 1});
        let mut second = Setup::generic().set("session_cookie", "sid").workers(1).config(&report);
        second = json!({"other": second["stub"]});
        second["other"]["http_servers"]["stub"]["num_workers"] = json!("${shared.workers}");
        let mut args = vec!["serve".to_owned()];
        for (name, config) in [("first.yaml", first), ("second.yaml", second)] {
            let file = directory.join(name);
            std::fs::write(&file, config.to_string()).unwrap();
            args.push(file.to_string_lossy().into_owned());
        }
        args
    });
    gateway.front_listens().await;
    let other = gateway.front_of("other").await;
    gateway.workers.events_until("started", 3, |_| true).await;
    let owner = gateway.seed("s").await;
    let call = Call::new(other, http::Method::POST, "/increment").session("s");
    call.send().await.assert(200);
    let answer = gateway.post("/increment").session("s").send().await.assert(200);
    assert_eq!(
        (answer.slot(), &answer.json()["counter"]),
        (owner, &json!(1)),
        "each server has sessions of its own"
    );
    gateway.finish().await;
}
