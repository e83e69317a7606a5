//! Routes by the names of a protocol that the server does not speak.

use http::HeaderMap;

use super::super::super::{RouteClass::*, Rule};
use super::super::{config, value};
use super::{Minted, Names, New, Row, Session, check, with_cookie};
use crate::config::{
    Kind::{self, Agent, Resources},
    Protocol,
};

fn speaking(protocol: Protocol) -> impl Fn(Kind) -> Rule {
    move |kind| {
        let mut config = config(kind);
        config.settings.protocol = Some(protocol);
        config.settings.session_end_routes = vec!["/finish".into()];
        Rule::new(&config)
    }
}

/// Requests of either protocol: by cookie, by body and with neither.
fn rows(seeds: bool, resets: bool) -> Vec<Row> {
    let (none, a) = (HeaderMap::new, || with_cookie(&value("a")));
    let body = r#"{"resources_session_id": "b"}"#;
    let of = |spoken, class| if spoken { class } else { Other };
    let minted = |spoken, names| if spoken { names } else { Names::None };
    vec![
        (Resources, "POST /seed_session", none(), body, of(seeds, Seed), minted(seeds, Minted("b"))),
        (Resources, "POST /seed_session", none(), "{}", of(seeds, Seed), minted(seeds, New)),
        (Resources, "POST /close_session", none(), body, of(seeds, CloseSession), minted(seeds, Minted("b"))),
        (Resources, "POST /verify", a(), "", of(seeds, Verify), Session("a")),
        (Resources, "POST /reset", none(), "", of(resets, Reset), minted(resets, New)),
        (Resources, "POST /reset", a(), "", of(resets, Reset), Session("a")),
        (Resources, "POST /step", a(), "", of(resets, Step), Session("a")),
        (Resources, "POST /close", a(), "", of(resets, Close), Session("a")),
        (Resources, "POST /ng-rollout/1/close", a(), "", of(resets, Close), Session("a")),
        (Resources, "POST /mcp", a(), "", Mcp, super::Nothing),
        (Resources, "POST /stats", a(), "", SessionLess, Session("a")),
        (Resources, "POST /finish", a(), "", Other, Session("a")),
        // Of no other kind.
        (Agent, "POST /v1/agent_sessions", none(), r#"{"agent_session_id": "b"}"#, Seed, Session("b")),
    ]
}

#[test]
fn the_other_protocols_routes_are_ordinary_ones() {
    check(speaking(Protocol::Both), rows(true, true));
    check(speaking(Protocol::SeedVerify), rows(true, false));
    check(speaking(Protocol::Gymnasium), rows(false, true));
}

#[test]
fn a_server_that_says_nothing_speaks_both() {
    check(|kind| Rule::new(&config(kind)), rows(true, true));
}

#[test]
fn routes_of_the_config_hold_in_any_protocol() {
    for protocol in Protocol::ALL {
        let mut config = config(Resources);
        config.settings.protocol = Some(protocol);
        config.settings.session_start_routes = vec!["/reset".into()];
        config.settings.session_end_routes = vec!["/close".into()];
        let rule = Rule::new(&config);
        let route = |path| rule.route(&http::Method::POST, path);
        assert!(route("/reset").starts && route("/close").ends, "{protocol}");
    }
}
