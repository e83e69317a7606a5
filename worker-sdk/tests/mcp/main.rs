//! The tools over MCP, asked without a socket.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

#[path = "../common/mod.rs"]
mod common;
mod sessions;
mod transport;
mod weather;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use common::{Client, Reply, close, response, seed, verify};
use gym_wire::token::{SessionToken, SessionTokenKey};
use gym_worker_sdk::{
    Empty, Failure, ResourcesApp, ResourcesServer, Result, Session, Settings, Verdict, VerifyRequest,
};
use http_body_util::BodyExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tower::ServiceExt as _;

/// Counts; the reward is what it counted to, if the model called `add` by that name.
struct Tally;

impl ResourcesServer for Tally {
    const CLASS: &'static str = "TallyServer";
    type Seed = Empty;
    type State = i64;
    type Verify = Empty;
    type Details = Empty;

    async fn verify(&self, session: Session<i64>, request: VerifyRequest<Empty>) -> Result<Verdict> {
        let names: Vec<_> = request.response.function_calls().map(|call| call.name.as_str()).collect();
        let total = *session.state().await?;
        Ok(Verdict::reward(if names == ["add"] { total as f64 } else { -1.0 }))
    }

    fn allowed_tools(&self, seed: &Map<String, Value>) -> Option<Vec<String>> {
        let names = seed.get("allowed")?.as_array()?;
        Some(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

#[derive(Deserialize, JsonSchema)]
struct AddRequest {
    count: i64,
}

#[derive(Serialize)]
struct Total {
    total: i64,
}

async fn add(session: Session<i64>, AddRequest { count }: AddRequest) -> Result<Total> {
    let mut total = session.state().await?;
    *total += count;
    Ok(Total { total: *total })
}

async fn total(session: Session<i64>) -> Result<Total> {
    Ok(Total { total: *session.state().await? })
}

async fn leave(session: Session<i64>) -> Result<String> {
    session.end().await;
    Ok("bye \"you\"".into())
}

fn app() -> ResourcesApp<Tally> {
    ResourcesApp::new(Tally)
        .tool("total", total)
        .described_tool("add", "Adds.", add)
        .tool("leave", leave)
        .tool("list", |_: Arc<Tally>| async { Ok([1, 2]) })
        .tool("tea", |_: Arc<Tally>| async { Err::<(), _>(Failure::new(418, "a teapot")) })
        .tool("broken", |_: Arc<Tally>| async { Err::<(), Failure>(std::io::Error::other("on fire").into()) })
        .tool("panic", |_: Arc<Tally>| async { panic!("no such thing") as Result<()> })
}

const NAMES: [&str; 7] = ["total", "add", "leave", "list", "tea", "broken", "panic"];

fn settings() -> Settings {
    let mut settings = Settings::new("tally");
    settings.expose_tools_over_mcp = true;
    settings
}

fn tally() -> Client {
    Client::new(app().settings(settings()).into_router().unwrap())
}

/// Asks as the MCP clients do, unless `headers` say otherwise; an empty value leaves a header out.
async fn ask(router: &Router, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut sent = vec![
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("host", "tally:8000"),
    ];
    sent.retain(|(name, _)| !headers.iter().any(|(other, _)| other == name));
    sent.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in sent {
        request = request.header(name, value);
    }
    let reply = router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let (status, headers) = (reply.status(), reply.headers().clone());
    let bytes = reply.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
    assert!(
        !headers.contains_key(header::SET_COOKIE) && !headers.contains_key("mcp-session-id"),
        "{headers:?}"
    );
    Reply { status, headers, body }
}

async fn rpc(router: &Router, token: &str, method: &str, params: Value) -> Reply {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let reply = ask(router, "POST", "/mcp", &[("x-nemo-gym-session-token", token)], &body).await;
    assert_eq!((reply.status, &reply.headers["content-type"]), (StatusCode::OK, &json_type()), "{reply:?}");
    assert_eq!((&reply.body["jsonrpc"], &reply.body["id"]), (&json!("2.0"), &json!(7)));
    reply
}

fn json_type() -> header::HeaderValue {
    header::HeaderValue::from_static("application/json")
}

async fn call(router: &Router, token: &str, tool: &str, arguments: Value) -> Value {
    rpc(router, token, "tools/call", json!({"name": tool, "arguments": arguments})).await.body["result"]
        .take()
}

/// What a call says that failed.
async fn failure(router: &Router, token: &str, tool: &str, arguments: Value) -> String {
    let result = call(router, token, tool, arguments).await;
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
    assert_eq!(result, json!({"content": [{"type": "text", "text": text}], "isError": true}));
    text
}

async fn listed(router: &Router, token: &str) -> Vec<String> {
    let mut reply = rpc(router, token, "tools/list", json!({})).await;
    let Value::Array(tools) = reply.body["result"]["tools"].take() else { panic!("{reply:?}") };
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The token in an access, all of which must be as expected.
fn token(access: &Value) -> String {
    let token = access["headers"]["X-NeMo-Gym-Session-Token"].as_str().unwrap_or_else(|| panic!("{access}"));
    let whole = json!({
        "server_name": "tally", "url_path": "/mcp", "transport": "http",
        "headers": {"X-NeMo-Gym-Session-Token": token},
    });
    assert_eq!(*access, whole);
    token.to_owned()
}

fn key() -> SessionTokenKey {
    SessionTokenKey::new("TallyServer___tally")
}

fn made(sid: &str, tools: Option<&[&str]>) -> String {
    let tools = tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
    key().sign(&SessionToken { sid: sid.to_owned(), tools })
}

const PING: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
