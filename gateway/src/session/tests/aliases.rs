//! Sessions by several IDs: servers that choose their own, and secrets that are unknown.

use http::HeaderMap;

use super::super::{Learned, record::MAX_ALIASES};
use super::{COOKIE, UNIX, config, headers, id, signed, stage::Stage};
use crate::config::Kind;

/// A stage whose secret is unknown.
fn unknown() -> Stage {
    let stage = Stage::new(&config(Kind::Resources));
    let theirs = format!("{COOKIE}={}", signed("unknown", "{}"));
    let probe: HeaderMap = headers([("set-cookie", theirs.as_str())]);
    assert_eq!(stage.rule.learn(&probe, UNIX), Learned::CookieOfUnknownSecret);
    stage
}

#[test]
fn a_replys_new_id_is_another_name_of_the_session() {
    let mut stage = Stage::new(&config(Kind::Resources));
    assert_eq!(stage.play("POST /seed_session body=a", "200 cookie=t"), "0.1");
    assert_eq!(stage.play("POST /seed_session body=b", "200 cookie=u"), "1.1");
    assert_eq!(stage.state("t"), "open 0.1");
    assert_eq!(stage.play("POST /tool cookie=t", "200 cookie=t"), "0.1");
    assert_eq!(stage.play("POST /tool cookie=u", "200 cookie=v"), "1.1");
    assert_eq!(stage.play("POST /tool cookie=v", "200"), "1.1");
    // Cookie and body are aliases of one session, or are not.
    assert_eq!(stage.play("POST /close_session body=a cookie=t", "200"), "0.1");
    assert_eq!(stage.play("POST /close_session body=b cookie=t", "200"), "session_mismatch");
    assert_eq!(stage.play("POST /close_session body=b cookie=never-seen", "200"), "session_mismatch");
    assert_eq!(stage.play("POST /close_session body=b cookie=v", "200"), "1.1");
    assert_eq!(stage.play("POST /seed_session cookie=t", "200"), "session_closed");
}

#[test]
fn known_ids_do_not_become_aliases() {
    let mut stage = Stage::new(&config(Kind::Resources));
    stage.play("POST /seed_session body=a", "200 cookie=a");
    stage.play("POST /seed_session body=b", "200 cookie=b");
    stage.play("POST /tool cookie=a", "200 cookie=b");
    assert_eq!((stage.state("a").as_str(), stage.state("b").as_str()), ("open 0.1", "open 1.1"));
    stage.play("POST /tool cookie=a", "500 cookie=t");
    assert_eq!(stage.state("t"), "open 0.1", "any status but 404 and 405");
    stage.play("POST /tool cookie=a", "404 cookie=w");
    stage.play("GET /health cookie=a", "200 cookie=w");
    stage.play("POST /mcp token=a", "200 cookie=w");
    assert_eq!(stage.state("w"), "none");
}

#[test]
fn aliases_go_with_their_session() {
    let mut stage = Stage::new(&config(Kind::Resources));
    stage.play("POST /seed_session body=a", "200 cookie=t");
    stage.play("POST /seed_session body=b", "200 cookie=u");
    stage.exit(0);
    assert_eq!(stage.play("POST /tool cookie=t", "200"), "session_lost");
    assert_eq!(stage.state("t"), "lost");
    stage.play("POST /close_session body=b", "200");
    stage.pass(300);
    assert_eq!(stage.state("u"), "none");
    assert_eq!(stage.table.sessions.len(), 0);
    // Idle for too long: lost under all its names too.
    stage.play("POST /seed_session body=c", "200 cookie=x");
    stage.pass(86_400);
    assert_eq!(stage.play("POST /tool cookie=x", "200"), "session_lost");
    assert_eq!(stage.table.sessions.len(), 0);
}

#[test]
fn a_withdrawn_claim_leaves_no_alias() {
    let mut stage = Stage::new(&config(Kind::Resources));
    assert_eq!(stage.send("1", "POST /tool cookie=a"), "0.1");
    stage.answer("1", "200 cookie=t");
    stage.end("1");
    assert_eq!((stage.state("a").as_str(), stage.state("t").as_str()), ("claimed 0.1", "claimed 0.1"));
    stage.pass(300);
    assert_eq!((stage.state("t").as_str(), stage.table.sessions.len()), ("none", 0));
}

#[test]
fn a_session_has_so_many_aliases_at_most() {
    let mut stage = Stage::new(&config(Kind::Generic));
    assert_eq!(stage.play("GET / raw=k", "200 raw=k0"), "0.1");
    for n in 0..100 {
        let (request, reply) = (format!("GET / raw=k{n}"), format!("200 raw=k{}", n + 1));
        assert_eq!(stage.play(&request, &reply), "0.1");
    }
    assert_eq!(stage.table.sessions.len(), 1 + MAX_ALIASES);
    assert_eq!(stage.state("k100"), "claimed 0.1");
    assert_eq!(stage.state("k84"), "none");
    assert_eq!(stage.state("k85"), "claimed 0.1");
}

#[test]
fn with_an_unknown_secret_the_replys_id_becomes_an_alias_of_the_bodys() {
    let mut stage = unknown();
    assert_eq!(stage.play("POST /seed_session body=a", "200 cookie=t"), "0.1");
    assert_eq!(stage.play("POST /seed_session body=b", "200 cookie=u"), "1.1");
    assert_eq!(stage.play("POST /tool cookie=t", "200"), "0.1");
    // An ID that the table does not know is not believed against the body's; one that it knows is.
    assert_eq!(stage.play("POST /close_session body=a cookie=forged", "200"), "0.1");
    assert_eq!(stage.play("POST /close_session body=a cookie=u", "200"), "session_mismatch");
    stage.exit(1);
    assert_eq!(stage.play("POST /close_session body=a cookie=u", "200"), "session_mismatch");
    // Nothing is minted or added.
    assert_eq!(stage.play("POST /seed_session body=c", "200"), "0.1");
    assert_eq!(stage.play("POST /seed_session", "200 cookie=v"), "1.2");
    assert_eq!(stage.state("v"), "open 1.2");
}

#[test]
fn a_leftover_alias_misleads_nobody() {
    use super::super::record::Entry;
    let mut stage = Stage::new(&config(Kind::Resources));
    // As left by a thread that has just taken the record out and not yet its aliases.
    stage.table.sessions.insert(id("t"), Entry::Alias(Box::new(id("gone"))));
    assert_eq!(stage.play("POST /tool cookie=t", "200 cookie=t"), "0.1");
    assert_eq!((stage.state("t").as_str(), stage.state("gone").as_str()), ("claimed 0.1", "none"));
    stage.table.sessions.insert(id("u"), Entry::Alias(Box::new(id("gone"))));
    assert_eq!(stage.play("POST /tool", "200 cookie=u"), "1.1");
    assert_eq!((stage.state("u").as_str(), stage.state("gone").as_str()), ("claimed 1.1", "none"));
}
