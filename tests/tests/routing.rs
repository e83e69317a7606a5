//! Every request of a session reaches the worker that owns it; the rest is balanced.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Gateway, Kind, Setup, admin};
use http::Method;
use serde_json::json;

/// The slot and the reply to one more increment.
async fn increment(gateway: &Gateway, id: &str) -> (u16, serde_json::Value) {
    let answer = gateway.post("/increment").session(id).json(&json!({})).send().await.assert(200);
    (answer.slot(), answer.json())
}

#[tokio::test]
async fn sessions_stay_with_their_owners_and_spread_evenly() {
    let gateway = Setup::resources().start().await;
    let mut owners = Vec::new();
    for n in 0..6 {
        owners.push(gateway.seed(&format!("s{n}")).await);
    }
    assert_eq!(owners.iter().filter(|slot| **slot == 0).count(), 3, "{owners:?}");
    for round in 1..=3 {
        for (n, owner) in owners.iter().enumerate() {
            let (slot, reply) = increment(&gateway, &format!("s{n}")).await;
            assert_eq!((slot, &reply["counter"], &reply["known"]), (*owner, &json!(round), &json!(true)));
        }
    }
    assert_eq!(admin::sessions(&gateway, "open").await, 6.0);
    gateway.finish().await;
}

#[tokio::test]
async fn first_requests_at_the_same_time_reach_one_worker() {
    let gateway = Setup::resources().start().await;
    let calls: Vec<_> =
        (0..8).map(|_| gateway.post("/increment").session("new").tag("t").fault("gate=go").spawn()).collect();
    gateway.workers.events_until("waiting", 8, |event| event["tag"] == "t").await;
    gateway.workers.open_wide("go").await;
    let mut slots = Vec::new();
    for call in calls {
        slots.push(call.await.unwrap().assert(200).slot());
    }
    assert!(slots.iter().all(|slot| *slot == slots[0]), "{slots:?}");
    gateway.finish().await;
}

#[tokio::test]
async fn a_request_without_a_session_takes_that_of_its_reply() {
    let gateway = Setup::resources().start().await;
    for _ in 0..4 {
        let first = gateway.post("/increment").json(&json!({})).send().await.assert(200);
        let id = first.session().expect("a session cookie");
        let (slot, reply) = increment(&gateway, &id).await;
        assert_eq!((slot, &reply["counter"]), (first.slot(), &json!(2)));
    }
    gateway.finish().await;
}

#[tokio::test]
async fn session_less_routes_go_to_a_living_owner_and_claim_nothing() {
    let gateway = Setup::resources().start().await;
    let [(first, slot), (second, other)] = gateway.seed_two().await;
    for (id, owner) in [(first, slot), (second, other)] {
        for _ in 0..3 {
            let answer = gateway.get("/docs").session(&id).send().await.assert(200);
            assert_eq!(answer.slot(), owner);
            assert_eq!(answer.session(), None, "its Set-Cookie is dropped");
        }
    }
    let before = admin::sessions(&gateway, "claimed").await;
    for call in [gateway.get("/healthz"), gateway.get("/docs").session("stranger")] {
        assert_eq!(call.send().await.assert(200).session(), None);
    }
    for method in [Method::GET, Method::POST] {
        let answer = gateway.call(method, "/missing").session("stranger").send().await.assert(404);
        assert_eq!(answer.session(), None, "whatever answers 404 is session-less");
    }
    assert_eq!(admin::sessions(&gateway, "claimed").await, before);
    gateway.finish().await;
}

#[tokio::test]
async fn a_claim_that_no_reply_used_is_withdrawn() {
    let gateway = Setup::resources().start().await;
    gateway.post("/increment").session("unused").fault("no-cookie").send().await.assert(200);
    assert_eq!(admin::sessions(&gateway, "claimed").await, 0.0);
    gateway.post("/increment").session("used").send().await.assert(200);
    assert_eq!(admin::sessions(&gateway, "claimed").await, 1.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_rollout_prefix_is_looked_past_and_passed_on() {
    let gateway = Setup::resources().start().await;
    let [(_, _), (id, owner)] = gateway.seed_two().await;
    for prefix in ["/ng-rollout/42", "/ng-rollout/42/training-token-capture"] {
        let target = format!("{prefix}/echo/a%20b?c=d&e");
        let answer = gateway.post(&target).session(&id).send().await.assert(200);
        assert_eq!((answer.slot(), answer.json()["target"].as_str()), (owner, Some(target.as_str())));
    }
    let body = json!({"resources_session_id": "by-body"});
    let seeded = gateway.post("/ng-rollout/7/seed_session").json(&body).send().await.assert(200);
    assert_eq!(seeded.session().as_deref(), Some("by-body"), "the prefix does not hide the seed");
    let closed = gateway.post("/ng-rollout/7/close_session").json(&body).send().await.assert(200);
    assert_eq!(closed.slot(), seeded.slot());
    gateway.finish().await;
}

#[tokio::test]
async fn a_kind_without_sessions_is_balanced_by_requests_in_flight() {
    let gateway = Setup::new(Kind::Model).start().await;
    let mut held = Vec::new();
    for n in 1..=6 {
        // A session's cookie means nothing here.
        held.push(gateway.post("/echo").session("same").tag("held").fault("gate=go").spawn());
        let waiting = gateway.workers.events_until("waiting", n, |event| event["tag"] == "held").await;
        let first = waiting.iter().filter(|event| event["slot"] == 0).count();
        assert!(first == n / 2 || first == n.div_ceil(2), "{first} of {n} at one of two workers");
    }
    gateway.workers.open_wide("go").await;
    for call in held {
        call.await.unwrap().assert(200);
    }
    assert_eq!(admin::sessions(&gateway, "claimed").await + admin::sessions(&gateway, "open").await, 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn routing_to_owners_can_be_switched_off() {
    let gateway = Setup::resources().set("routes_sessions_to_owner", false).start().await;
    let held = gateway.post("/increment").session("one").tag("held").fault("gate=go").spawn();
    let holder = gateway.workers.tagged("waiting", "held").await["slot"].clone();
    let answer = gateway.post("/increment").session("one").send().await.assert(200);
    assert_ne!(json!(answer.slot()), holder);
    gateway.workers.open("go").await;
    held.await.unwrap().assert(200);
    assert_eq!(admin::sessions(&gateway, "open").await, 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn an_agent_is_routed_by_its_own_session() {
    let gateway = Setup::new(Kind::Agent).start().await;
    let mut owners = Vec::new();
    for n in 0..4 {
        let body = json!({"agent_session_id": format!("a{n}")});
        let answer = gateway.post("/v1/agent_sessions").json(&body).send().await.assert(200);
        let cookie = answer.text("set-cookie").split(';').next().unwrap().to_owned();
        owners.push((answer.slot(), cookie, body));
    }
    assert_eq!(owners.iter().filter(|(slot, ..)| *slot == 0).count(), 2);
    for (slot, cookie, body) in &owners {
        let answer = gateway.post("/echo").header("cookie", cookie).send().await.assert(200);
        assert_eq!(answer.slot(), *slot);
        let closed = gateway.post("/v1/agent_sessions/close").json(body).send().await.assert(200);
        assert_eq!(closed.slot(), *slot);
        gateway.post("/v1/agent_sessions").json(body).send().await.assert_refused(409, "session_closed");
    }
    gateway.finish().await;
}

#[tokio::test]
async fn an_agents_cookie_without_an_agent_session_names_none() {
    let gateway = Setup::new(Kind::Agent).start().await;
    for _ in 0..3 {
        gateway.post("/echo").session("a-resources-session").send().await.assert(200);
    }
    for state in ["claimed", "open"] {
        assert_eq!(admin::sessions(&gateway, state).await, 0.0, "{state}");
    }
    gateway.finish().await;
}
