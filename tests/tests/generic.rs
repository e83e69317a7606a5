//! Kind generic: anything that speaks HTTP, its sessions named by a cookie of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Setup, admin};
use serde_json::json;

#[tokio::test]
async fn an_opaque_cookie_is_the_session() {
    let gateway = Setup::generic().set("session_cookie", "sid").start().await;
    let mut owners = Vec::new();
    for n in 0..4 {
        let fault = format!("no-cookie;header=Set-Cookie:sid=opaque-{n}%3D.x; Path=/");
        owners.push(gateway.post("/echo").fault(&fault).send().await.assert(200).slot());
    }
    assert_eq!(owners.iter().filter(|slot| **slot == 0).count(), 2, "{owners:?}");
    for _ in 0..2 {
        for (n, owner) in owners.iter().enumerate() {
            let answer =
                gateway.post("/echo").header("cookie", format!("a=b; sid=opaque-{n}%3D.x")).send().await;
            assert_eq!(answer.assert(200).slot(), *owner);
        }
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_starlette_cookie_is_known_by_its_decoded_id() {
    let gateway = Setup::generic().set("session_cookie", "Stub___stub").start().await;
    let mut owners = Vec::new();
    for _ in 0..4 {
        let answer = gateway.post("/increment").send().await.assert(200);
        owners.push((answer.session().unwrap(), answer.slot()));
    }
    for (id, owner) in owners {
        // Signed anew: other bytes, the same ID.
        let answer = gateway.post("/increment").session(&id).send().await.assert(200);
        assert_eq!((answer.slot(), &answer.json()["known"]), (owner, &json!(true)));
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_session_that_is_not_used_is_forgotten_after_the_idle_timeout() {
    let setup = Setup::generic().set("session_cookie", "sid").set("session_idle_timeout_seconds", 1);
    let gateway = setup.start().await;
    gateway.post("/echo").fault("no-cookie;header=Set-Cookie:sid=short; Path=/").send().await.assert(200);
    assert_eq!(admin::sessions(&gateway, "claimed").await, 1.0);
    admin::sessions_become(&gateway, "claimed", 0.0).await;
    gateway.post("/echo").header("cookie", "sid=short").fault("no-cookie").send().await.assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn without_a_session_cookie_there_are_no_sessions() {
    let gateway = Setup::generic().start().await;
    for _ in 0..3 {
        gateway.post("/increment").session("any").send().await.assert(200);
    }
    assert_eq!(admin::sessions(&gateway, "claimed").await, 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_cookie_that_never_comes_is_said_in_the_log() {
    let gateway = Setup::generic().set("session_cookie", "misnamed").start().await;
    for _ in 0..2 {
        gateway.post("/increment").send().await.assert(200);
    }
    let warning = |event: &serde_json::Value| event["cookie"] == "misnamed" && event["level"] == "WARN";
    assert!(gateway.log().event("the cookie's warning", warning).await.is_some());
    assert_eq!(gateway.log().events().into_iter().filter(warning).count(), 1);
    gateway.finish().await;
}

#[tokio::test]
async fn cookies_that_nobody_asked_about_are_said_in_the_log() {
    let warning = |event: &serde_json::Value| {
        event["level"] == "WARN" && event["message"].as_str().is_some_and(|text| text.contains("--describe"))
    };
    for (is_meant, warnings) in [(false, 1), (true, 0)] {
        let setup = Setup::generic();
        let setup = if is_meant { setup.set("routes_sessions_to_owner", false) } else { setup };
        let gateway = setup.start().await;
        for _ in 0..2 {
            gateway.post("/increment").send().await.assert(200);
        }
        if !is_meant {
            gateway.log().event("the warning", warning).await.expect("it is said");
        }
        assert_eq!(gateway.log().events().into_iter().filter(warning).count(), warnings);
        gateway.finish().await;
    }
}
