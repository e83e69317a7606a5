//! WebSockets and other upgrades: one owner for the whole connection, which dies with it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use gym_gateway_tests::harness::{Call, Gateway, Raw, Setup, admin, admin::metric, poll, processes};
use nix::sys::signal::Signal;

fn upgrade(gateway: &Gateway, tag: &str) -> Call {
    gateway.get("/ws").tag(tag).header("connection", "Upgrade").header("upgrade", "websocket")
}

async fn connect(gateway: &Gateway, call: Call) -> Raw {
    let mut client = gateway.raw().await;
    client.send(call.bytes()).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("upgrade")), (101, Some("websocket")));
    assert!(head.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("upgrade")));
    client
}

#[tokio::test]
async fn bytes_pass_both_ways_until_the_client_leaves() {
    let gateway = Setup::resources().start().await;
    let owner = gateway.seed("s").await;
    let mut client = connect(&gateway, upgrade(&gateway, "t").session("s")).await;
    let upgraded = gateway.workers.tagged("upgraded", "t").await;
    assert_eq!(upgraded["slot"], owner);
    for message in [b"\x81\x05hello".to_vec(), vec![0; 300_000]] {
        let mut sent = 0;
        for part in message.chunks(30_000) {
            client.send(part).await;
            sent += client.exactly(part.len()).await.len();
        }
        assert_eq!(sent, message.len());
    }
    assert_eq!(admin::metrics(&gateway).await.sum(metric::IN_FLIGHT, &[]), 1.0);
    drop(client);
    gateway.workers.tagged("tunnel-ended", "t").await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_reset_ends_the_tunnel_too() {
    let gateway = Setup::resources().start().await;
    let client = connect(&gateway, upgrade(&gateway, "t").session("s")).await;
    client.reset();
    gateway.workers.tagged("tunnel-ended", "t").await;
    gateway.finish().await;
}

#[tokio::test]
async fn the_workers_end_is_passed_on() {
    let gateway = Setup::resources().start().await;
    let mut client = connect(&gateway, upgrade(&gateway, "t").session("s")).await;
    client.send("hang up").await;
    assert_eq!(client.to_end().await, b"");
    drop(client);
    gateway.finish().await;
}

#[tokio::test]
async fn it_is_410_before_the_upgrade_and_cut_after_it() {
    let gateway = Setup::resources().set("restart_backoff_seconds", 0.05).start().await;
    let owner = gateway.seed("s").await;
    let mut open = connect(&gateway, upgrade(&gateway, "open").session("s")).await;
    let mut waiting = gateway.raw().await;
    waiting.send(upgrade(&gateway, "early").session("s").fault("gate=never").bytes()).await;
    gateway.workers.tagged("waiting", "early").await;
    processes::signal(gateway.workers.pid(owner), Signal::SIGKILL);
    waiting.answer().await.assert_refused(410, "session_lost");
    open.to_any_end().await;
    let mut late = gateway.raw().await;
    late.send(upgrade(&gateway, "late").session("s").bytes()).await;
    late.answer().await.assert_refused(410, "session_lost");
    drop((open, waiting, late));
    gateway.finish().await;
}

#[tokio::test]
async fn a_refused_upgrade_is_an_ordinary_reply() {
    let gateway = Setup::resources().start().await;
    let mut client = gateway.raw().await;
    let call = gateway.get("/refuses-upgrade").header("connection", "Upgrade").header("upgrade", "websocket");
    client.send(call.bytes()).await;
    assert_eq!(client.answer().await.status, 404);
    gateway.finish().await;
}

#[tokio::test]
async fn a_client_that_leaves_before_the_upgrade_is_noticed() {
    let gateway = Setup::resources().start().await;
    let mut client = gateway.raw().await;
    client.send(upgrade(&gateway, "t").session("s").fault("gate=never").bytes()).await;
    gateway.workers.tagged("waiting", "t").await;
    drop(client);
    gateway.workers.tagged("cancelled", "t").await;
    gateway.finish().await;
}

#[tokio::test]
async fn a_tunnel_without_a_session_is_not_in_flight_for_ever() {
    let gateway = Setup::resources().start().await;
    let call = upgrade(&gateway, "t").fault("no-cookie");
    let client = connect(&gateway, call).await;
    gateway.workers.tagged("upgraded", "t").await;
    poll("an endless stream of no session does not count", async || {
        (admin::metrics(&gateway).await.sum(metric::IN_FLIGHT, &[]) == 0.0).then_some(())
    })
    .await;
    drop(client);
    gateway.workers.tagged("tunnel-ended", "t").await;
    gateway.finish().await;
}
