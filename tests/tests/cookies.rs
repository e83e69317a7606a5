//! Session cookies as clients send them, good and bad: a bad one names no session, as Starlette has it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{
    Call, Gateway, Setup, admin,
    cookie::{sign, unix, value},
    setup::COOKIE,
};
use serde_json::json;

/// Sends one more increment with these `Cookie` lines: the slot, and whether the worker knew the session.
async fn increment(gateway: &Gateway, lines: &[String]) -> (u16, bool) {
    let with = |call: Call, line: &String| call.header("cookie", line);
    let answer = lines.iter().fold(gateway.post("/increment"), with).send().await.assert(200);
    (answer.slot(), answer.json()["known"] == true)
}

#[tokio::test]
async fn the_cookie_is_found_by_name_wherever_it_stands() {
    let gateway = Setup::resources().start().await;
    for (id, owner) in gateway.seed_two().await {
        let mine = value(COOKIE, &id);
        let other = format!("SimpleAgent___agent={}", value("SimpleAgent___agent", "other"));
        let stranger = value(COOKIE, "stranger");
        let old = sign(COOKIE, &json!({"session_id": id}).to_string(), unix() - 13 * 86_400);
        let more = sign(COOKIE, &json!({"cart": [1], "session_id": id, "x": null}).to_string(), unix());
        let cases: [&[String]; 9] = [
            &[format!("{COOKIE}={mine}")],
            &[format!("{other}; {COOKIE}={mine}")],
            &[format!("{COOKIE}={mine}; {other}; a=b")],
            &[other.clone(), format!("{COOKIE}={mine}"), "a=b".into()],
            &[format!("{COOKIE}=\"{mine}\"")],
            &[format!("{COOKIE}={stranger}; {COOKIE}={mine}")],
            &[format!("{COOKIE}={stranger}"), format!("{COOKIE}={mine}")],
            &[format!("{COOKIE}={old}")],
            &[format!("  {COOKIE} = {more} ;;")],
        ];
        for lines in cases {
            assert_eq!(increment(&gateway, lines).await, (owner, true), "{lines:?}");
        }
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_bad_cookie_names_no_session() {
    let gateway = Setup::resources().start().await;
    gateway.seed("s").await;
    let payload = json!({"session_id": "s"}).to_string();
    let good = value(COOKIE, "s");
    let bad = [
        value("another secret", "s"),
        sign(COOKIE, &payload, unix() - 15 * 86_400),
        sign(COOKIE, &payload, unix() + 3600),
        good[..good.len() - 1].to_owned(),
        good[1..].to_owned(),
        good.rsplit_once('.').unwrap().0.to_owned(),
        good.replacen('.', "", 1),
        String::new(),
        "...".into(),
        "\"".into(),
        "x".repeat(8000),
        sign(COOKIE, "not JSON", unix()),
        sign(COOKIE, "[\"session_id\"]", unix()),
        sign(COOKIE, "{\"session\": \"s\"}", unix()),
    ];
    for cookie in bad {
        let (_, known) = increment(&gateway, &[format!("{COOKIE}={cookie}")]).await;
        assert!(!known, "{cookie}");
    }
    // The last duplicate counts, bad as it is.
    let doubled = [format!("{COOKIE}={good}; {COOKIE}={good}x")];
    assert!(!increment(&gateway, &doubled).await.1);
    let bytes = [b"a=\xff\xfe; ".to_vec(), format!("{COOKIE}={good}").into_bytes()].concat();
    gateway.post("/increment").header("cookie", bytes).send().await.assert(200);
    assert_eq!(admin::sessions(&gateway, "open").await, 1.0, "the good session is untouched");
    gateway.finish().await;
}

#[tokio::test]
async fn a_session_id_of_the_wrong_type_or_size_claims_nothing() {
    let gateway = Setup::resources().start().await;
    let payloads = [
        json!({"session_id": 7}),
        json!({"session_id": null}),
        json!({"session_id": ""}),
        json!({"session_id": "i".repeat(300)}),
    ];
    for payload in payloads {
        let cookie = sign(COOKIE, &payload.to_string(), unix());
        let answer = gateway.post("/increment").cookie_value(&cookie).fault("no-cookie").send().await;
        assert!(matches!(answer.status, 200 | 422), "{payload}: {}", answer.status);
    }
    assert_eq!(admin::sessions(&gateway, "claimed").await, 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn cookies_reach_worker_and_client_as_they_were() {
    let gateway = Setup::resources().start().await;
    let line = format!("a=1; {COOKIE}=\"{}\"; b=\"2;3\"", value(COOKIE, "s"));
    let answer = gateway.post("/echo").header("cookie", &line).send().await.assert(200);
    let json = answer.json();
    let got = json["headers"].as_array().unwrap().iter().find(|pair| pair[0] == "cookie").unwrap();
    assert_eq!(got[1], line);
    assert!(answer.text("set-cookie").ends_with("; path=/; Max-Age=1209600; httponly; samesite=lax"));
    gateway.finish().await;
}

#[tokio::test]
async fn a_cookie_name_can_be_configured() {
    let setup = Setup::resources().set("session_cookie", COOKIE).stub("--behave no-probe-cookie");
    let gateway = setup.start().await;
    for (id, owner) in gateway.seed_two().await {
        assert_eq!(increment(&gateway, &[format!("{COOKIE}={}", value(COOKIE, &id))]).await, (owner, true));
    }
    gateway.finish().await;
}
