//! MCP requests go by their session token, never by a cookie.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{
    Answer, Call, Gateway, Setup, admin,
    admin::metric,
    cookie::{self, token},
    poll, processes,
    setup::COOKIE,
};
use http::Method;
use serde_json::json;

const TOKEN: &str = "x-nemo-gym-session-token";

fn mcp(gateway: &Gateway) -> Call {
    gateway.post("/mcp").json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}))
}

async fn with(call: Call, token: &str) -> Answer {
    call.header(TOKEN, token).send().await.assert(200)
}

#[tokio::test]
async fn a_token_leads_to_the_owner() {
    let gateway = Setup::resources().start().await;
    let tools: Vec<String> = (0..200).map(|n| format!("the_same_long_tool_name_{n}")).collect();
    for (id, owner) in gateway.seed_two().await {
        let plain = token(COOKIE, &id, None);
        let packed = token(COOKIE, &id, Some(tools.clone()));
        assert!(!plain.starts_with('.') && packed.starts_with('.'), "one is compressed");
        for token in [plain, packed] {
            assert_eq!(with(mcp(&gateway), &token).await.slot(), owner);
            assert_eq!(with(gateway.post("/mcp/").json(&json!({})), &token).await.slot(), owner);
            assert_eq!(with(gateway.post("/ng-rollout/1/mcp").json(&json!({})), &token).await.slot(), owner);
            assert_eq!(with(gateway.post("/echo"), &token).await.slot(), owner, "elsewhere without a cookie");
        }
    }
    gateway.finish().await;
}

#[tokio::test]
async fn on_mcp_the_cookie_never_counts_and_elsewhere_it_does() {
    let gateway = Setup::resources().start().await;
    let [(first, one), (second, two)] = gateway.seed_two().await;
    let (first_token, second_token) = (token(COOKIE, &first, None), token(COOKIE, &second, None));
    for _ in 0..3 {
        assert_eq!(with(mcp(&gateway).session(&first), &second_token).await.slot(), two);
        assert_eq!(with(mcp(&gateway).session(&second), &first_token).await.slot(), one);
        assert_eq!(with(gateway.post("/echo").session(&second), &first_token).await.slot(), two);
    }
    // A cookie alone: balanced, and nothing is claimed.
    for _ in 0..3 {
        mcp(&gateway).session("unrelated").send().await.assert(200);
    }
    assert_eq!(admin::sessions(&gateway, "claimed").await, 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_token_that_is_none_is_balanced() {
    let gateway = Setup::resources().start().await;
    let good = token(COOKIE, "s", None);
    let bad = [
        token("another secret", "s", None),
        good[1..].to_owned(),
        good[..good.len() - 2].to_owned(),
        format!(".{good}"),
        "...".into(),
        "x".into(),
        "y".repeat(5000),
        cookie::value(COOKIE, "s"),
    ];
    for token in bad {
        with(mcp(&gateway), &token).await;
    }
    for state in ["claimed", "open"] {
        assert_eq!(admin::sessions(&gateway, state).await, 0.0, "{state}");
    }
    gateway.finish().await;
}

#[tokio::test]
async fn a_token_that_unpacks_to_a_lot_is_not_unpacked() {
    let gateway = Setup::resources().start().await;
    let bomb = token(COOKIE, &"a".repeat(12 << 20), None);
    assert!(bomb.len() < 20_000, "{}", bomb.len());
    with(mcp(&gateway), "x").await;
    let before = processes::peak_memory(gateway.pid());
    for _ in 0..8 {
        with(mcp(&gateway), &bomb).await;
    }
    let grown = processes::peak_memory(gateway.pid()).saturating_sub(before);
    assert!(grown < 8 << 20, "grew by {grown} bytes");
    assert_eq!(admin::sessions(&gateway, "claimed").await, 0.0);
    gateway.finish().await;
}

#[tokio::test]
async fn a_lost_session_is_410_by_token_too() {
    let gateway = Setup::resources().start().await;
    let owner = gateway.seed("s").await;
    processes::signal(gateway.workers.pid(owner), nix::sys::signal::Signal::SIGKILL);
    processes::gone(gateway.workers.pid(owner)).await;
    let token = token(COOKIE, "s", None);
    mcp(&gateway).header(TOKEN, &token).send().await.assert_refused(410, "session_lost");
    gateway.finish().await;
}

#[tokio::test]
async fn a_stream_without_an_end_is_not_in_flight() {
    let gateway = Setup::resources().start().await;
    let mut client = gateway.raw().await;
    client.send(gateway.call(Method::GET, "/mcp").tag("t").fault("sse=event").bytes()).await;
    client.head().await;
    gateway.workers.tagged("streaming", "t").await;
    poll("nothing in flight", async || {
        (admin::metrics(&gateway).await.sum(metric::IN_FLIGHT, &[]) == 0.0).then_some(())
    })
    .await;
    gateway.workers.open("event").await;
    assert_eq!(client.chunk().await.unwrap(), b"data: 1\n\n");
    drop(client);
    gateway.workers.tagged("cancelled", "t").await;
    gateway.finish().await;
}
