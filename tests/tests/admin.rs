//! The admin address: what it shows, and that it is right.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use gym_gateway_tests::harness::{Setup, admin, admin::metric, binary, processes};
use serde_json::json;

#[tokio::test]
async fn it_lives_before_it_is_ready() {
    let gateway = Setup::resources().stub("--behave unready").start_front().await;
    gateway.workers.events_until("started", 2, |_| true).await;
    admin::get(&gateway, "/livez").await.assert(200);
    admin::get(&gateway, "/readyz").await.assert(503);
    let workers = admin::workers(&admin::status(&gateway).await);
    assert!(workers.iter().all(|worker| worker["state"] == "starting"), "{workers:?}");
    gateway.workers.open_wide("ready").await;
    gateway.ready().await;
    admin::get(&gateway, "/readyz").await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn status_shows_every_worker() {
    let gateway = Setup::resources().start().await;
    gateway.seed("s").await;
    let workers = admin::workers(&admin::status(&gateway).await);
    assert_eq!(workers.len(), 2);
    for (slot, worker) in (0..).zip(&workers) {
        let pid = gateway.workers.pid(slot);
        assert_eq!(
            (&worker["slot"], &worker["generation"], &worker["pid"]),
            (&json!(slot), &json!(1), &json!(pid))
        );
    }
    gateway.finish().await;
}

#[tokio::test]
async fn sessions_are_listed_and_shortened() {
    let gateway = Setup::resources().start().await;
    let id = "a-session-id-of-some-length-0123456789";
    let owner = gateway.seed(id).await;
    let listed = admin::get(&gateway, "/sessions").await.assert(200);
    let text = String::from_utf8_lossy(&listed.body).into_owned();
    assert!(!text.contains(id) && text.contains(&id[..4]), "{text}");
    assert!(text.contains("open") && text.contains(&format!("\"slot\":{owner}")), "{text}");
    gateway.finish().await;
}

#[tokio::test]
async fn metrics_add_up() {
    let gateway = Setup::resources().start().await;
    let [(first, slot), _] = gateway.seed_two().await;
    for _ in 0..5 {
        gateway.post("/increment").session(&first).send().await.assert(200);
    }
    gateway.post("/missing").send().await.assert(404);
    gateway
        .post("/increment")
        .session(&first)
        .fault("garbage")
        .send()
        .await
        .assert_refused(502, "worker_error");
    let held = gateway.post("/increment").session(&first).tag("t").fault("gate=go").spawn();
    gateway.workers.tagged("waiting", "t").await;

    let metrics = admin::metrics(&gateway).await;
    let slot = slot.to_string();
    let server = ("server", "stub");
    assert_eq!(metrics.sum(metric::IN_FLIGHT, &[server, ("slot", &slot)]), 1.0);
    assert_eq!(metrics.sum(metric::SESSIONS, &[server, ("slot", &slot), ("state", "open")]), 1.0);
    assert_eq!(metrics.sum(metric::REQUESTS, &[server, ("status", "404")]), 1.0);
    assert_eq!(metrics.sum(metric::REQUESTS, &[server, ("status", "502")]), 1.0);
    assert_eq!(metrics.sum(metric::REFUSALS, &[server, ("code", "worker_error")]), 1.0);
    assert_eq!(metrics.sum("gym_gateway_worker_up", &[server]), 2.0);
    gateway.workers.open("go").await;
    held.await.unwrap().assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn the_text_is_what_prometheus_reads() {
    let gateway = Setup::resources().start().await;
    gateway.post("/increment").send().await.assert(200);
    let answer = admin::get(&gateway, "/metrics").await.assert(200);
    assert!(
        answer.text("content-type").starts_with("text/plain; version=0.0.4"),
        "{}",
        answer.text("content-type")
    );
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let documented: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next()).collect();
    for sample in &admin::metrics(&gateway).await.0 {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| sample.name.strip_suffix(end));
        let known =
            documented.contains(&sample.name.as_str()) || base.is_some_and(|base| documented.contains(&base));
        assert!(known, "{} has no HELP", sample.name);
        assert!(!sample.labels.iter().any(|(key, _)| key == "generation"), "{sample:?}");
    }
    gateway.finish().await;
}

#[tokio::test]
async fn the_status_and_sessions_commands_ask_it() {
    let gateway = Setup::resources().start().await;
    gateway.seed("some-session-of-ours").await;
    let address = gateway.admin().to_string();
    for (command, word) in [("status", "ready"), ("sessions", "open")] {
        let output = tokio::task::spawn_blocking({
            let address = address.clone();
            move || Command::new(binary::gateway()).args([command, "--admin", &address]).output().unwrap()
        })
        .await
        .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("stub") && text.contains(word),
            "{command}: {output:?}"
        );
    }
    gateway.finish().await;
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_an_error() {
    for more in [&[][..], &["--json"], &["--watch"], &["--watch", "0.01", "--json"]] {
        let output = tokio::task::spawn_blocking(move || {
            let mut command = Command::new(binary::gateway());
            command.args(["status", "--admin", "127.0.0.1:1"]).args(more).output().unwrap()
        })
        .await
        .unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("127.0.0.1:1"), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[tokio::test]
async fn status_tells_the_memory_of_each_worker() {
    let gateway = Setup::resources().start().await;
    for worker in admin::workers(&admin::status(&gateway).await) {
        // More than a process without anything, less than a machine.
        let bytes = worker["memory_bytes"].as_u64().unwrap();
        assert!((100_000..1 << 40).contains(&bytes), "{worker}");
    }
    let metrics = admin::metrics(&gateway).await;
    assert!(metrics.sum("gym_gateway_worker_resident_memory_bytes", &[("slot", "1")]) > 100_000.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_watched_status_comes_again_until_nobody_reads() {
    let gateway = Setup::resources().start().await;
    let address = gateway.admin().to_string();
    let watched = tokio::task::spawn_blocking(move || {
        let mut child = Command::new(binary::gateway())
            .args(["status", "--watch", "0.01", "--admin", &address])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let heads: Vec<_> = lines.filter(|line| line.starts_with("gym-gateway ")).take(3).collect();
        // The pipe is closed now: the next one cannot be written.
        (heads, child.wait().unwrap())
    });
    let (heads, status) = watched.await.unwrap();
    assert_eq!(heads.len(), 3);
    assert!(status.success(), "{status}");
    gateway.finish().await;
}

#[tokio::test]
async fn unknown_pages_and_methods_are_refused() {
    let gateway = Setup::resources().start().await;
    admin::get(&gateway, "/nothing").await.assert(404);
    assert!(processes::runs(gateway.pid()));
    gateway.finish().await;
}

#[tokio::test]
async fn an_access_log_has_a_line_for_each_request() {
    let gateway = Setup::resources().gateway("access_log", true).start().await;
    gateway.post("/increment").session("s").send().await.assert(200);
    gateway.get("/missing?secret=1").send().await.assert(404);
    let line =
        gateway.log().event("an access line", |event| event["path"] == "/increment").await.expect("a line");
    assert_eq!(
        (&line["method"], &line["status"], &line["server"]),
        (&json!("POST"), &json!(200), &json!("stub"))
    );
    gateway
        .log()
        .event("the other", |event| event["path"] == "/missing" && event["status"] == 404)
        .await
        .expect("a line");
    gateway.finish().await;
}
