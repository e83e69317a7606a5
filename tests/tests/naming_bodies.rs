//! Seeds and closes name their session in the body: every shape that it may have.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Gateway, Setup, admin, admin::metric, cookie};
use serde_json::json;

async fn seed(gateway: &Gateway, body: impl Into<bytes::Bytes>) -> gym_gateway_tests::harness::Answer {
    gateway.post("/seed_session").header("content-type", "application/json").body(body).send().await
}

#[tokio::test]
async fn the_id_is_found_wherever_and_however_it_is_written() {
    let gateway = Setup::resources().start().await;
    let filler = "x".repeat(2_000_000);
    let long = "i".repeat(256);
    let cases = [
        (r#"{"resources_session_id": "plain"}"#.to_owned(), "plain"),
        (r#"{"resources\u005fsession_id": "escaped\u002dkey"}"#.to_owned(), "escaped-key"),
        (r#"{"resources_session_id": "a\/\"b\"é\u00e9"}"#.to_owned(), "a/\"b\"éé"),
        (r#"{"resources_session_id": "first", "resources_session_id": "last"}"#.to_owned(), "last"),
        (r#"{"resources_session_id": 7, "resources_session_id": "last-counts"}"#.to_owned(), "last-counts"),
        (
            format!(
                r#"{{"filler": "{filler}", "deep": {{"resources_session_id": "no"}}, "resources_session_id": "late"}}"#
            ),
            "late",
        ),
        (r#"{"resources_session_id": "nan", "x": NaN, "y": -Infinity}"#.to_owned(), "nan"),
        (" \n\t{\"resources_session_id\" : \"spaced\"}\n".to_owned(), "spaced"),
        (json!({"resources_session_id": long}).to_string(), long.as_str()),
    ];
    for (body, id) in &cases {
        let length = body.len();
        let answer = seed(&gateway, body.clone()).await.assert(200);
        assert_eq!(answer.json()["session"], *id, "the worker gets a cookie with that ID");
        assert_eq!(answer.session().as_deref(), Some(*id));
        let request = gateway.workers.event("request", |event| event["session"] == *id).await;
        assert_eq!(request["length"], length, "the whole body is forwarded");
        let next = gateway.post("/increment").session(id).send().await.assert(200);
        assert_eq!((next.slot(), &next.json()["known"]), (answer.slot(), &json!(true)));
    }
    assert_eq!(admin::sessions(&gateway, "open").await, 9.0);
    gateway.finish().await;
}

#[tokio::test]
async fn an_id_that_is_none_is_422() {
    let gateway = Setup::resources().start().await;
    let cases = [
        json!({"resources_session_id": null}),
        json!({"resources_session_id": ""}),
        json!({"resources_session_id": 7}),
        json!({"resources_session_id": true}),
        json!({"resources_session_id": ["a"]}),
        json!({"resources_session_id": {"id": "a"}}),
        json!({"resources_session_id": "i".repeat(257)}),
        json!({"resources_session_id": "é".repeat(129)}),
    ];
    for body in &cases {
        for target in ["/seed_session", "/close_session"] {
            let answer = gateway.post(target).json(body).send().await;
            answer.assert_refused(422, "invalid_session_id");
        }
    }
    let repeated = r#"{"resources_session_id": "good", "resources_session_id": ""}"#;
    seed(&gateway, repeated).await.assert_refused(422, "invalid_session_id");
    assert_eq!(gateway.workers.count_of("request", |_| true).len(), 0, "no worker saw any of them");
    assert_eq!(admin::metrics(&gateway).await.sum(metric::REFUSALS, &[("code", "invalid_session_id")]), 17.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_body_without_an_id_starts_a_session_with_a_minted_one() {
    let gateway = Setup::resources().start().await;
    let bodies: [&[u8]; 10] = [
        b"",
        b"not JSON",
        b"[]",
        b"\"resources_session_id\"",
        b"7",
        b"null",
        b"{}",
        br#"{"session": "x"}"#,
        br#"{"resources_session_id": "cut"#,
        b"\xff\xfe\x00",
    ];
    for body in bodies {
        let answer = seed(&gateway, body).await.assert(200);
        let id = answer.session().expect("a session");
        let version = uuid::Uuid::parse_str(&id).map(|id| id.get_version_num());
        assert_eq!(version, Ok(4), "{:?} minted {id}", String::from_utf8_lossy(body));
        let next = gateway.post("/increment").session(&id).send().await.assert(200);
        assert_eq!((next.slot(), &next.json()["known"]), (answer.slot(), &json!(true)));
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_start_whose_reply_sets_no_cookie_gets_one() {
    let gateway = Setup::resources().start().await;
    for (target, body) in [("/seed_session", json!({"resources_session_id": "s"})), ("/reset", json!({}))] {
        let answer = gateway.post(target).json(&body).fault("no-cookie").send().await.assert(200);
        let id = answer.session().expect("the gateway's cookie");
        let line = answer.text("set-cookie").to_ascii_lowercase();
        assert!(line.contains("; path=/") && line.contains("; samesite=lax"), "{line}");
        assert!(!line.contains("secure") && !line.contains("domain"), "{line}");
        let next = gateway.post("/increment").session(&id).send().await.assert(200);
        assert_eq!(next.slot(), answer.slot());
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_cookie_and_a_body_that_name_two_sessions_are_409() {
    let gateway = Setup::resources().start().await;
    for target in ["/seed_session", "/close_session"] {
        let call = gateway.post(target).session("a").json(&json!({"resources_session_id": "b"}));
        call.send().await.assert_refused(409, "session_mismatch");
        gateway
            .post(target)
            .session("same")
            .json(&json!({"resources_session_id": "same"}))
            .send()
            .await
            .assert(200);
    }
    // On other routes the body is the server's own business.
    gateway
        .post("/increment")
        .session("a")
        .json(&json!({"resources_session_id": "b"}))
        .send()
        .await
        .assert(200);
    gateway.finish().await;
}

#[tokio::test]
async fn a_forged_cookie_does_not_contradict_the_body() {
    let gateway = Setup::resources().start().await;
    let forged = cookie::value("another secret", "a");
    let body = json!({"resources_session_id": "b"});
    let answer = gateway.post("/seed_session").cookie_value(&forged).json(&body).send().await.assert(200);
    assert_eq!(answer.json()["session"], "b", "the minted cookie takes its place");
    gateway.finish().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_and_claims_nothing() {
    let gateway = Setup::resources().set("max_naming_body_bytes", 1000).start().await;
    let body = json!({"resources_session_id": "s", "filler": "x".repeat(2000)}).to_string();
    seed(&gateway, body.clone()).await.assert_refused(413, "body_too_large");
    let mut client = gateway.raw().await;
    client.send(gateway.post("/seed_session").header("transfer-encoding", "chunked").head_bytes()).await;
    client.send(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())).await;
    client.answer().await.assert_refused(413, "body_too_large");
    gateway.post("/increment").session("other").body(body).send().await.assert(200);
    assert_eq!(admin::sessions(&gateway, "open").await, 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_huge_body_is_refused_without_a_reset() {
    const LENGTH: usize = 100 << 20;
    let gateway = Setup::resources().set("restart_backoff_seconds", 0.05).start().await;
    let owner = gateway.seed("lost").await;
    let pid = gateway.workers.pid(owner);
    gym_gateway_tests::harness::processes::signal(pid, nix::sys::signal::Signal::SIGKILL);
    gym_gateway_tests::harness::processes::gone(pid).await;
    let cases =
        [("/increment", "lost", 410, "session_lost"), ("/seed_session", "new", 413, "body_too_large")];
    for (target, id, status, code) in cases {
        let mut client = gateway.raw().await;
        let call = gateway.post(target).session(id).header("content-length", LENGTH.to_string());
        client.send(call.head_bytes()).await;
        let chunk = vec![b'x'; 1 << 20];
        for sent in 0..LENGTH / chunk.len() {
            // It writes everything first and reads later; above a limit the gateway may close, but not reset.
            if let Err(error) = client.try_send(&chunk).await {
                panic!("{target}: the connection broke after {sent} MiB: {error}");
            }
        }
        client.answer().await.assert_refused(status, code);
    }
    let seen = gateway.workers.count_of("request", |event| event["length"].as_u64() > Some(1000));
    assert_eq!(seen, Vec::<serde_json::Value>::new());
    gateway.finish().await;
}

#[tokio::test]
async fn a_gateway_that_holds_too_much_says_so() {
    let setup = Setup::resources().gateway("max_buffered_bytes", 100_000).gateway("threads", 1);
    let gateway = setup.start().await;
    let body = |length| json!({"resources_session_id": "s", "filler": "x".repeat(length)}).to_string();
    // More than there can ever be is not worth another try.
    seed(&gateway, body(300_000)).await.assert_refused(413, "body_too_large");
    let mut slow = gateway.raw().await;
    let whole = body(80_000);
    slow.send(gateway.post("/seed_session").body(whole.clone()).head_bytes()).await;
    slow.send(&whole[..60_000]).await;
    let held = |m: &admin::Metrics| m.sum("gym_gateway_buffered_bytes", &[]) >= 50_000.0;
    admin::metrics_until(&gateway, "the half body is held", held).await;
    let answer = seed(&gateway, body(60_000)).await;
    answer.assert_refused(503, "at_capacity");
    assert_ne!(answer.text("retry-after"), "");
    slow.send(&whole[60_000..]).await;
    assert_eq!(slow.answer().await.status, 200);
    seed(&gateway, r#"{"resources_session_id": "s"}"#).await.assert(200);
    assert_eq!(admin::sessions(&gateway, "open").await, 1.0);
    gateway.finish().await;
}

#[tokio::test]
async fn where_the_secret_is_unknown_the_cookies_id_is_an_alias_of_the_bodys() {
    let gateway = Setup::resources().stub("--secret nobody-knows").start().await;
    for n in 0..4 {
        let body = json!({"resources_session_id": format!("s{n}")});
        let seeded = gateway.post("/seed_session").json(&body).send().await.assert(200);
        assert_ne!(seeded.json()["session"], format!("s{n}"), "nothing is minted");
        let cookie = seeded.text("set-cookie").split(';').next().unwrap().to_owned();
        let by_cookie = || gateway.post("/increment").header("cookie", &cookie);
        let answer = by_cookie().send().await.assert(200);
        assert_eq!((answer.slot(), &answer.json()["known"]), (seeded.slot(), &json!(true)));
        let both = gateway.post("/close_session").header("cookie", &cookie).json(&body);
        assert_eq!(both.send().await.assert(200).slot(), seeded.slot(), "two names of one session");
        gateway.post("/seed_session").json(&body).send().await.assert_refused(409, "session_closed");
        gateway
            .post("/seed_session")
            .header("cookie", &cookie)
            .send()
            .await
            .assert_refused(409, "session_closed");
    }
    gateway.finish().await;
}
