//! The table of the kinds beside resources, and of what a config changes.

use super::*;

#[test]
fn agents_environments_and_models() {
    use RouteClass::*;
    let none = HeaderMap::new;
    let a = || with_cookie(&signed(COOKIE, r#"{"session_id": "x", "agent_session_id": "a"}"#));
    let body = r#"{"agent_session_id": "a"}"#;
    check(
        known,
        vec![
            (Agent, "POST /v1/responses", a(), "", Other, Session("a")),
            (Agent, "POST /ng-rollout/1/v1/responses", a(), "", Other, Session("a")),
            (Agent, "POST /run", with_cookie(&value("x")), "", Other, Names::None),
            (Agent, "POST /run", none(), "", Other, Names::None),
            (Agent, "POST /v1/agent_sessions", none(), body, Seed, Session("a")),
            (Agent, "POST /v1/agent_sessions/close", none(), body, CloseSession, Session("a")),
            (Agent, "POST /v1/agent_sessions", a(), body, Seed, Session("a")),
            (Agent, "POST /v1/agent_sessions", none(), "{}", Seed, Names::None),
            (
                Agent,
                "POST /v1/agent_sessions/close",
                a(),
                r#"{"agent_session_id": "b"}"#,
                CloseSession,
                Both { body: "b", cookie: "a" },
            ),
            (Agent, "POST /v1/agent_sessions", none(), r#"{"agent_session_id": 1}"#, Seed, Invalid),
            // Routes and headers of resources servers mean nothing here.
            (Agent, "POST /seed_session", none(), r#"{"resources_session_id": "a"}"#, Other, Names::None),
            (Agent, "POST /verify", a(), "", Other, Session("a")),
            (Agent, "POST /mcp", with_token(&token("a", None)), "", Other, Names::None),
            (Environment, "POST /run", with_cookie(&value("a")), "", Other, Nothing),
            (Environment, "GET /healthz", none(), "", SessionLess, Nothing),
            (Model, "POST /v1/responses", with_cookie(&value("a")), "", Other, Nothing),
        ],
    );
}

#[test]
fn generic_by_any_cookie() {
    use RouteClass::Other;
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
    let other_json = signed("anything", r#"{"user": "x"}"#);
    let forged = signed("anything", r#"{"session_id": "a"}"#);
    check(
        known,
        vec![
            (Generic, "GET /any", with_cookie("opaque%20key"), "", Other, Session("opaque%20key")),
            (Generic, "POST /seed_session", with_cookie("\"quoted\""), "", Other, Session("quoted")),
            (Generic, "GET /", with_cookie(jwt), "", Other, Session(jwt)),
            (Generic, "GET /", with_cookie("a.b.c"), "", Other, Session("a.b.c")),
            (Generic, "GET /any", with_cookie(&value("a")), "", Other, Session("a")),
            (Generic, "GET /any", with_cookie(&forged), "", Other, Session("a")),
            (Generic, "GET /any", with_cookie(&other_json), "", Other, Names::None),
            (Generic, "GET /any", with_cookie(""), "", Other, Names::None),
            (Generic, "GET /any", with_token(&token("a", None)), "", Other, Names::None),
        ],
    );
    let with_secret = |kind| {
        let mut config = config(kind);
        config.settings.session_secret = Some("secret".into());
        Rule::new(&config)
    };
    let valid = signed("secret", r#"{"session_id": "a"}"#);
    check(
        with_secret,
        vec![
            (Generic, "GET /any", with_cookie(&valid), "", Other, Session("a")),
            (Generic, "GET /any", with_cookie(&forged), "", Other, Names::None),
        ],
    );
    let without_cookie = |kind| {
        let mut config = config(kind);
        config.settings.session_cookie = None;
        Rule::new(&config)
    };
    check(without_cookie, vec![(Generic, "GET /any", with_cookie("x"), "", Other, Nothing)]);
}

fn with_sid(id: &str) -> HeaderMap {
    headers([("x-session-id", id), ("mcp-session-id", "other")])
}

fn with_mcp_sid(id: &str) -> HeaderMap {
    headers([("mcp-session-id", id), ("x-session-id", "other")])
}

#[test]
fn ors_by_its_header_whatever_the_route() {
    use RouteClass::*;
    let none = HeaderMap::new;
    let long = "x".repeat(4097);
    check(
        known,
        vec![
            (Ors, "POST /create", with_sid("a"), "", Create, Session("a")),
            (Ors, "POST /delete", with_sid("a"), "", Delete, Session("a")),
            (Ors, "POST /delete_session", with_sid("a"), "", Delete, Session("a")),
            (Ors, "POST /wordle/call", with_sid(" a "), "", Other, Session("a")),
            (Ors, "GET /wordle/prompt", with_sid("a"), "", Other, Session("a")),
            (Ors, "POST /ping", with_sid("a"), "", Other, Session("a")),
            (Ors, "GET /health", with_sid("a"), "", SessionLess, Session("a")),
            (Ors, "GET /list_environments", with_sid("a"), "", Other, Session("a")),
            (Ors, "GET /create", with_sid("a"), "", Other, Session("a")),
            (Ors, "POST /create", with_sid(&long), "", Create, Invalid),
            // Without it, whatever else is there.
            (Ors, "POST /create_session", none(), "", Other, Nothing),
            (Ors, "POST /create", none(), r#"{"resources_session_id": null}"#, Create, Nothing),
            (Ors, "POST /wordle/tasks", with_cookie(&value("a")), "", Other, Nothing),
            (Ors, "POST /seed_session", with_token(&token("a", None)), "", Other, Nothing),
            (Ors, "GET /list_environments", with_sid(""), "", Other, Nothing),
            (Ors, "GET /health", none(), "", SessionLess, Nothing),
        ],
    );
}

#[test]
fn mcp_by_its_header_wherever_the_endpoint_is() {
    let none = HeaderMap::new;
    let long = "x".repeat(4097);
    for path in ["/mcp", "/mcp/", "/", "/health", "/create", "/seed_session"] {
        let on = |method: &str, headers: &HeaderMap| {
            judge(&known(Mcp), &format!("{method} {path}"), headers, "{}")
        };
        let class = RouteClass::Mcp;
        for method in ["POST", "GET", "DELETE"] {
            assert_eq!(on(method, &with_mcp_sid("a")), (class, Session("a")), "{method} {path}");
        }
        assert_eq!(on("POST", &none()), (class, Names::None), "{path}: its reply may name one");
        assert_eq!(on("POST", &with_cookie(&value("a"))), (class, Names::None), "{path}");
        assert_eq!(on("POST", &with_mcp_sid(&long)), (class, Invalid), "{path}");
        let (route, rule) = (|method| known(Mcp).route(&method, path), known(Mcp));
        assert!(route(Method::GET).is_endless() && !route(Method::POST).is_endless());
        assert!(route(Method::DELETE).ends && !route(Method::POST).ends && !route(Method::POST).starts);
        let reads = |method| rule.reads_body(route(method));
        assert!(reads(Method::POST) && !reads(Method::GET) && !reads(Method::DELETE));
        assert!(!rule.watches_reply(route(Method::POST)));
    }
}

#[test]
fn a_reply_names_an_mcp_session_and_no_other_kinds() {
    use http::StatusCode;
    let named = |kind, status: u16, header: &'static str| {
        let rule = known(kind);
        let head = headers([(header, "a")]);
        let route = rule.route(&Method::POST, "/mcp");
        let reply = rule.read_reply(route, StatusCode::from_u16(status).unwrap(), &head, || UNIX);
        assert!(!reply.sets_cookie);
        reply.cookie.is_some()
    };
    assert!(named(Mcp, 200, "mcp-session-id"));
    assert!(named(Mcp, 202, "mcp-session-id"));
    assert!(!named(Mcp, 400, "mcp-session-id"), "refused: nothing began");
    assert!(!named(Mcp, 200, "x-session-id"));
    assert!(!named(Ors, 200, "x-session-id"));
    assert!(!named(Resources, 200, "mcp-session-id"));
}

#[test]
fn configured_routes_start_and_end() {
    let mut config = config(Resources);
    config.settings.session_start_routes = vec!["/begin".into(), "/stats".into()];
    config.settings.session_end_routes = vec!["/finish".into()];
    let rule = Rule::new(&config);
    let route = |request: &str| {
        let (method, path) = request.split_once(' ').unwrap();
        let route = rule.route(&method.parse().unwrap(), path);
        (route.class, route.starts, route.ends)
    };
    assert_eq!(route("POST /begin"), (RouteClass::Other, true, false));
    assert_eq!(route("POST /ng-rollout/1/begin"), (RouteClass::Other, true, false));
    assert_eq!(route("POST /finish"), (RouteClass::Other, false, true));
    assert_eq!(route("POST /stats"), (RouteClass::Other, true, false));
    assert_eq!(route("GET /stats"), (RouteClass::SessionLess, false, false));
    assert_eq!(route("GET /begin"), (RouteClass::Other, false, false));
    assert_eq!(route("POST /begin/"), (RouteClass::Other, false, false));
    assert_eq!(judge(&rule, "POST /begin", &HeaderMap::new(), ""), (RouteClass::Other, New));
}

#[test]
fn a_switched_off_server_names_nothing() {
    let off = |kind| {
        let mut config = config(kind);
        config.settings.routes_sessions_to_owner = false;
        Rule::new(&config)
    };
    let body = r#"{"resources_session_id": null}"#;
    check(
        off,
        vec![
            (Resources, "POST /tool", with_cookie(&value("a")), "", RouteClass::Other, Nothing),
            (Resources, "POST /seed_session", HeaderMap::new(), body, RouteClass::Seed, Nothing),
            (Resources, "POST /mcp", with_token(&token("a", None)), "", RouteClass::Mcp, Nothing),
            (Generic, "GET /", with_cookie("x"), "", RouteClass::Other, Nothing),
            (Ors, "POST /create", with_sid("a"), "", RouteClass::Create, Nothing),
            (Mcp, "POST /mcp", with_mcp_sid("a"), "", RouteClass::Mcp, Nothing),
        ],
    );
    assert!(!off(Mcp).reads_body(known(Mcp).route(&Method::POST, "/mcp")));
    assert!(!off(Resources).watches_reply(known(Resources).route(&Method::POST, "/step")));
}

#[test]
fn endless_streams() {
    let rule = known(Resources);
    assert!(rule.route(&Method::GET, "/mcp").is_endless());
    assert!(!rule.route(&Method::POST, "/mcp").is_endless());
    assert!(!rule.route(&Method::GET, "/ws").is_endless());
    assert!(rule.route(&Method::GET, "/ws").upgraded().is_endless());
}
