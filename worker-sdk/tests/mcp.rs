//! The tools over MCP, asked without a socket.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod common;

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

#[tokio::test]
async fn a_seed_s_reply_says_how_to_reach_the_session_s_tools() {
    let mut client = tally();
    let legacy = client.ok("/seed_session", json!({"allowed": ["add", "none"]})).await;
    assert_eq!(legacy.as_object().unwrap().len(), 1);
    let said = key().verify(&token(&legacy["mcp"])).unwrap();
    assert_eq!(said.tools.unwrap(), ["add", "none"]);

    let first = client.another().ok("/seed_session", seed("s1", "r1", json!({"allowed": []}))).await;
    let said = key().verify(&token(&first["resources_tools"])).unwrap();
    assert_eq!(said, SessionToken { sid: "s1".into(), tools: Some(vec![]) });
    let again = client.another().ok("/seed_session", seed("s1", "r1", json!({"allowed": []}))).await;
    assert_eq!(again, first, "a repeat gets the same bytes");
    assert_eq!(token(&first["resources_tools"]), made("s1", Some(&[])));

    let plain = app().settings(Settings::new("tally")).into_router().unwrap();
    let mut plain = Client::new(plain);
    assert_eq!(plain.ok("/seed_session", json!({})).await, json!({}));
    let episode = plain.another().ok("/seed_session", seed("s1", "r1", json!({}))).await;
    assert_eq!(episode["resources_tools"], Value::Null);
    assert_eq!(plain.post("/mcp", json!({})).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_session_is_one_over_mcp_and_http() {
    let mut client = tally();
    let router = client.router.clone();
    let token = token(&client.ok("/seed_session", json!({})).await["mcp"]);
    assert_eq!(
        call(&router, &token, "add", json!({"count": 2})).await,
        json!({
            "content": [{"type": "text", "text": "{\"total\":2}"}],
            "structuredContent": {"total": 2}, "isError": false,
        })
    );
    assert_eq!(client.ok("/add", json!({"count": 3})).await, json!({"total": 5}));
    assert_eq!(call(&router, &token, "total", Value::Null).await["structuredContent"], json!({"total": 5}));
    for (name, reward) in [("mcp__other__add", -1.0), ("mcp__tally__add", 5.0)] {
        let mut client = client.another();
        let token = self::token(&client.ok("/seed_session", json!({})).await["mcp"]);
        call(&router, &token, "add", json!({"count": 5})).await;
        let output = json!([{"type": "function_call", "name": name, "arguments": "{}", "call_id": "c"}]);
        let mut body = verify(json!({}));
        body["response"] = response(output);
        let reply = client.ok("/verify", body).await;
        assert_eq!(reply["reward"], reward, "{name}");
        assert_eq!(reply["response"]["output"][0]["name"], name, "echoed as it came");
    }
}

#[tokio::test]
async fn a_token_reaches_its_own_session_and_no_other() {
    let mut client = tally();
    let router = client.router.clone();
    let mine = token(&client.ok("/seed_session", json!({})).await["mcp"]);
    let mut other = client.another();
    let theirs = token(&other.ok("/seed_session", seed("s1", "r1", json!({}))).await["resources_tools"]);
    // A cookie beside the token counts for nothing.
    let cookie = client.cookie.clone().unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "add", "arguments": {"count": 9}}});
    let headers = [("cookie", cookie.as_str()), ("x-nemo-gym-session-token", theirs.as_str())];
    ask(&router, "POST", "/mcp", &headers, &body.to_string()).await;
    assert_eq!(call(&router, &mine, "total", json!({})).await["structuredContent"]["total"], 0);
    assert_eq!(call(&router, &theirs, "total", json!({})).await["structuredContent"]["total"], 9);
    other.ok("/close_session", close("s1", "r1")).await;
    let closed = failure(&router, &theirs, "total", json!({})).await;
    assert!(closed.starts_with("HTTP 404 from POST /total: "), "{closed}");
    let unknown = failure(&router, &made("nobody's", None), "total", json!({})).await;
    assert!(unknown.starts_with("HTTP 404 from POST /total: "), "{unknown}");
}

#[tokio::test]
async fn without_a_good_token_nothing_is_called() {
    let router = tally().router;
    let missing = "Missing X-NeMo-Gym-Session-Token for Gym MCP tool call.";
    assert_eq!(failure(&router, "", "list", json!({})).await, missing);
    let invalid = "Invalid Gym MCP session token.";
    let elsewhere =
        SessionTokenKey::new("Other___tally").sign(&SessionToken { sid: "s".into(), tools: None });
    for token in ["rubbish", &format!("x{}", made("s", None)), &elsewhere] {
        assert_eq!(failure(&router, token, "list", json!({})).await, invalid, "{token}");
        assert_eq!(listed(&router, token).await, NAMES, "listing needs none");
    }
    let unknown = "Unknown tool: 'no\\'such\"'. Available tools: \
        ['add', 'broken', 'leave', 'list', 'panic', 'tea', 'total']";
    assert_eq!(failure(&router, "", "no'such\"", json!({})).await, unknown, "before the token");
}

#[tokio::test]
async fn an_allow_list_holds_for_listing_and_calling() {
    let router = tally().router;
    assert_eq!(listed(&router, &made("s", None)).await, NAMES);
    let token = made("s", Some(&["list", "add", "none"]));
    assert_eq!(listed(&router, &token).await, ["add", "list"]);
    let refused = failure(&router, &token, "total", json!({})).await;
    assert_eq!(refused, "Tool 'total' is not allowed for this session.");
    assert_eq!(
        call(&router, &token, "list", json!({})).await,
        json!({"content": [{"type": "text", "text": "[1,2]"}], "isError": false})
    );
    assert!(listed(&router, &made("s", Some(&[]))).await.is_empty());
}

#[tokio::test]
async fn what_fails_is_told_to_the_model() {
    let mut client = tally();
    let router = client.router.clone();
    let token = token(&client.ok("/seed_session", json!({})).await["mcp"]);
    let missing = r#"HTTP 422 from POST /add: [{"type": "missing", "loc": ["count"], "msg": "Field required", "input": {}, "url": "https://errors.pydantic.dev/2.14/v/missing"}]"#;
    assert_eq!(failure(&router, &token, "add", json!({})).await, missing);
    assert_eq!(failure(&router, &token, "add", Value::Null).await, missing);
    let word = r#"HTTP 422 from POST /add: [{"type": "int_parsing", "loc": ["count"], "msg": "Input should be a valid integer, unable to parse string as an integer", "input": "zw\u00f6lf", "url": "https://errors.pydantic.dev/2.14/v/int_parsing"}]"#;
    assert_eq!(failure(&router, &token, "add", json!({"count": "zwölf"})).await, word);
    for (tool, said) in [
        ("tea", "HTTP 418 from POST /tea: a teapot"),
        ("broken", "HTTP 500 from POST /broken: on fire"),
        ("panic", "HTTP 500 from POST /panic: the handler panicked: no such thing"),
    ] {
        assert_eq!(failure(&router, &token, tool, json!({})).await, said);
    }
    assert_eq!(call(&router, &token, "add", json!({"count": "2"})).await["isError"], false, "and goes on");
}

#[tokio::test]
async fn a_text_is_itself_and_an_end_is_told_to_the_gateway() {
    let mut client = tally();
    let token = token(&client.ok("/seed_session", json!({})).await["mcp"]);
    let reply = rpc(&client.router, &token, "tools/call", json!({"name": "leave"})).await;
    assert_eq!(reply.says(), Some("ended"));
    let said = json!({"content": [{"type": "text", "text": "bye \"you\""}], "isError": false});
    assert_eq!(reply.body["result"], said);
    let reply = rpc(&client.router, &token, "tools/call", json!({"name": "list"})).await;
    assert_eq!(reply.says(), None);
}

#[tokio::test]
async fn tools_are_listed_with_schemas_in_the_author_s_order() {
    let reply = rpc(&tally().router, "", "tools/list", json!({"cursor": "x"})).await;
    let tools = reply.body["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), NAMES.len());
    let any = json!({"type": "object", "additionalProperties": true});
    assert_eq!(tools[0], json!({"name": "total", "inputSchema": any}));
    let schema = json!({
        "properties": {"count": {"title": "Count", "type": "integer"}},
        "required": ["count"], "title": "AddRequest", "type": "object",
    });
    assert_eq!(tools[1], json!({"name": "add", "description": "Adds.", "inputSchema": schema}));
}

#[tokio::test]
async fn initialize_agrees_on_a_version() {
    let router = tally().router;
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": client});
        let result = json!({
            "protocolVersion": agreed,
            "capabilities": {"experimental": {}, "tools": {"listChanged": false}},
            "serverInfo": {"name": "tally", "version": env!("CARGO_PKG_VERSION")},
        });
        assert_eq!(rpc(&router, "", "initialize", params).await.body["result"], result);
    }
}

#[tokio::test]
async fn methods_are_answered_as_the_python_sdk_answers_them() {
    let router = tally().router;
    let invalid = json!({"code": -32602, "message": "Invalid request parameters", "data": ""});
    let not_found = json!({"code": -32601, "message": "Method not found"});
    for (method, params, error) in [
        ("no/such/method", json!({"a": 1}), &invalid),
        ("initialize", json!({"protocolVersion": "2025-06-18"}), &invalid),
        ("tools/call", json!({"name": "list", "arguments": [1]}), &invalid),
        ("tools/call", json!({"arguments": {}}), &invalid),
        ("tools/call", Value::Null, &invalid),
        ("resources/list", Value::Null, &not_found),
        ("prompts/list", json!({}), &not_found),
        ("logging/setLevel", json!({"level": "info"}), &not_found),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}),
            &not_found,
        ),
    ] {
        let reply = rpc(&router, "", method, params.clone()).await;
        assert_eq!(reply.body["error"], *error, "{method} {params}");
    }
    let ping = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
    let reply = ask(&router, "POST", "/mcp", &[], &ping(json!("abc"))).await;
    assert_eq!(reply.body, json!({"jsonrpc": "2.0", "id": "abc", "result": {}}));
    for body in [
        r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#,
        r#"{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}"#,
        r#"{"jsonrpc": "2.0", "method": "notifications/made_up"}"#,
        r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#,
        r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}"#,
        &ping(Value::Null),
    ] {
        let reply = ask(&router, "POST", "/mcp", &[], body).await;
        let seen = (reply.status, &reply.headers["content-type"], &reply.body);
        assert_eq!(seen, (StatusCode::ACCEPTED, &json_type(), &json!("")), "{body}");
    }
}

const PING: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;

#[tokio::test]
async fn every_path_below_is_the_same_endpoint() {
    let router = tally().router;
    for path in [
        "/mcp",
        "/mcp/",
        "/mcp/messages",
        "/mcp/a/b",
        "/ng-rollout/r-1/mcp",
        "/ng-rollout/r-1/mcp/",
        "/mcp?a=b",
    ] {
        let reply = ask(&router, "POST", path, &[], PING).await;
        assert_eq!((reply.status, &reply.body["result"]), (StatusCode::OK, &json!({})), "{path}");
    }
    for path in ["/mcpx", "/MCP", "//mcp"] {
        assert_eq!(ask(&router, "POST", path, &[], PING).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn what_is_no_message_is_refused() {
    let router = tally().router;
    for (body, code, said) in [
        (
            "{",
            -32700,
            "Parse error: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        ("", -32700, "Parse error: Expecting value: line 1 column 1 (char 0)"),
        ("{\"ü\":\n tru}", -32700, "Parse error: Expecting value: line 2 column 2 (char 7)"),
        ("[1]", -32602, "Validation error: a message of JSON-RPC is one object, not a batch"),
        (r#"{"a": 1}"#, -32602, "Validation error: `jsonrpc` must be \"2.0\""),
        (
            r#"{"jsonrpc": "1.0", "id": 1, "method": "ping"}"#,
            -32602,
            "Validation error: `jsonrpc` must be \"2.0\"",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": 5}"#,
            -32602,
            "Validation error: `method` must be a string",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}"#,
            -32602,
            "Validation error: `params` must be an object",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 18446744073709551615, "method": "ping"}"#,
            -32602,
            "Validation error: `id` must be a string or an integer of 64 bits",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 1}"#,
            -32602,
            "Validation error: neither a request, a notification nor a response",
        ),
    ] {
        let reply = ask(&router, "POST", "/mcp", &[], body).await;
        let error = json!({"jsonrpc": "2.0", "id": "server-error", "error": {"code": code, "message": said}});
        assert_eq!((reply.status, &reply.body), (StatusCode::BAD_REQUEST, &error), "{body}");
    }
    let deep = "[".repeat(600);
    let reply = ask(&router, "POST", "/mcp", &[], &deep).await;
    assert_eq!(reply.body["error"]["message"], "Parse error: nested too deep to be read");
    let marked = format!("\u{feff}{PING}");
    assert_eq!(ask(&router, "POST", "/mcp", &[], &marked).await.status, StatusCode::OK, "a byte order mark");
}

#[tokio::test]
async fn headers_are_checked_as_the_python_sdk_checks_them() {
    let router = tally().router;
    let no_json = "Not Acceptable: Client must accept application/json";
    let no_events = "Not Acceptable: Client must accept text/event-stream";
    let version = "Bad Request: Unsupported protocol version: 1999-01-01. \
        Supported versions: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25";
    let media_type = "Unsupported Media Type: Content-Type must be application/json";
    for (method, header, value, status, said) in [
        ("POST", "accept", "", 406, no_json),
        ("POST", "accept", "text/event-stream", 406, no_json),
        ("POST", "accept", "*/*", 406, no_json),
        ("POST", "accept", "application/*, text/*", 406, no_json),
        ("POST", "content-type", "application/jsonp", 415, media_type),
        ("POST", "content-type", "Application/JSON", 415, media_type),
        ("POST", "mcp-protocol-version", "1999-01-01", 400, version),
        ("GET", "accept", "", 406, no_events),
        ("GET", "accept", "application/json", 406, no_events),
        ("GET", "mcp-protocol-version", "1999-01-01", 400, version),
        ("DELETE", "x", "", 405, "Method Not Allowed: Session termination not supported"),
        ("PUT", "x", "", 405, "Method Not Allowed"),
        ("OPTIONS", "x", "", 405, "Method Not Allowed"),
    ] {
        let reply = ask(&router, method, "/mcp", &[(header, value)], PING).await;
        let error =
            json!({"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": said}});
        assert_eq!((reply.status.as_u16(), &reply.body), (status, &error), "{method} {header}: {value}");
        assert_eq!(reply.headers["content-type"], json_type());
        let allow = reply.headers.get("allow").map(|allow| allow.to_str().unwrap());
        assert_eq!(allow, (said == "Method Not Allowed").then_some("GET, POST, DELETE"));
    }
    for value in ["", "text/plain"] {
        let reply = ask(&router, "POST", "/mcp", &[("content-type", value)], PING).await;
        assert_eq!((reply.status.as_u16(), reply.body), (400, json!("Invalid Content-Type header")));
        assert!(!reply.headers.contains_key("content-type"));
    }
    for (header, value) in [
        ("accept", "application/json"),
        ("content-type", "application/json; charset=utf-8"),
        ("mcp-protocol-version", "2025-06-18"),
        ("mcp-session-id", "nobody's"),
        ("origin", "http://evil.test"),
        ("host", "anything"),
    ] {
        let reply = ask(&router, "POST", "/mcp", &[(header, value)], PING).await;
        assert_eq!(reply.status, StatusCode::OK, "{header}: {value}");
    }
    let initialize = r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}"#;
    let reply = ask(&router, "POST", "/mcp", &[("mcp-protocol-version", "1999-01-01")], initialize).await;
    assert_eq!(reply.status, StatusCode::OK, "the version is only being agreed on");
}

#[tokio::test]
async fn a_body_over_the_limit_is_413() {
    let mut settings = settings();
    settings.max_body_bytes = 60;
    let router = app().settings(settings).into_router().unwrap();
    assert_eq!(ask(&router, "POST", "/mcp", &[], PING).await.status, StatusCode::OK);
    let reply = ask(&router, "POST", "/mcp", &[], &format!("{PING}{}", " ".repeat(60))).await;
    assert_eq!(reply.code(), (413, "body_too_large"));
}

#[tokio::test(start_paused = true)]
async fn a_get_opens_a_stream_that_stays_open() {
    let request = Request::get("/mcp").header("accept", "text/event-stream").body(Body::empty()).unwrap();
    let reply = tally().router.oneshot(request).await.unwrap();
    let head =
        |headers: &HeaderMap, name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(reply.status(), StatusCode::OK);
    assert_eq!(head(reply.headers(), "content-type").unwrap(), "text/event-stream");
    assert_eq!(head(reply.headers(), "cache-control").unwrap(), "no-cache, no-transform");
    assert_eq!(head(reply.headers(), "x-accel-buffering").unwrap(), "no");
    assert_eq!(head(reply.headers(), "set-cookie"), None);
    let mut body = reply.into_body();
    for _ in 0..3 {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(frame.starts_with(b":"), "a comment, to see whether the client is there: {frame:?}");
    }
}

#[tokio::test]
async fn the_config_decides_and_the_author_s_default_does_not() {
    let served = async |app: ResourcesApp<Tally>, block: &str| {
        let settings = Settings::new("tally").with_block(block).unwrap();
        let router = app.settings(settings).into_router().unwrap();
        ask(&router, "POST", "/mcp", &[], PING).await.status == StatusCode::OK
    };
    assert!(served(app().tools_over_mcp(), "{}").await);
    assert!(!served(app().tools_over_mcp(), r#"{"expose_tools_over_mcp": false}"#).await);
    assert!(!served(app(), "{}").await);
    assert!(served(app(), r#"{"expose_tools_over_mcp": true}"#).await);
}

#[tokio::test]
async fn a_secret_of_the_server_s_own_signs_tokens() {
    let mut settings = settings();
    settings.session_secret = Some("s3cret".into());
    let mut client = Client::new(app().settings(settings).into_router().unwrap());
    let token = token(&client.ok("/seed_session", json!({})).await["mcp"]);
    assert!(key().verify(&token).is_err());
    assert!(SessionTokenKey::new("s3cret").verify(&token).is_ok());
    let forged = failure(&client.router, &made("s", None), "list", json!({})).await;
    assert_eq!(forged, "Invalid Gym MCP session token.");
}

#[tokio::test]
async fn what_mcp_cannot_serve_is_refused_at_the_start() {
    let refused = |app: ResourcesApp<Tally>| app.settings(settings()).into_router().unwrap_err().to_string();
    for name in ["verify", "seed_session", "close_session", "aggregate_metrics", "mcp"] {
        assert!(refused(app().tool(name, total)).contains(&format!("/{name} is there already")), "{name}");
    }
    assert!(refused(app().tool("a.b", total)).contains("\"a.b\""));
    let route = axum::routing::get(async || "");
    assert!(refused(app().route("/mcp/{x}", route)).contains("/mcp/{x} is there already"));
    let array = refused(app().tool("sum", |_: Arc<Tally>, _: Vec<i64>| async { Ok(0) }));
    assert!(array.contains("sum") && array.contains("must be an object"), "{array}");
}
