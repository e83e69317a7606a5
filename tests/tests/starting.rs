//! Starts that fail, and why: exit 1 with what was seen.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::{net::TcpListener, time::Duration};

use gym_gateway_tests::{
    harness::{Call, Gateway, Kind, Setup, admin, processes, setup::COOKIE},
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
