//! Sessions and their tokens; tools listed and called.

use super::*;

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
