use bytes::Bytes;
use http::HeaderMap;

use super::*;

const COOKIE: &str = "Counter___counter";
const ATTRIBUTES: &str = "path=/; Max-Age=1209600; httponly; samesite=lax";
const ID: &str = "0b0f4ad7-6e43-4b0c-9d2e-0d1f0a3c5b7e";
const OTHER_ID: &str = "7e3cf0a9-51dd-4c52-8a7b-6a2f84d1c3e0";

fn want(body: Value) -> Reply {
    let cookie = json!({"name": COOKIE, "signed": true, "payload": {"session_id": "{{session:1}}"}, "attributes": ATTRIBUTES});
    let headers = json!({"content-type": "application/json", "allow": "GET, POST"});
    let reply = json!({"status": 200, "headers": headers, "cookie": cookie, "json": body});
    serde_json::from_value(reply).expect("a reply")
}

fn got(id: &str, body: Value) -> Answer {
    let mut headers = HeaderMap::new();
    let cookie = format!("{COOKIE}={}; {ATTRIBUTES}", cookie::value(COOKIE, id));
    let more = [("date", "today"), ("content-type", "application/json"), ("allow", "POST,GET")];
    for (name, value) in more.into_iter().chain([("set-cookie", cookie.as_str())]) {
        headers.insert(name, value.parse().expect("a value"));
    }
    Answer { status: 200, headers, body: Bytes::from(body.to_string()), trailers: None }
}

fn differences(want: &Reply, got: &Answer, names: &mut Names) -> Vec<String> {
    reply(want, got, COOKIE, names).into_iter().map(|found| found.what).collect()
}

fn whats(change: impl FnOnce(&mut Answer)) -> Vec<String> {
    let mut got = got(ID, json!({"count": 1, "id": ID}));
    change(&mut got);
    differences(&want(json!({"count": 1, "id": "{{session:1}}"})), &got, &mut Names::default())
}

#[test]
fn a_reply_as_recorded_has_no_difference() {
    assert_eq!(whats(|_| {}), [""; 0]);
}

#[test]
fn every_part_that_is_not_as_recorded_is_named() {
    assert_eq!(whats(|got| got.status = 201), ["status"]);
    let header = |name: &'static str, value: &'static str| {
        move |got: &mut Answer| drop(got.headers.insert(name, value.parse().expect("a value")))
    };
    assert_eq!(whats(header("content-type", "text/plain")), ["header content-type"]);
    assert_eq!(whats(header("vary", "Cookie")), ["header vary"]);
    assert_eq!(whats(|got| drop(got.headers.remove("allow"))), ["header allow"]);
    assert_eq!(whats(|got| drop(got.headers.remove("set-cookie"))), ["cookie"]);
    assert_eq!(whats(header("set-cookie", "other=1; path=/")), ["cookie"]);
    let with = |secret: &str, at, attributes: &str| {
        let value = cookie::sign(secret, &json!({"session_id": ID}).to_string(), at);
        let line = format!("{COOKIE}={value}; {attributes}");
        move |got: &mut Answer| drop(got.headers.insert("set-cookie", line.parse().expect("a value")))
    };
    let now = cookie::unix();
    assert_eq!(whats(with(COOKIE, now, "path=/")), ["cookie attributes"]);
    assert_eq!(whats(with("another", now, ATTRIBUTES)), ["cookie signature"]);
    assert_eq!(whats(with(COOKIE, now - 60, ATTRIBUTES)), ["cookie signature"]);
    assert_eq!(whats(|got| got.body = "no JSON".into()), ["body"]);
    let body = |body: Value| move |got: &mut Answer| got.body = Bytes::from(body.to_string());
    assert_eq!(whats(body(json!({"count": 1.0, "id": ID}))), ["body/count"]);
    assert_eq!(whats(body(json!({"id": ID}))), ["body/count"]);
    assert_eq!(whats(body(json!({"count": 1, "id": ID, "more": null}))), ["body/more"]);
    assert_eq!(whats(body(json!({"count": 1, "id": OTHER_ID}))), ["body/id"]);
}

#[test]
fn a_placeholder_stands_for_one_value_through_a_scenario() {
    let mut names = Names::default();
    let body = || json!({});
    assert_eq!(differences(&want(body()), &got(ID, body()), &mut names), [""; 0]);
    assert_eq!(differences(&want(body()), &got(ID, body()), &mut names), [""; 0]);
    let other = differences(&want(body()), &got(OTHER_ID, body()), &mut names);
    assert_eq!(other, ["cookie payload/session_id"]);
    let second = want(json!({"id": "{{session:2}}"}));
    assert_eq!(differences(&second, &got(ID, json!({"id": ID})), &mut names), ["body/id"]);
    assert_eq!(differences(&second, &got(ID, json!({"id": "no UUID"})), &mut names), ["body/id"]);
    assert_eq!(differences(&second, &got(ID, json!({"id": OTHER_ID})), &mut names), [""; 0]);
}

#[test]
fn a_token_must_name_what_was_recorded() {
    let reply = |sid: &str, tools| {
        let mut want = want(json!({"token": "{{token:1}}"}));
        want.tokens.insert("{{token:1}}".into(), json!({"sid": "{{session:1}}", "tools": null}));
        let token = cookie::token(COOKIE, sid, tools);
        differences(&want, &got(ID, json!({"token": token})), &mut Names::default())
    };
    assert_eq!(reply(ID, None), [""; 0]);
    assert_eq!(reply(OTHER_ID, None), ["token {{token:1}}/sid"]);
    assert_eq!(reply(ID, Some(vec!["a".into()])), ["token {{token:1}}/tools"]);
}
