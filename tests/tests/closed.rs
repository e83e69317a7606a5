//! A session's life: what starts, ends and fences it, and when it is forgotten.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Gateway, Setup, admin};
use serde_json::{Value, json};

fn by_body(id: &str) -> Value {
    json!({"resources_session_id": id})
}

/// Sessions claimed, open and ended.
async fn states(gateway: &Gateway) -> [f64; 3] {
    let metrics = admin::metrics(gateway).await;
    ["claimed", "open", "ended"].map(|state| metrics.sum(admin::metric::SESSIONS, &[("state", state)]))
}

#[tokio::test]
async fn a_close_fences_the_session() {
    let gateway = Setup::resources().start().await;
    gateway.post("/seed_session").json(&by_body("s")).send().await.assert(200);
    gateway.post("/close_session").json(&by_body("s")).send().await.assert(200);
    assert_eq!(states(&gateway).await, [0.0, 0.0, 1.0]);
    let before = gateway.workers.count_of("request", |event| event["target"] == "/seed_session").len();
    gateway.post("/seed_session").json(&by_body("s")).send().await.assert_refused(409, "session_closed");
    gateway.post("/seed_session").session("s").send().await.assert_refused(409, "session_closed");
    let after = gateway.workers.count_of("request", |event| event["target"] == "/seed_session").len();
    assert_eq!(before, after, "refused by the gateway, whatever the worker would say");
    // The close is sent again: it goes through.
    gateway.post("/close_session").json(&by_body("s")).send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn a_close_of_an_id_that_nobody_seeded_fences_it() {
    let gateway = Setup::resources().start().await;
    gateway.post("/close_session").json(&by_body("early")).send().await.assert(200);
    gateway.post("/seed_session").json(&by_body("early")).send().await.assert_refused(409, "session_closed");
    gateway.finish().await;
}

#[tokio::test]
async fn a_failed_close_fences_nothing() {
    let gateway = Setup::resources().start().await;
    gateway.post("/seed_session").json(&by_body("s")).send().await.assert(200);
    gateway.post("/close_session").json(&by_body("s")).fault("status=500").send().await.assert(500);
    assert_eq!(states(&gateway).await, [0.0, 1.0, 0.0]);
    gateway.post("/seed_session").json(&by_body("s")).send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn a_fence_is_forgotten_after_the_close_retry_window() {
    let gateway = Setup::resources().set("session_close_retry_window_seconds", 1).start().await;
    gateway.post("/close_session").json(&by_body("s")).send().await.assert(200);
    gateway.post("/seed_session").json(&by_body("s")).send().await.assert_refused(409, "session_closed");
    gateway.post("/increment").session("claimed").send().await.assert(200);
    admin::sessions_become(&gateway, "ended", 0.0).await;
    admin::sessions_become(&gateway, "claimed", 0.0).await;
    gateway.post("/seed_session").json(&by_body("s")).send().await.assert(200);
    assert_eq!(states(&gateway).await, [0.0, 1.0, 0.0]);
    gateway.finish().await;
}

#[tokio::test]
async fn a_close_that_overtakes_its_seed_wins() {
    let gateway = Setup::resources().start().await;
    let seed = gateway.post("/seed_session").json(&by_body("s")).tag("seed").fault("gate=go").spawn();
    let owner = gateway.workers.tagged("waiting", "seed").await["slot"].clone();
    let close = gateway.post("/close_session").json(&by_body("s")).send().await.assert(200);
    assert_eq!(json!(close.slot()), owner, "claimed by the seed before its reply");
    gateway.workers.open("go").await;
    seed.await.unwrap().assert(200);
    assert_eq!(states(&gateway).await, [0.0, 0.0, 1.0], "a late start opens nothing that is fenced");
    gateway.finish().await;
}

#[tokio::test]
async fn verify_ends_a_session_seeded_by_cookie_which_may_start_again() {
    let gateway = Setup::resources().start().await;
    let owner = gateway.seed("s").await;
    gateway.post("/verify").session("s").send().await.assert(200);
    assert_eq!(states(&gateway).await, [0.0, 0.0, 1.0]);
    assert_eq!(gateway.post("/verify").session("s").send().await.assert(200).slot(), owner);
    assert_eq!(gateway.seed("s").await, owner, "unfenced: open again");
    assert_eq!(states(&gateway).await, [0.0, 1.0, 0.0]);
    gateway.finish().await;
}

#[tokio::test]
async fn verify_does_not_end_a_session_seeded_by_body() {
    let gateway = Setup::resources().start().await;
    gateway.post("/seed_session").json(&by_body("s")).send().await.assert(200);
    gateway.post("/verify").session("s").send().await.assert(200);
    assert_eq!(states(&gateway).await, [0.0, 1.0, 0.0]);
    gateway.finish().await;
}

#[tokio::test]
async fn a_reply_may_say_whether_its_session_has_ended() {
    let gateway = Setup::resources().start().await;
    gateway.seed("s").await;
    let open =
        gateway.post("/verify").session("s").fault("header=X-Gym-Session:open").send().await.assert(200);
    assert_eq!(open.text("x-gym-session"), "", "between worker and gateway alone");
    assert_eq!(states(&gateway).await, [0.0, 1.0, 0.0]);
    gateway.post("/increment").session("s").fault("header=X-Gym-Session:ended").send().await.assert(200);
    assert_eq!(states(&gateway).await, [0.0, 0.0, 1.0]);
    gateway.finish().await;
}

#[tokio::test]
async fn a_terminal_step_ends_a_session_begun_by_reset() {
    let gateway = Setup::resources().start().await;
    for (id, last) in [("a", "terminated"), ("b", "truncated")] {
        gateway.post("/reset").session(id).json(&json!({})).send().await.assert(200);
        // Its reply has `terminated` in a text and `truncated` one level down.
        gateway.post("/step").session(id).json(&json!({})).send().await.assert(200);
        assert_eq!(states(&gateway).await[1], 1.0);
        // The stub compresses for those who take it, and nobody reads a compressed reply as it passes.
        let step =
            gateway.post("/step").session(id).header("accept-encoding", "gzip").json(&json!({last: true}));
        let step = step.send().await.assert(200);
        assert_eq!(step.json()[last], true, "the reply is not changed");
        assert_eq!(states(&gateway).await[1], 0.0, "ended before the reply's last byte");
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_terminal_step_leaves_other_sessions_open() {
    let gateway = Setup::resources().start().await;
    gateway.seed("s").await;
    gateway.post("/step").session("s").json(&json!({"terminated": true})).send().await.assert(200);
    gateway.post("/reset").session("r").json(&json!({})).send().await.assert(200);
    let failed = gateway.post("/step").session("r").json(&json!({"terminated": true})).fault("status=500");
    failed.send().await.assert(500);
    assert_eq!(states(&gateway).await, [0.0, 2.0, 0.0]);
    gateway.finish().await;
}

#[tokio::test]
async fn a_start_that_fails_opens_nothing_and_may_be_repeated() {
    let gateway = Setup::resources().start().await;
    gateway.post("/seed_session").json(&by_body("s")).fault("status=500").send().await.assert(500);
    assert_eq!(states(&gateway).await[1], 0.0);
    gateway.post("/seed_session").json(&by_body("s")).send().await.assert(200);
    assert_eq!(states(&gateway).await, [0.0, 1.0, 0.0]);
    gateway.finish().await;
}

#[tokio::test]
async fn an_idle_session_is_lost() {
    let gateway = Setup::resources().set("session_idle_timeout_seconds", 1).start().await;
    gateway.seed("s").await;
    admin::sessions_become(&gateway, "open", 0.0).await;
    gateway.post("/increment").session("s").send().await.assert_refused(410, "session_lost");
    gateway.finish().await;
}

#[tokio::test]
async fn a_request_in_flight_keeps_its_session_from_idling() {
    let gateway = Setup::resources().set("session_idle_timeout_seconds", 1).start().await;
    gateway.seed("busy").await;
    gateway.seed("idle").await;
    let held = gateway.post("/increment").session("busy").tag("held").fault("gate=go").spawn();
    gateway.workers.tagged("waiting", "held").await;
    admin::sessions_become(&gateway, "open", 1.0).await;
    gateway.post("/increment").session("idle").send().await.assert_refused(410, "session_lost");
    gateway.workers.open("go").await;
    held.await.unwrap().assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn more_routes_can_start_and_end_sessions() {
    let setup = Setup::resources().set("session_start_routes", json!(["/echo/begin"]));
    let gateway = setup.set("session_end_routes", json!(["/echo/end"])).start().await;
    gateway.post("/echo/begin").session("s").send().await.assert(200);
    assert_eq!(states(&gateway).await, [0.0, 1.0, 0.0]);
    gateway.post("/echo/end").session("s").send().await.assert(200);
    assert_eq!(states(&gateway).await, [0.0, 0.0, 1.0]);
    gateway.finish().await;
}

#[tokio::test]
async fn close_ends_without_a_fence() {
    let gateway = Setup::resources().start().await;
    gateway.seed("s").await;
    gateway.post("/close").session("s").send().await.assert(200);
    assert_eq!(states(&gateway).await, [0.0, 0.0, 1.0]);
    gateway.seed("s").await;
    assert_eq!(states(&gateway).await, [0.0, 1.0, 0.0]);
    gateway.finish().await;
}
