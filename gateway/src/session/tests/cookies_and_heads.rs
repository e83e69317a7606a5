//! What is learned from probes, what workers get, and what is done to replies.

use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{COOKIE as COOKIE_HEADER, SET_COOKIE},
};

use super::super::{Counts, HeadEffects, Learned, Named, Rule, Says, SessionFilter, SessionId, SessionTable};
use super::{COOKIE, UNIX, config, headers, id, signed, value};
use crate::config::{Kind, ServerConfig};

fn unnamed(kind: Kind) -> ServerConfig {
    let mut config = config(kind);
    config.settings.session_cookie = None;
    config
}

fn seed(rule: &Rule, headers: &HeaderMap, body: &str) -> Named {
    rule.name(rule.route(&Method::POST, "/seed_session"), headers, None, Some(body.as_bytes()), UNIX).unwrap()
}

fn probe(cookies: &[(&str, &str)]) -> HeaderMap {
    let lines: Vec<_> =
        cookies.iter().map(|(name, value)| format!("{name}={value}; path=/; httponly")).collect();
    headers(lines.iter().map(|line| ("set-cookie", line.as_str())))
}

#[test]
fn the_cookies_name_is_learned_from_a_probe() {
    let json = r#"{"session_id": "p"}"#;
    let own = value("p");
    let other = signed("Other___other", json);
    let plain = signed("secret", json);
    type Row<'a> = (&'a [(&'a str, &'a str)], Learned, Option<&'a str>);
    let rows: &[Row<'_>] = &[
        (&[], Learned::Nothing, None),
        (&[("theme", "dark")], Learned::Nothing, None),
        (&[(COOKIE, &own)], Learned::Cookie, Some(COOKIE)),
        (&[("theme", "dark"), ("Other___other", &other), (COOKIE, &own)], Learned::Cookie, Some(COOKIE)),
        (&[("theme", "dark"), ("Other___other", &other)], Learned::Cookie, Some("Other___other")),
        (&[("theme", "dark"), ("session", &plain)], Learned::CookieOfUnknownSecret, Some("session")),
        (&[(COOKIE, &plain)], Learned::CookieOfUnknownSecret, Some(COOKIE)),
    ];
    for (cookies, learned, name) in rows {
        let rule = Rule::new(&unnamed(Kind::Resources));
        assert_eq!(rule.learn(&probe(cookies), UNIX), *learned, "{cookies:?}");
        assert_eq!(rule.cookie_name().as_deref(), *name, "{cookies:?}");
    }
}

#[test]
fn a_name_can_be_read_again_once_the_cookie_is_learned() {
    let rule = Rule::new(&unnamed(Kind::Resources));
    let request = headers([("cookie", format!("{COOKIE}={}", value("a")).as_str())]);
    let before = seed(&rule, &request, "{}");
    assert!(before.session.is_none() && !before.is_minted());
    assert_eq!(rule.learn(&probe(&[(COOKIE, &value("p"))]), UNIX), Learned::Cookie);
    assert_eq!(seed(&rule, &request, "{}").session, Some(id("a")));
    // A later generation's probe, with or without a cookie, changes nothing.
    assert_eq!(rule.learn(&probe(&[]), UNIX), Learned::Nothing);
    assert_eq!(rule.learn(&probe(&[(COOKIE, &value("q"))]), UNIX), Learned::Cookie);
    assert_eq!(rule.cookie_name().as_deref(), Some(COOKIE));
}

#[test]
fn a_configured_name_and_secret_go_first() {
    let mut config = config(Kind::Resources);
    config.settings.session_cookie = Some("session".into());
    config.settings.session_secret = Some("secret".into());
    let rule = Rule::new(&config);
    let good = signed("secret", r#"{"session_id": "p"}"#);
    let request = headers([("cookie", format!("session={good}").as_str())]);
    assert_eq!(seed(&rule, &request, "{}").session, Some(id("p")), "before any probe");
    assert_eq!(rule.learn(&probe(&[(COOKIE, &value("p"))]), UNIX), Learned::Nothing, "another name");
    assert_eq!(rule.learn(&probe(&[("session", &good)]), UNIX), Learned::Cookie);
    assert_eq!(rule.learn(&probe(&[("session", &value("p"))]), UNIX), Learned::CookieOfUnknownSecret);
}

#[test]
fn an_unknown_secret_reads_without_a_check_and_mints_nothing() {
    let rule = Rule::new(&unnamed(Kind::Resources));
    let theirs = signed("unknown", r#"{"session_id": "t"}"#);
    rule.learn(&probe(&[(COOKIE, &theirs)]), UNIX);
    let request = headers([("cookie", format!("{COOKIE}={theirs}").as_str())]);
    assert_eq!(seed(&rule, &request, "{}").session, Some(id("t")));
    let named = seed(&rule, &HeaderMap::new(), r#"{"resources_session_id": "a"}"#);
    assert!(named.session == Some(id("a")) && !named.is_minted());
    assert_eq!(seed(&rule, &HeaderMap::new(), "{}").session, None);
    let mut sent = HeaderMap::new();
    rule.prepare(&named, &mut sent, UNIX);
    assert!(sent.is_empty());
}

#[test]
fn the_worker_gets_the_minted_cookie_in_place_of_a_bad_one() {
    let rule = Rule::new(&config(Kind::Resources));
    let bad = headers([("cookie", format!("a=1; {COOKIE}=bad; b=2").as_str())]);
    for body in [r#"{"resources_session_id": "a\"é"}"#, "{}"] {
        let named = seed(&rule, &bad, body);
        let mut sent = bad.clone();
        rule.prepare(&named, &mut sent, UNIX);
        let line = sent[COOKIE_HEADER].to_str().unwrap();
        assert!(line.starts_with(&format!("a=1; b=2; {COOKIE}=")), "{line}");
        // What the worker reads from it is the ID that the table knows.
        assert_eq!(seed(&rule, &sent, "").session, named.session);
    }
    let good = headers([("cookie", format!("{COOKIE}={}; a=1", value("a")).as_str())]);
    let mut sent = good.clone();
    rule.prepare(&seed(&rule, &good, r#"{"resources_session_id": "a"}"#), &mut sent, UNIX);
    assert_eq!(sent, good, "passed as it came");
}

#[test]
fn reads_replies() {
    let rule = Rule::new(&config(Kind::Resources));
    let route = rule.route(&Method::POST, "/verify");
    let read = |lines: &[(&'static str, &str)]| {
        rule.read_reply(route, StatusCode::OK, &headers(lines.iter().copied()), || UNIX)
    };
    let set = format!("{COOKIE}={}; path=/", signed("not checked", r#"{"session_id": "t"}"#));
    let reply = read(&[("set-cookie", "a=1"), ("set-cookie", &set), ("x-gym-session", "open")]);
    assert_eq!((reply.cookie, reply.sets_cookie, reply.says), (Some(id("t")), true, Some(Says::Open)));
    let reply = read(&[("set-cookie", &format!("{COOKIE}=junk")), ("x-gym-session", "ended")]);
    assert_eq!((reply.cookie, reply.sets_cookie, reply.says), (None, true, Some(Says::Ended)));
    let reply = read(&[("set-cookie", "a=1"), ("x-gym-session", "maybe")]);
    assert_eq!((reply.cookie, reply.sets_cookie, reply.says), (None, false, None));
}

#[test]
fn x_gym_session_is_read_whatever_its_spelling_and_lines() {
    let rule = Rule::new(&config(Kind::Resources));
    let route = rule.route(&Method::POST, "/verify");
    for (lines, says) in [
        (&["open"][..], Some(Says::Open)),
        (&[" Open "], Some(Says::Open)),
        (&["ENDED"], Some(Says::Ended)),
        (&["open", "ended"], Some(Says::Ended)),
        (&["ended", "open"], Some(Says::Ended)),
        (&["open, ended"], Some(Says::Ended)),
        (&["maybe", "open"], Some(Says::Open)),
        (&["opened", ""], None),
    ] {
        let mut head = headers(lines.iter().map(|line| ("x-gym-session", *line)));
        assert_eq!(rule.read_reply(route, StatusCode::OK, &head, || UNIX).says, says, "{lines:?}");
        rule.apply(&HeadEffects::default(), &mut head, || UNIX);
        assert!(head.is_empty(), "{head:?}");
    }
}

#[test]
fn the_first_reply_with_a_cookie_of_its_name_teaches_where_no_probe_did() {
    let mut config = config(Kind::Resources);
    config.settings.session_cookie = None;
    let rule = Rule::new(&config);
    let route = rule.route(&Method::POST, "/seed_session");
    let other = format!("Agent___other={}", value("o"));
    assert_eq!(
        rule.read_reply(route, StatusCode::OK, &headers([("set-cookie", other.as_str())]), || UNIX).cookie,
        None
    );
    assert_eq!(rule.cookie_name(), None);
    let own = format!("{COOKIE}={}", value("a"));
    let head = headers([("set-cookie", other.as_str()), ("set-cookie", own.as_str())]);
    assert_eq!(rule.read_reply(route, StatusCode::OK, &head, || UNIX).cookie, Some(id("a")));
    assert_eq!(rule.cookie_name().as_deref(), Some(COOKIE));
}

#[test]
fn carries_out_effects() {
    let rule = Rule::new(&config(Kind::Resources));
    let theirs = format!("{COOKIE}={}", value("t"));
    let before = || {
        headers([
            ("set-cookie", theirs.as_str()),
            ("set-cookie", "a=1"),
            ("x-gym-session", "open"),
            ("x", "y"),
        ])
    };

    let mut head = before();
    rule.apply(&HeadEffects::default(), &mut head, || UNIX);
    let mut expected = before();
    expected.remove("x-gym-session");
    assert_eq!(head, expected);

    let mut head = before();
    rule.apply(&HeadEffects { drop_cookie: true, add_cookie: None, clashes: false }, &mut head, || UNIX);
    assert_eq!(head.get_all(SET_COOKIE).iter().collect::<Vec<_>>(), ["a=1"]);

    let mut head = HeaderMap::new();
    rule.apply(
        &HeadEffects { drop_cookie: false, add_cookie: Some(id("a")), clashes: false },
        &mut head,
        || UNIX,
    );
    assert_eq!(
        rule.read_reply(rule.route(&Method::GET, "/x"), StatusCode::OK, &head, || UNIX).cookie,
        Some(id("a"))
    );
    assert!(head[SET_COOKIE].to_str().unwrap().ends_with("; SameSite=Lax; Path=/"));
}

#[test]
fn a_switched_off_server_leaves_heads_alone_but_for_what_is_the_gateways() {
    let mut config = config(Kind::Resources);
    config.settings.routes_sessions_to_owner = false;
    let rule = Rule::new(&config);
    assert_eq!(rule.learn(&probe(&[(COOKIE, &value("p"))]), UNIX), Learned::Nothing);
    let mut head = HeaderMap::new();
    head.insert("x", HeaderValue::from_static("y"));
    let before = head.clone();
    head.insert("x-gym-session", HeaderValue::from_static("open"));
    rule.apply(
        &HeadEffects { drop_cookie: true, add_cookie: Some(id("a")), clashes: false },
        &mut head,
        || UNIX,
    );
    assert_eq!(head, before);
}

#[test]
fn an_id_is_expected_before_it_is_checked_and_named_only_after() {
    let rule = Rule::new(&config(Kind::Resources));
    let named = |cookie: &str, path: &str, body: Option<&str>| {
        let request = headers([("cookie", format!("{COOKIE}={cookie}").as_str())]);
        let heard = std::cell::RefCell::new(Vec::new());
        let expect = |id: &SessionId| heard.borrow_mut().push(id.to_string());
        let route = rule.route(&Method::POST, path);
        let body = body.map(str::as_bytes);
        let named = rule.name_expecting(route, &request, None, body, UNIX, expect).unwrap();
        let plain = rule.name(route, &request, None, body, UNIX).unwrap();
        assert_eq!(named.session, plain.session, "{cookie}");
        (named.session.map(|id| id.to_string()), heard.into_inner())
    };
    let some = |text: &str| Some(text.to_owned());
    let forged = signed("another secret", r#"{"session_id": "a"}"#);
    assert_eq!(named(&value("a"), "/step", None), (some("a"), vec!["a".into()]));
    assert_eq!(named(&forged, "/step", None), (None, vec!["a".into()]));
    assert_eq!(named("a.b.c", "/step", None), (None, vec![]));
    assert_eq!(named(&signed(COOKIE, "{}"), "/step", None), (None, vec![]));
    let body = r#"{"resources_session_id": "b"}"#;
    assert_eq!(named(&value("a"), "/close_session", Some(body)), (some("b"), vec!["b".into(), "a".into()]));
}

#[test]
fn to_expect_a_session_changes_nothing() {
    let table = SessionTable::new(&config(Kind::Resources));
    for n in 0..1000 {
        table.expect(&id(&n.to_string()));
    }
    assert_eq!(table.counts(), Counts::default());
    assert!(table.list(1, &SessionFilter::default(), 0).is_empty());
}
