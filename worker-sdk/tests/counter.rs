//! The counter example, asked without a socket and as a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use gym_worker_sdk::SessionCookie;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

#[allow(dead_code)] // its main
#[path = "../examples/counter.rs"]
mod counter;

/// A client that keeps its cookie as NeMo Gym's agents do.
struct Client {
    router: Router,
    cookie: Option<String>,
}

impl Client {
    fn new() -> Self {
        Self {
            router: counter::router(SessionCookie::new("CounterResourcesServer", "counter")),
            cookie: None,
        }
    }

    /// Another client of the same server.
    fn another(&self) -> Self {
        Self { router: self.router.clone(), cookie: None }
    }

    async fn ask(&mut self, method: &str, path: &str, body: impl Into<Body>) -> (StatusCode, Value) {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(header::CONTENT_TYPE, "application/json");
        if let Some(cookie) = &self.cookie {
            request = request.header(header::COOKIE, format!("SimpleAgent___a=b; {cookie}"));
        }
        let reply = self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
        if let Some(cookie) = reply.headers().get(header::SET_COOKIE) {
            self.cookie = Some(cookie.to_str().unwrap().split(';').next().unwrap().to_owned());
        }
        let status = reply.status();
        let bytes = reply.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn post(&mut self, path: &str, body: Value) -> Value {
        let (status, reply) = self.ask("POST", path, body.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{path}: {reply}");
        reply
    }
}

fn verify(expected_count: i64) -> Value {
    json!({
        "responses_create_params": {"input": "add 2"},
        "response": {"id": "r", "output": []},
        "expected_count": expected_count,
        "agent_ref": {"name": "simple_agent"},
    })
}

#[tokio::test]
async fn plays_an_episode() {
    let mut client = Client::new();
    assert_eq!(client.post("/seed_session", json!({"initial_count": 3, "more": 1})).await, json!({}));
    assert_eq!(client.post("/increment_counter", json!({"count": 2})).await, json!({"success": true}));
    assert_eq!(client.post("/get_counter_value", json!({})).await, json!({"count": 5}));
    let verified = client.post("/verify", verify(5)).await;
    let expected = json!({
        "responses_create_params": {"input": "add 2"},
        "response": {"id": "r", "output": []},
        "reward": 1.0,
        "mask_sample": false,
        "failure_kind": null,
        "failure_reason": null,
    });
    assert_eq!(verified, expected);
    assert_eq!(client.post("/verify", verify(4)).await["reward"], 0.0);
    let closed = client.post("/close_session", json!({"resources_session_id": "x", "episode_id": {}})).await;
    assert_eq!(closed, json!({"resources_session_id": "x"}));
    assert_eq!(client.post("/verify", verify(5)).await["reward"], 0.0, "closed");
}

#[tokio::test]
async fn sessions_are_apart_and_a_seed_repeats() {
    let mut one = Client::new();
    let mut two = one.another();
    one.post("/seed_session", json!({"initial_count": 1})).await;
    two.post("/seed_session", json!({"initial_count": 10})).await;
    one.post("/increment_counter", json!({"count": 1})).await;
    one.post("/seed_session", json!({"initial_count": 1})).await;
    assert_eq!(one.post("/get_counter_value", json!({})).await, json!({"count": 2}));
    assert_eq!(two.post("/get_counter_value", json!({})).await, json!({"count": 10}));
}

#[tokio::test]
async fn the_cookie_comes_with_a_new_session_and_with_a_seed() {
    let mut client = Client::new();
    client.post("/get_counter_value", json!({})).await;
    let first = client.cookie.clone().expect("a new session has a cookie");
    assert!(first.starts_with("CounterResourcesServer___counter="), "{first}");
    client.cookie = Some(format!("{first}; a=b"));
    client.post("/increment_counter", json!({"count": 1})).await;
    assert_eq!(client.cookie, Some(format!("{first}; a=b")), "no cookie for a session that has one");
    client.post("/seed_session", json!({"initial_count": 5})).await;
    assert!(!client.cookie.as_ref().unwrap().contains("a=b"), "a seed sends it again");
    assert_eq!(
        client.post("/get_counter_value", json!({})).await,
        json!({"count": 1}),
        "of the same session"
    );
    client.cookie = Some(format!("{}x", client.cookie.unwrap()));
    assert_eq!(
        client.post("/get_counter_value", json!({})).await,
        json!({"count": 0}),
        "forged: a new session"
    );
}

#[tokio::test]
async fn refuses_as_fastapi_does() {
    let mut client = Client::new();
    let (status, reply) = client.ask("POST", "/seed_session", "{}").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let missing =
        json!({"type": "missing", "loc": ["body", "initial_count"], "msg": "Field required", "input": {}});
    assert_eq!(reply, json!({"detail": [missing]}));
    for (path, body) in [("/increment_counter", "{"), ("/increment_counter", ""), ("/verify", "[]")] {
        assert_eq!(client.ask("POST", path, body).await.0, StatusCode::UNPROCESSABLE_ENTITY, "{path} {body}");
    }
    let mut scalar = verify(1);
    scalar["response"] = json!(4);
    let (status, reply) = client.ask("POST", "/verify", scalar.to_string()).await;
    assert_eq!(
        (status, &reply["detail"][0]["loc"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!(["body", "response"]))
    );
    let not_found = (StatusCode::NOT_FOUND, json!({"detail": "Not Found"}));
    assert_eq!(client.ask("GET", "/nope", "").await, not_found);
    let not_allowed = (StatusCode::METHOD_NOT_ALLOWED, json!({"detail": "Method Not Allowed"}));
    assert_eq!(client.ask("GET", "/verify", "").await, not_allowed);
}

#[tokio::test]
async fn takes_a_conversation_of_megabytes() {
    let mut body = verify(0);
    body["response"]["output"] = json!("x".repeat(5 << 20));
    let verified = Client::new().post("/verify", body.clone()).await;
    assert_eq!(verified["response"], body["response"]);
}

/// The example as a process, killed when the test ends.
struct Process(Child);

impl Process {
    /// Cargo builds examples before it runs tests.
    fn start(socket: &Path) -> Self {
        let test = std::env::current_exe().unwrap();
        let example: PathBuf = test.ancestors().nth(2).unwrap().join("examples/counter");
        let mut command = Command::new(&example);
        command.envs([("GYM_WORKER_SLOT", "2"), ("GYM_WORKER_GENERATION", "7"), ("GYM_SERVER_NAME", "mine")]);
        command.env("GYM_WORKER_SOCKET", socket).env_remove("PORT").stderr(Stdio::null());
        let hint = format!("{} starts (cargo build --examples makes it)", example.display());
        Self(command.spawn().expect(&hint))
    }

    fn connect(&mut self, socket: &Path) -> UnixStream {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            match UnixStream::connect(socket) {
                Ok(stream) => return stream,
                Err(error) => assert!(Instant::now() < deadline, "never listened: {error}"),
            }
            assert_eq!(self.0.try_wait().unwrap(), None, "exited instead of listening");
            std::thread::yield_now();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Either fails only if it has exited, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn runs_as_a_worker_and_stops_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("worker");
    let mut process = Process::start(&socket);
    let mut stream = process.connect(&socket);
    stream.write_all(b"GET /whoami HTTP/1.1\r\nhost: w\r\nconnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let who: Value = serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(who, json!({"slot": 2, "generation": 7, "pid": process.0.id()}));

    let pid = nix::unistd::Pid::from_raw(process.0.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert!(process.0.wait().unwrap().success());
}
