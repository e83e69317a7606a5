//! `X-Gym-Session`: what a worker says of its session, and that no client sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Gateway, Http2, Kind, Setup, admin};

/// Sessions claimed, open and ended.
async fn states(gateway: &Gateway) -> [f64; 3] {
    let metrics = admin::metrics(gateway).await;
    ["claimed", "open", "ended"].map(|state| metrics.sum(admin::metric::SESSIONS, &[("state", state)]))
}

#[tokio::test]
async fn what_a_reply_says_of_its_session_is_between_worker_and_gateway_alone() {
    const WORDS: &str = "header=x-GYM-session:Open; header=X-Gym-Session:of a later version";
    let setups = [
        Setup::resources(),
        Setup::resources().set("routes_sessions_to_owner", false),
        Setup::new(Kind::Agent),
        Setup::new(Kind::Model),
        Setup::generic(),
    ];
    for setup in setups {
        let gateway = setup.start().await;
        let clean = |headers: &http::HeaderMap, what: &str| {
            assert!(!headers.contains_key("x-gym-session"), "{what}: {headers:?}");
        };
        let routes = [
            "/seed_session",
            "/verify",
            "/reset",
            "/step",
            "/increment",
            "/mcp",
            "/health",
            "/none",
            "/echo",
        ];
        let mut http2 = Http2::connect(gateway.front()).await;
        for path in routes {
            for more in ["", "; chunked", "; status=500", "; no-cookie"] {
                let call = gateway.post(path).session("s").fault(&format!("{WORDS}{more}"));
                clean(&call.clone().send().await.headers, path);
                clean(&http2.send(&call).await.headers, path);
            }
        }
        let call = gateway.get("/stream").session("s").fault(&format!("{WORDS}; sse=go"));
        gateway.workers.open_wide("go.end").await;
        clean(&call.send().await.assert(200).headers, "a stream");
        let upgrade = gateway.get("/ws").session("s").header("connection", "upgrade");
        let mut tunnel = gateway.raw().await;
        tunnel.send(upgrade.header("upgrade", "websocket").fault(WORDS).bytes()).await;
        let head = tunnel.head().await;
        assert_eq!((head.status, head.header("x-gym-session")), (101, None));
        tunnel.send("hang up").await;
        tunnel.to_any_end().await;
        drop(tunnel);
        gateway.finish().await;
    }
}

#[tokio::test]
async fn what_a_reply_says_counts_whatever_its_spelling_and_however_it_comes() {
    let gateway = Setup::resources().start().await;
    let mut http2 = Http2::connect(gateway.front()).await;
    for (id, verify) in [
        ("a", "header=x-gym-session:OPEN"),
        ("b", "chunked; header=X-GYM-SESSION: open"),
        ("c", "header=X-Gym-Session:later; header=X-Gym-Session:open"),
    ] {
        gateway.seed(id).await;
        http2.send(&gateway.post("/verify").session(id).fault(verify)).await.assert(200);
    }
    assert_eq!(states(&gateway).await, [0.0, 3.0, 0.0]);
    for (id, end) in [
        ("a", "header=x-gym-session:Ended"),
        ("b", "chunked; header=X-Gym-Session:ended"),
        ("c", "header=X-Gym-Session:open; header=X-Gym-Session:ended"),
    ] {
        http2.send(&gateway.post("/echo/own").session(id).fault(end)).await.assert(200);
    }
    assert_eq!(states(&gateway).await, [0.0, 0.0, 3.0]);
    gateway.finish().await;
}
