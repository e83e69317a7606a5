//! `reload` and SIGHUP: what has changed in the files is applied, and nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::{net::TcpListener, process::Output};

use gym_gateway_tests::harness::{Call, Gateway, Kind, Setup, admin, poll};
use http::Method;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::net::TcpStream;

fn setup() -> Setup {
    Setup::resources().set("session_close_retry_window_seconds", 0.2)
}

async fn close(gateway: &Gateway, id: &str) {
    gateway.post("/close_session").session(id).json(&json!({})).send().await.assert(200);
}

/// Has the files read again: what the command prints.
async fn reload(gateway: &Gateway) -> String {
    let output = gateway.command(&["reload"]).await;
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The configuration of `setup`, changed.
fn write(gateway: &Gateway, setup: &Setup, change: impl FnOnce(&mut Value)) {
    let mut config = setup.config(&gateway.directory().join("report"));
    change(&mut config);
    std::fs::write(gateway.directory().join("gateway.yaml"), config.to_string()).unwrap();
}

/// A server of kind generic beside the first: its block.
fn other(gateway: &Gateway, port: u16) -> Value {
    let mut config = Setup::generic().workers(1).config(&gateway.directory().join("report"));
    let mut block = config["stub"]["http_servers"].take();
    block["stub"]["port"] = json!(port);
    json!({"http_servers": block})
}

#[tokio::test]
async fn more_workers_and_fewer_and_no_session_is_lost() {
    let gateway = setup().start().await;
    let sessions = gateway.seed_two().await;
    assert_eq!(reload(&gateway).await, "nothing has changed\n");
    gateway.rewrite(&setup().workers(4));
    assert_eq!(reload(&gateway).await, "stub: num_workers 2 -> 4, slot 2 is started, slot 3 is started\n");
    gateway
        .log()
        .event("the change", |event| {
            event["message"].as_str().is_some_and(|text| text.starts_with("reload: stub: num_workers 2 -> 4"))
        })
        .await
        .expect("a line");
    admin::slot_becomes(&gateway, 3, 1, "ready").await;
    admin::slot_becomes(&gateway, 2, 1, "ready").await;
    let more = [gateway.seed("third").await, gateway.seed("fourth").await];
    assert!(more.iter().all(|slot| *slot >= 2), "the new ones have the fewest sessions: {more:?}");

    gateway.rewrite(&setup().workers(1));
    let said = reload(&gateway).await;
    assert_eq!(said, "stub: num_workers 4 -> 1, slot 1 drains, slot 2 drains, slot 3 drains\n");
    let ids = sessions
        .iter()
        .map(|(id, slot)| (id.as_str(), *slot))
        .chain([("third", more[0]), ("fourth", more[1])]);
    for (id, slot) in ids {
        let answer = gateway.post("/increment").session(id).send().await.assert(200);
        assert_eq!((answer.slot(), &answer.json()["known"]), (slot, &json!(true)), "{id}");
        assert_eq!(gateway.seed(&format!("new-{id}")).await, 0);
        if slot > 0 {
            close(&gateway, id).await;
        }
    }
    poll("one slot is left", async || {
        (admin::workers(&admin::status(&gateway).await).len() == 1).then_some(())
    })
    .await;
    let metrics = admin::metrics(&gateway).await;
    assert_eq!(metrics.sum("gym_gateway_sessions_lost_total", &[]), 0.0);
    assert_eq!(metrics.sum("gym_gateway_reloads_total", &[("result", "applied")]), 3.0);
    gateway.finish().await;
}

#[tokio::test]
async fn an_invalid_file_changes_nothing_and_says_why() {
    let gateway = setup().start().await;
    let (id, slot) = gateway.seed_two().await[0].clone();
    gateway.rewrite(&setup().workers(4).set("queue_timeout_second", 3));
    let output = gateway.command(&["reload"]).await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = stderr(&output);
    for part in [
        "nothing was changed",
        "gateway.yaml",
        "queue_timeout_second",
        "did you mean `queue_timeout_seconds`?",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    std::fs::write(gateway.directory().join("gateway.yaml"), "stub: [").unwrap();
    gateway.signal(Signal::SIGHUP);
    gateway
        .log()
        .event("the second refusal", |event| {
            let text = event["message"].as_str().unwrap_or_default();
            event["level"] == "ERROR"
                && text.starts_with("reload: nothing was changed: ")
                && !text.contains("did you mean")
        })
        .await
        .expect("a line");
    let workers = admin::workers(&admin::status(&gateway).await);
    assert!(workers.len() == 2 && workers.iter().all(|worker| worker["generation"] == 1), "{workers:?}");
    assert_eq!(gateway.post("/increment").session(&id).send().await.assert(200).slot(), slot);
    assert_eq!(
        admin::metrics(&gateway).await.sum("gym_gateway_reloads_total", &[("result", "refused")]),
        2.0
    );
    gateway.finish().await;
}

#[tokio::test]
async fn sighup_applies_what_has_changed() {
    let gateway = setup().start().await;
    gateway.rewrite(&setup().workers(3).gateway("access_log", true));
    gateway.signal(Signal::SIGHUP);
    admin::slot_becomes(&gateway, 2, 1, "ready").await;
    gateway.post("/increment").session("s").send().await.assert(200);
    gateway.log().event("an access line", |event| event["path"] == "/increment").await.expect("a line");
    gateway.finish().await;
}

#[tokio::test]
async fn another_environment_rolls_that_server() {
    let setup = || setup().set("environment", json!({"MODE": "one"}));
    let gateway = setup().start().await;
    let [(kept, slot), (also, _)] = gateway.seed_two().await;
    gateway.rewrite(&setup().set("environment", json!({"MODE": "two"})).set("max_surge", 2));
    let said = reload(&gateway).await;
    assert_eq!(
        said,
        "stub: max_surge changed\nstub: the config starts workers in another way: a rolling restart has begun, see status\n"
    );
    for slot in 0..2 {
        admin::slot_becomes(&gateway, slot, 2, "ready").await;
        let pid = gateway.workers.pid(slot);
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(environment.split(|byte| *byte == 0).any(|variable| variable == b"MODE=two"));
    }
    let answer = gateway.post("/increment").session(&kept).send().await.assert(200);
    assert_eq!((answer.slot(), answer.text("x-generation").as_str()), (slot, "1"));
    for id in [&kept, &also] {
        close(&gateway, id).await;
    }
    assert_eq!(reload(&gateway).await, "nothing has changed\n");
    assert_eq!(admin::metrics(&gateway).await.sum("gym_gateway_sessions_lost_total", &[]), 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_command_that_cannot_start_leaves_the_old_workers_and_is_tried_by_the_next_reload() {
    let gateway = setup().start().await;
    let (id, slot) = gateway.seed_two().await[0].clone();
    gateway.rewrite(&setup().stub("--behave exit-at-once --only-generation 2"));
    reload(&gateway).await;
    gateway
        .log()
        .event("the stop", |event| {
            event["message"].as_str().is_some_and(|text| text.starts_with("the rolling restart stopped"))
        })
        .await
        .expect("a line");
    assert_eq!(gateway.post("/increment").session(&id).send().await.assert(200).text("x-generation"), "1");
    admin::slot_becomes(&gateway, slot, 1, "ready").await;
    assert!(reload(&gateway).await.contains("a rolling restart has begun"));
    admin::slot_becomes(&gateway, 0, 3, "ready").await;
    gateway.finish().await;
}

#[tokio::test]
async fn limits_hold_at_once_and_what_cannot_is_said() {
    let gateway = setup().workers(1).set("queue_timeout_seconds", 100).start().await;
    gateway.seed("s").await;
    let changed = setup()
        .workers(1)
        .set("queue_timeout_seconds", 0.05)
        .set("worker_timeout_seconds", 0.05)
        .set("session_cookie", "another")
        .gateway("threads", 3)
        .gateway("worker_stop_timeout_seconds", 2);
    gateway.rewrite(&changed);
    let said = reload(&gateway).await;
    assert_eq!(
        said,
        "gateway: worker_stop_timeout_seconds changed\n\
         stub: queue_timeout_seconds, worker_timeout_seconds changed\n\
         not changed: gateway: threads: needs a restart of the gateway\n\
         not changed: stub: session_cookie: needs a restart of the gateway\n"
    );
    gateway.post("/increment").session("s").fault("hang").send().await.assert_refused(504, "worker_timeout");
    let drained = gateway.command(&["drain", "stub/0", "--no-wait"]).await;
    assert!(drained.status.success(), "{drained:?}");
    admin::slot_becomes(&gateway, 0, 1, "draining").await;
    gateway.post("/seed_session").session("new").send().await.assert_refused(503, "no_worker");
    gateway.post("/increment").session("s").send().await.assert(200);
    write(&gateway, &changed, |config| config["stub"]["resources_servers"]["stub"]["port"] = json!(1));
    let said = reload(&gateway).await;
    assert!(
        said.contains("not changed: stub: host, port: needs a restart of the gateway; nothing of this"),
        "{said}"
    );
    gateway.finish().await;
}

#[tokio::test]
async fn a_server_is_added_and_removed() {
    let gateway = setup().start().await;
    write(&gateway, &setup(), |config| config["other"] = other(&gateway, 0));
    let said = reload(&gateway).await;
    assert!(
        said.starts_with("other: added: listens on 127.0.0.1:") && said.ends_with("1 workers are started\n"),
        "{said}"
    );
    let front = gateway.front_of("other").await;
    let call = |target: &str| Call::new(front, Method::POST, target).tag("other");
    let held = call("/increment").fault("gate=go").spawn();
    gateway.workers.tagged("waiting", "other").await;
    let mut kept_alive = gym_gateway_tests::harness::Http1::connect(front).await;
    kept_alive.send(&call("/echo")).await.assert(200);

    gateway.rewrite(&setup());
    let said = reload(&gateway).await;
    assert_eq!(said, "other: removed: no new sessions, its front closes when its workers have drained\n");
    let status = gateway.command(&["status"]).await;
    assert!(String::from_utf8_lossy(&status.stdout).contains("removed from the config"), "{status:?}");
    let again = gateway.command(&["reload"]).await;
    assert!(again.status.success(), "{again:?}");
    gateway.workers.open_wide("go").await;
    held.await.unwrap().assert(200);
    poll("its front is closed", async || TcpStream::connect(front).await.is_err().then_some(())).await;
    poll("it is gone", async || {
        let status = admin::status(&gateway).await;
        (status["servers"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
    let other_pid =
        gateway.workers.event("started", |event| event["name"] == "other").await["pid"].as_u64().unwrap();
    gym_gateway_tests::harness::processes::gone(u32::try_from(other_pid).unwrap()).await;
    gateway.post("/increment").send().await.assert(200);

    // The name and the address are free again.
    write(&gateway, &setup(), |config| config["other"] = other(&gateway, front.port()));
    assert!(reload(&gateway).await.starts_with("other: added"));
    poll("the new one serves", async || {
        (Call::new(front, Method::POST, "/increment").send().await.status == 200).then_some(())
    })
    .await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_server_whose_port_is_in_use_fails_alone() {
    let gateway = setup().start().await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    write(&gateway, &setup().workers(3), |config| config["other"] = other(&gateway, port));
    let output = gateway.command(&["reload"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    for part in ["failed: server other: cannot listen on", &port.to_string(), "num_workers 2 -> 3"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    admin::slot_becomes(&gateway, 2, 1, "ready").await;
    assert_eq!(admin::metrics(&gateway).await.sum("gym_gateway_reloads_total", &[("result", "failed")]), 1.0);
    drop(taken);
    assert!(reload(&gateway).await.starts_with("other: added"));
    gateway.stop().await;
}

#[tokio::test]
async fn a_port_that_another_server_of_the_gateway_has_is_said_to_be_its() {
    let gateway = setup().start().await;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    write(&gateway, &setup(), |config| config["other"] = other(&gateway, port));
    reload(&gateway).await;
    let held = Call::new(gateway.front_of("other").await, Method::POST, "/increment").tag("held");
    let held = held.fault("gate=go").spawn();
    gateway.workers.tagged("waiting", "held").await;
    write(&gateway, &setup(), |config| {
        config["other"] = other(&gateway, 0);
        config["renamed"] = other(&gateway, port);
    });
    let said = stderr(&gateway.command(&["reload"]).await);
    assert!(said.contains("(the server other of this gateway does)"), "{said}");
    write(&gateway, &setup(), |config| config["renamed"] = other(&gateway, port));
    let said = stderr(&gateway.command(&["reload"]).await);
    assert!(said.contains("(the server other was removed, and drains there until then)"), "{said}");
    gateway.workers.open_wide("go").await;
    held.await.unwrap().assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn a_gateway_without_files_has_nothing_to_read() {
    let gateway = Gateway::launch(|directory| {
        let report = directory.join("report");
        let args = "run -n 1 --listen 127.0.0.1:0 --admin 127.0.0.1:0 --kind model --";
        args.split(' ').map(str::to_owned).chain(Setup::new(Kind::Model).command(&report)).collect()
    });
    gateway.front_listens().await;
    poll("it takes orders", async || {
        let output = gateway.command(&["reload"]).await;
        let said = stderr(&output);
        (output.status.code() == Some(1) && said.contains("started by `run`")).then_some(())
    })
    .await;
    gateway.workers.event("started", |_| true).await;
    gateway.finish().await;
}

#[tokio::test]
async fn the_gateway_stops_while_a_reload_asks_a_server() {
    let setup = || setup().describes(&json!({"kind": "resources"})).stub("--behave describe-late");
    let gateway = setup().start_front().await;
    gateway.workers.event("described", |_| true).await;
    gateway.workers.open("describe").await;
    gateway.ready().await;
    gateway.rewrite(&setup().workers(3));
    let reloading = gateway.begin(&["reload"]);
    gateway.workers.events_until("described", 2, |_| true).await;
    gateway.finish().await;
    assert_eq!(reloading.await.unwrap().status.code(), Some(1));
}

#[tokio::test]
async fn a_server_that_describes_itself_is_asked_again() {
    let told = |cookie: &str| json!({"kind": "resources", "session_cookie": cookie});
    let gateway = setup().describes(&told("Stub___stub")).start().await;
    let mut changed = told("Stub___stub");
    changed["multiple_workers_unsupported_reason"] = json!("one GPU");
    gateway.rewrite(&setup().describes(&changed));
    let output = gateway.command(&["reload"]).await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("one GPU"), "{output:?}");
    gateway.finish().await;
}
