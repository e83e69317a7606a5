//! A log file for each worker.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path};

use gym_gateway_tests::harness::{Gateway, Setup, admin, poll, processes};
use nix::sys::signal::Signal;
use serde_json::json;

fn text(gateway: &Gateway, name: &str) -> String {
    fs::read_to_string(gateway.directory().join(name)).unwrap_or_default()
}

#[tokio::test]
async fn each_slot_has_its_own_through_all_its_processes() {
    let gateway = Setup::generic()
        .set("log_file", "logs/{server}-{slot}.log")
        .set("restart_backoff_seconds", 0.02)
        .start()
        .await;
    let old = gateway.workers.pid(1);
    processes::signal(old, Signal::SIGKILL);
    poll("the second process's first line", async || {
        (text(&gateway, "logs/stub-1.log").matches("hello from slot 1").count() == 2).then_some(())
    })
    .await;
    gateway.ready().await;
    let log = gateway.log().clone();
    let directory = gateway.directory().to_owned();
    // Read after the stop, which waits for the last lines; the folder would go with the gateway.
    gateway.signal(Signal::SIGTERM);
    gateway.stopped().await;
    let lines = |slot: u16| {
        let text = fs::read_to_string(directory.join(format!("logs/stub-{slot}.log"))).unwrap();
        text.lines().map(|line| line.split(" GMT: ").last().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = lines(1);
    assert!(first.iter().any(|line| line == &format!("process {old} started")), "{first:?}");
    assert!(first.iter().any(|line| line == "its process was killed by SIGKILL"), "{first:?}");
    assert_eq!(first.iter().filter(|line| line.ends_with("hello from slot 1")).count(), 2, "{first:?}");
    assert!(first.last().unwrap().starts_with("its process "), "{first:?}");
    assert!(lines(0).iter().all(|line| !line.contains("slot 1")));
    log.ended().await;
    let said = log.text();
    assert!(said.contains("hello from slot 1"), "what workers write is in the log as well");
}

/// Writes on while it serves.
fn talkative(directory: &Path, log_file: &serde_json::Value) -> Vec<String> {
    let stub = gym_gateway_tests::harness::binary::stub_worker();
    let script = "(while read line; do echo $line; done; for i in $(seq 5000); do echo line $i of many; done) </dev/null; \
                  exec \"$0\" --socket \"$1\"";
    let config = json!({
        "gateway": {"admin": "127.0.0.1:0"},
        "stub": {"http_servers": {"stub": {
            "port": 0, "num_workers": 1, "log_file": log_file, "command": ["sh", "-c", script, stub, "{socket}"],
        }}},
    });
    let file = directory.join("gateway.yaml");
    fs::write(&file, config.to_string()).unwrap();
    vec!["serve".into(), file.to_str().unwrap().into()]
}

#[tokio::test]
async fn it_is_rotated_and_the_last_ones_are_kept() {
    let log_file = json!({"path": "w.log", "max_bytes": "16KiB", "keep": 2});
    let gateway = Gateway::launch(|directory| talkative(directory, &log_file));
    gateway.ready().await;
    gateway.signal(Signal::SIGTERM);
    gateway.stopped().await;
    let texts = ["w.log.2", "w.log.1", "w.log"].map(|name| text(&gateway, name));
    assert!(texts.iter().all(|text| !text.is_empty() && text.len() <= 16 * 1024));
    assert!(!gateway.directory().join("w.log.3").exists());
    // None is missing where the files meet, and the newest are there.
    let all = texts.concat();
    let numbers: Vec<u32> =
        all.lines().filter_map(|line| line.strip_prefix("line ")?.split(' ').next()?.parse().ok()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
    assert_eq!(numbers.last(), Some(&5000));
}

#[tokio::test]
async fn a_full_disk_or_a_folder_that_cannot_be_is_said_and_stops_nothing() {
    for (path, reason) in [("/dev/full", "No space left"), ("gateway.yaml/w.log", "Not a directory")] {
        let gateway = Gateway::launch(|directory| talkative(directory, &json!(path)));
        gateway.ready().await;
        let said = gateway.log().event("the failure", |event| {
            event["level"] == "ERROR" && event["message"].as_str().is_some_and(|text| text.contains(reason))
        });
        let said = said.await.expect("it is said");
        assert!(said["message"].as_str().unwrap().contains("cannot write the log file "), "{said}");
        gateway.get("/echo").send().await.assert(200);
        assert_eq!(admin::workers(&admin::status(&gateway).await)[0]["restarts"], 0);
        let log = gateway.log().clone();
        gateway.finish().await;
        log.ended().await;
        let errors = log.events().into_iter().filter(|event| event["level"] == "ERROR").count();
        assert_eq!(errors, 1, "once, not for every line");
        assert!(log.text().contains("line 5000 of many"), "the output was read on");
        assert!(log.text().contains("lines of workers' output are not in the log file"), "and counted");
    }
}
