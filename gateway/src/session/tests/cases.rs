//! The rule as a table: what a request is, by kind.

use http::{HeaderMap, Method};

use super::super::{By, Named, Refusal, RouteClass, Rule};
use super::{COOKIE, UNIX, config, headers, signed, token, value};
use crate::config::Kind::{self, Agent, Environment, Generic, Model, Resources};

/// What a request names.
#[derive(Debug, PartialEq)]
enum Names {
    /// None, and its reply may give it one.
    None,
    /// None, nor will its reply.
    Nothing,
    /// This one, by the client.
    Session(&'static str),
    /// This one; the worker gets a cookie for it.
    Minted(&'static str),
    /// A new one, minted.
    New,
    /// The body's, beside a cookie with another.
    Both {
        body: &'static str,
        cookie: &'static str,
    },
    Invalid,
}

use Names::{Both, Invalid, Minted, New, Nothing, Session};

type Row = (Kind, &'static str, HeaderMap, &'static str, RouteClass, Names);

fn with_cookie(value: &str) -> HeaderMap {
    headers([("cookie", format!("{COOKIE}={value}").as_str())])
}

fn with_token(token: &str) -> HeaderMap {
    headers([("x-nemo-gym-session-token", token)])
}

fn both(cookie: &str, token: &str) -> HeaderMap {
    let mut both = with_cookie(cookie);
    both.extend(with_token(token));
    both
}

fn judge(rule: &Rule, request: &str, headers: &HeaderMap, body: &str) -> (RouteClass, Names) {
    let (method, target) = request.split_once(' ').unwrap();
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let route = rule.route(&method.parse::<Method>().unwrap(), path);
    let body = rule.reads_body(route).then_some(body.as_bytes());
    let names = match rule.name(route, headers, query, body, UNIX) {
        Err(Refusal::InvalidSessionId(_)) => Invalid,
        Err(other) => panic!("{other:?}"),
        Ok(named) => names(&named),
    };
    (route.class, names)
}

fn names(named: &Named) -> Names {
    let leak = |id: &super::super::SessionId| &*Box::leak(id.as_str().to_owned().into_boxed_str());
    match (&named.session, &named.cookie, named.is_minted()) {
        (None, None, false) if named.adopts => {
            assert_eq!(named.by, By::Sessions);
            Names::None
        }
        (None, None, false) => {
            assert_eq!(named.by, By::InFlight);
            Nothing
        }
        (Some(session), None, false) => Session(leak(session)),
        (Some(session), None, true) if named.by_body => Minted(leak(session)),
        (Some(session), None, true) => {
            uuid::Uuid::parse_str(session.as_str()).unwrap();
            New
        }
        (Some(body), Some(cookie), false) => Both { body: leak(body), cookie: leak(cookie) },
        other => panic!("{other:?}"),
    }
}

fn check(rule: impl Fn(Kind) -> Rule, rows: Vec<Row>) {
    for (kind, request, headers, body, class, expected) in rows {
        let found = judge(&rule(kind), request, &headers, body);
        assert_eq!(found, (class, expected), "{kind:?} {request} {headers:?} {body}");
    }
}

/// The rule of a server whose cookie is known.
fn known(kind: Kind) -> Rule {
    Rule::new(&config(kind))
}

#[test]
fn resources_by_cookie() {
    use RouteClass::*;
    let none = HeaderMap::new;
    let a = || with_cookie(&value("a"));
    let odd = signed(COOKIE, r#"{"session_id": 1}"#);
    let other_key = signed(COOKIE, r#"{"agent_session_id": "a"}"#);
    let not_json = signed(COOKIE, "session_id");
    let forged = signed("other", r#"{"session_id": "a"}"#);
    let cut = value("a")[..30].to_owned();
    check(
        known,
        vec![
            (Resources, "POST /tool", a(), "", Other, Session("a")),
            (Resources, "GET /tool?session_id=b", a(), "", Other, Session("a")),
            (Resources, "DELETE /x/y", a(), "", Other, Session("a")),
            (Resources, "POST /step", a(), "", Step, Session("a")),
            (Resources, "POST /verify", a(), "", Verify, Session("a")),
            (Resources, "POST /close", a(), "", Close, Session("a")),
            (Resources, "POST /tool", none(), "", Other, Names::None),
            (Resources, "POST /verify", none(), "", Verify, Names::None),
            (Resources, "POST /tool", with_cookie(&forged), "", Other, Names::None),
            (Resources, "POST /tool", with_cookie(&cut), "", Other, Names::None),
            (Resources, "POST /tool", with_cookie(&odd), "", Other, Names::None),
            (Resources, "POST /tool", with_cookie(&other_key), "", Other, Names::None),
            (Resources, "POST /tool", with_cookie(&not_json), "", Other, Names::None),
            (Resources, "POST /tool", with_cookie(""), "", Other, Names::None),
            (Resources, "POST /tool", with_cookie(&value("")), "", Other, Names::None),
            (Resources, "POST /tool", with_cookie(&value(&"x".repeat(257))), "", Other, Names::None),
            (Resources, "POST /tool", with_cookie(&format!("\"{}\"", value("a"))), "", Other, Session("a")),
            // An agent's cookie beside it, in any order, and duplicates: the last counts.
            (
                Resources,
                "POST /verify",
                headers([
                    (
                        "cookie",
                        format!("SimpleAgent___agent={}; {COOKIE}={}; x=1", value("b"), value("a")).as_str(),
                    ),
                    ("cookie", format!("SimpleAgent___agent={}", value("c")).as_str()),
                ]),
                "",
                Verify,
                Session("a"),
            ),
            (
                Resources,
                "POST /tool",
                headers([("cookie", format!("{COOKIE}={}; {COOKIE}={}", value("b"), value("a")).as_str())]),
                "",
                Other,
                Session("a"),
            ),
            (
                Resources,
                "POST /tool",
                headers([("cookie", format!("{COOKIE}={}; {COOKIE}={forged}", value("b")).as_str())]),
                "",
                Other,
                Names::None,
            ),
            // Prefixes of rollouts.
            (Resources, "POST /ng-rollout/3-1/verify", a(), "", Verify, Session("a")),
            (Resources, "POST /ng-rollout/3/training-token-capture/step", a(), "", Step, Session("a")),
            (Resources, "GET /ng-rollout/3/healthz", a(), "", SessionLess, Session("a")),
        ],
    );
}

#[test]
fn a_cookie_is_valid_for_14_days() {
    let rule = known(Resources);
    let route = rule.route(&Method::POST, "/tool");
    let names =
        |unix| rule.name(route, &with_cookie(&value("a")), None, None, unix).unwrap().session.is_some();
    assert!(names(UNIX) && names(UNIX + 14 * 86_400));
    assert!(!names(UNIX + 14 * 86_400 + 1) && !names(UNIX - 1));
}

#[test]
fn resources_seed_close_and_start() {
    use RouteClass::*;
    let none = HeaderMap::new;
    let body_a = r#"{"resources_session_id": "a", "x": NaN}"#;
    check(
        known,
        vec![
            (Resources, "POST /seed_session", none(), body_a, Seed, Minted("a")),
            (Resources, "POST /close_session", none(), body_a, CloseSession, Minted("a")),
            (Resources, "POST /ng-rollout/1/seed_session", none(), body_a, Seed, Minted("a")),
            (Resources, "POST /seed_session", with_cookie("bad"), body_a, Seed, Minted("a")),
            // The same ID in the cookie: passed as it came.
            (Resources, "POST /seed_session", with_cookie(&value("a")), body_a, Seed, Session("a")),
            (
                Resources,
                "POST /close_session",
                with_cookie(&value("b")),
                body_a,
                CloseSession,
                Both { body: "a", cookie: "b" },
            ),
            // Legacy: no ID in the body.
            (Resources, "POST /seed_session", none(), "{}", Seed, New),
            (Resources, "POST /seed_session", none(), "", Seed, New),
            (Resources, "POST /seed_session", none(), "not JSON", Seed, New),
            (Resources, "POST /seed_session", with_cookie(&value("b")), "{}", Seed, Session("b")),
            (Resources, "POST /close_session", none(), "{}", CloseSession, Names::None),
            (Resources, "POST /close_session", with_cookie(&value("b")), "", CloseSession, Session("b")),
            (Resources, "POST /reset", none(), "", Reset, New),
            (Resources, "POST /reset", with_cookie(&value("b")), "", Reset, Session("b")),
            // Only naming routes are read.
            (Resources, "POST /reset", none(), body_a, Reset, New),
            (Resources, "POST /verify", none(), body_a, Verify, Names::None),
            (Resources, "GET /seed_session", none(), body_a, Other, Names::None),
            (Resources, "POST /seed_session/", none(), body_a, Other, Names::None),
            (Resources, "POST /seed_session", none(), r#"{"resources_session_id": null}"#, Seed, Invalid),
            (
                Resources,
                "POST /close_session",
                none(),
                r#"{"resources_session_id": ""}"#,
                CloseSession,
                Invalid,
            ),
            // The agent's key is not theirs.
            (Resources, "POST /seed_session", none(), r#"{"agent_session_id": "a"}"#, Seed, New),
        ],
    );
}

#[test]
fn resources_by_token() {
    use RouteClass::*;
    let long = token("a", Some(vec!["tool".repeat(50); 20]));
    assert!(long.starts_with('.'), "compressed");
    let forged = gym_wire::token::SessionTokenKey::new("other")
        .sign(&gym_wire::token::SessionToken { sid: "a".into(), tools: None });
    check(
        known,
        vec![
            (Resources, "POST /mcp", with_token(&token("a", None)), "", Mcp, Session("a")),
            (Resources, "POST /mcp/", with_token(&long), "", Mcp, Session("a")),
            (Resources, "GET /mcp", with_token(&long), "", Mcp, Session("a")),
            (Resources, "POST /ng-rollout/1/mcp", with_token(&long), "", Mcp, Session("a")),
            (Resources, "POST /mcp", both(&value("b"), &token("a", None)), "", Mcp, Session("a")),
            (Resources, "POST /mcp", with_cookie(&value("b")), "", Mcp, Nothing),
            (Resources, "POST /mcp", HeaderMap::new(), "", Mcp, Nothing),
            (Resources, "POST /mcp", with_token(&forged), "", Mcp, Nothing),
            (Resources, "POST /mcp", with_token(""), "", Mcp, Nothing),
            (Resources, "POST /mcp", with_token(&token("", None)), "", Mcp, Nothing),
            (Resources, "POST /mcp/x", HeaderMap::new(), "", Other, Names::None),
            // Elsewhere the cookie goes first.
            (Resources, "POST /tool", with_token(&token("a", None)), "", Other, Session("a")),
            (Resources, "POST /tool", both(&value("b"), &token("a", None)), "", Other, Session("b")),
            (Resources, "POST /tool", both("bad", &token("a", None)), "", Other, Session("a")),
            (Resources, "POST /seed_session", with_token(&token("a", None)), "{}", Seed, Session("a")),
            (Resources, "POST /tool", with_token(&forged), "", Other, Names::None),
        ],
    );
}

#[test]
fn session_less_routes() {
    let paths = [
        "/",
        "/health",
        "/healthz",
        "/livez",
        "/readyz",
        "/docs",
        "/redoc",
        "/openapi.json",
        "/stats",
        "/aggregate_metrics",
        "/reverify_mode",
    ];
    for path in paths {
        for method in ["GET", "POST"] {
            let request = format!("{method} {path}");
            let of = |kind, headers: &HeaderMap| judge(&known(kind), &request, headers, "");
            let a = with_cookie(&value("a"));
            assert_eq!(of(Resources, &a), (RouteClass::SessionLess, Session("a")), "{request}");
            assert_eq!(of(Resources, &HeaderMap::new()), (RouteClass::SessionLess, Nothing), "{request}");
            assert_eq!(of(Agent, &HeaderMap::new()), (RouteClass::SessionLess, Nothing), "{request}");
            assert_eq!(of(Generic, &HeaderMap::new()), (RouteClass::Other, Names::None), "{request}");
        }
    }
}

mod other_kinds;
mod protocols;
