//! What happens at the edges of a session's life, and of the routes.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::routing::post;
use common::{Client, close, seed, verify};
use gym_worker_sdk::{
    Empty, Failure, Released, ResourcesApp, ResourcesServer, Result, SeedError, SeedInfo, Seeded, Session,
    SessionState, Settings, Start, Verdict, VerifyRequest,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the test and the server tell each other.
#[derive(Default)]
struct Seen {
    released: Mutex<Vec<Released>>,
    scoring: Notify,
    score: Notify,
    stuck: Notify,
    dropped: Notify,
}

struct Edges(Arc<Seen>);

struct Flags {
    close_fails: bool,
}

impl SessionState for Flags {}

impl ResourcesServer for Edges {
    const CLASS: &'static str = "EdgesServer";
    type Seed = serde_json::Map<String, Value>;
    type State = Flags;
    type Verify = serde_json::Map<String, Value>;
    type Details = Empty;

    async fn seed_session(
        &self,
        _: SeedInfo,
        seed: Self::Seed,
    ) -> std::result::Result<Seeded<Flags>, SeedError> {
        Ok(Flags { close_fails: seed.contains_key("close_fails") }.into())
    }

    async fn verify(&self, session: Session<Flags>, request: VerifyRequest<Self::Verify>) -> Result<Verdict> {
        if request.body.contains_key("waits") {
            self.0.scoring.notify_one();
            self.0.score.notified().await;
        }
        let _flags = session.state().await?;
        session.keep_open();
        Ok(Verdict::reward(1.0))
    }

    async fn close_session(&self, _: &str, flags: &mut Flags) -> Result<()> {
        match flags.close_fails {
            true => Err(Failure::new(503, "not now")),
            false => Ok(()),
        }
    }

    async fn release(&self, _: Arc<str>, _: Flags, why: Released) {
        self.0.released.lock().unwrap().push(why);
    }
}

struct SaysDropped(Arc<Edges>);

impl Drop for SaysDropped {
    fn drop(&mut self) {
        self.0.0.dropped.notify_one();
    }
}

/// Never comes back.
async fn stuck(server: Arc<Edges>) -> Result<()> {
    server.0.stuck.notify_one();
    let _says = SaysDropped(server);
    std::future::pending().await
}

fn app() -> (ResourcesApp<Edges>, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let app = ResourcesApp::new(Edges(seen.clone())).settings(Settings::new("edges")).tool("stuck", stuck);
    (app, seen)
}

fn server() -> (Client, Arc<Seen>) {
    let (app, seen) = app();
    let begin = async |start: Start<Flags>| -> Result<()> {
        start.open(Flags { close_fails: false }).await?;
        Ok(())
    };
    let leave = async |Json(body): Json<Value>| match body["fails"] == true {
        true => Err(Failure::new(418, "a teapot")),
        false => Ok(()),
    };
    let router = app.route("/begin/{room}", post(begin)).end_route("/leave", post(leave)).into_router();
    (Client::new(router.unwrap()), seen)
}

#[tokio::test]
async fn a_session_opened_by_any_route_has_its_cookie() {
    let (mut client, _) = server();
    client.ok("/begin/5", json!({})).await;
    assert!(client.cookie.is_some());
    assert_eq!(client.ok("/verify", verify(json!({}))).await["reward"], 1.0);
}

#[tokio::test]
async fn a_start_or_end_route_that_the_gateway_cannot_know_is_refused() {
    let (app, _) = app();
    let app =
        app.start_route("/begin/{room}", post(async || ())).end_route("/leave/{*all}", post(async || ()));
    let said = app.into_router().unwrap_err().to_string();
    assert!(said.contains("\"/begin/{room}\"") && said.contains("\"/leave/{*all}\""), "{said}");
}

#[tokio::test]
async fn routes_that_axum_cannot_take_are_refused_and_not_panicked_at() {
    let rows: [(&[&str], &[&str]); 7] = [
        (&["/a/{x}", "/a/{y}"], &["the routes /a/{y} and /a/{x} would take the same requests"]),
        (&["/a/{x}", "/a/{*all}"], &["the routes /a/{*all} and /a/{x} would take the same requests"]),
        (
            &["/a/:x", "/b/*all"],
            &["the route /a/:x: write {x} for :x", "the route /b/*all: write {*all} for *all"],
        ),
        (&["/a/{x", "/{}"], &["the route /a/{x cannot be: ", "the route /{} cannot be: "]),
        (&["/{*all}/x", "/{a}{b}"], &["the route /{*all}/x cannot be: ", "the route /{a}{b} cannot be: "]),
        (
            &["verify", "/verify"],
            &["the route \"verify\" must begin with '/'", "the route /verify is there already"],
        ),
        (&["/stuck", "/b", "/b"], &["the route /stuck is there already", "the route /b is there already"]),
    ];
    for (paths, said) in rows {
        let (app, _) = app();
        let app = paths.iter().fold(app, |app, path| app.route(path, post(async || ())));
        let error = app.into_router().err().unwrap_or_else(|| panic!("{paths:?} are taken")).to_string();
        for said in said {
            assert!(error.contains(said), "{paths:?}: {error}");
        }
    }
    let (app, _) = app();
    let fine = ["/{tool}", "/{tool}/x", "/{other}/y", "/a/{*all}", "/a/b", "/{{x}}"];
    let app = fine.iter().fold(app, |app, path| app.route(path, post(async || Json("mine"))));
    let mut client = Client::new(app.into_router().unwrap());
    assert_eq!(client.ask("POST", "/{x}", "").await.status.as_u16(), 200);
}

#[tokio::test]
async fn a_slash_too_many_is_redirected_as_in_python() {
    let (mut client, _) = server();
    for path in ["/verify/?x=1", "/ng-rollout/a-1/verify/?x=1"] {
        let reply = client.ask("POST", path, "").await;
        assert_eq!(reply.status.as_u16(), 307, "{path}");
        assert_eq!(reply.headers["location"], "/verify?x=1", "{path}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_answered_before_it_is_there() {
    let (app, _) = app();
    let mut settings = Settings::new("edges");
    settings.max_body_bytes = 1000;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = app.settings(settings).into_router().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let chunk = format!("3e9\r\n{}\r\n", "x".repeat(1001));
    let whole = vec![b' '; 8 << 20];
    let rows: [(&str, &[u8]); 3] = [
        // The client falls silent behind its head, in the middle of its body, and not at all.
        ("content-length: 1001", b""),
        ("transfer-encoding: chunked", chunk.as_bytes()),
        ("content-length: 8388608", &whole),
    ];
    for path in ["/verify", "/stuck", "/seed_session"] {
        for (length, body) in rows {
            let answered = async {
                let mut client = TcpStream::connect(address).await.unwrap();
                let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\n{length}\r\n\r\n");
                client.write_all(head.as_bytes()).await.unwrap();
                client.write_all(body).await.unwrap();
                let mut reply = [0; 12];
                client.read_exact(&mut reply).await.unwrap();
                String::from_utf8(reply.to_vec()).unwrap()
            };
            let reply = tokio::time::timeout(Duration::from_secs(20), answered).await;
            assert_eq!(reply.expect("an answer"), "HTTP/1.1 413", "{path} {length}");
        }
    }
    server.abort();
}

#[tokio::test]
async fn an_end_route_that_succeeds_ends_the_session() {
    let (mut client, seen) = server();
    client.ok("/seed_session", json!({})).await;
    assert_eq!(client.post("/leave", json!({"fails": true})).await.status.as_u16(), 418);
    assert!(seen.released.lock().unwrap().is_empty());
    client.ok("/leave", json!({})).await;
    assert_eq!(*seen.released.lock().unwrap(), [Released::Ended]);
    client.ok("/leave", json!({})).await;
}

#[tokio::test]
async fn a_repeated_verify_that_kept_its_session_open_says_so_again() {
    let (mut client, _) = server();
    client.ok("/seed_session", json!({})).await;
    for _ in 0..2 {
        assert_eq!(client.post("/verify", verify(json!({}))).await.says(), Some("open"));
    }
}

#[tokio::test]
async fn a_verify_that_a_close_overtakes_is_masked() {
    let (mut client, seen) = server();
    client.ok("/seed_session", seed("s1", "r1", json!({}))).await;
    let mut closer = client.another();
    let scored = tokio::spawn(async move { client.ok("/verify", verify(json!({"waits": 1}))).await });
    seen.scoring.notified().await;
    closer.ok("/close_session", close("s1", "r1")).await;
    seen.score.notify_one();
    assert_eq!(scored.await.unwrap()["failure_kind"], "session_lost");
}

#[tokio::test]
async fn a_close_that_fails_leaves_the_session_whose_it_was() {
    let (mut client, _) = server();
    client.ok("/seed_session", json!({"close_fails": 1})).await;
    let cookie = client.cookie.clone().unwrap();
    let payload = cookie.split_once('=').unwrap().1.split('.').next().unwrap();
    let id = gym_wire::cookie::peek(&format!("{payload}.a.b")).unwrap();
    let id = serde_json::from_slice::<Value>(&id).unwrap()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(client.another().post("/close_session", close(&id, "r1")).await.status.as_u16(), 503);
    client.ok("/seed_session", json!({})).await;
}

#[tokio::test]
async fn an_id_that_is_too_long_is_refused() {
    let (mut client, _) = server();
    for body in [seed(&"x".repeat(4097), "r1", json!({})), close(&"é".repeat(2049), "r1")] {
        let path = if body.get("task_id").is_some() { "/seed_session" } else { "/close_session" };
        assert_eq!(client.another().post(path, body).await.code(), (422, "invalid_session_id"));
    }
    client.ok("/seed_session", seed(&"x".repeat(4096), "r1", json!({}))).await;
}

#[tokio::test]
async fn a_stuck_tool_without_arguments_is_cancelled_with_its_client() {
    let (app, seen) = app();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = app.into_router().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    // A body that nobody reads must not hide that the client is gone.
    for length in [2, 1 << 22] {
        let cancelled = async {
            let mut client = TcpStream::connect(address).await.unwrap();
            let head = format!("POST /stuck HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
            client.write_all(head.as_bytes()).await.unwrap();
            client.write_all(&vec![b' '; length]).await.unwrap();
            seen.stuck.notified().await;
            drop(client);
            seen.dropped.notified().await;
        };
        let in_time = tokio::time::timeout(Duration::from_secs(20), cancelled).await;
        assert!(in_time.is_ok(), "not cancelled, with a body of {length} bytes");
    }
    server.abort();
}
