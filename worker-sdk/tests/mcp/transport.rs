//! The transport, as the Python SDK has it.

use super::*;

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
