//! Bad input, the protocol's other routes, and a server without state.

use gym_worker_sdk::{
    Empty, ResourcesApp, ResourcesServer, Result, Session, Settings, Verdict, VerifyRequest,
};
use serde_json::json;

use super::common::{Client, close, response, seed, verify};
use super::{Vault, double, server, vault, word};

#[tokio::test]
async fn bad_input_is_refused_as_fastapi_refuses_it() {
    let (mut client, _) = vault();
    let reply = client.post("/seed_session", json!({})).await;
    let missing = json!({"type": "missing", "loc": ["body", "word"], "msg": "Field required", "input": {}});
    assert_eq!((reply.status.as_u16(), reply.body), (422, json!({"detail": [missing]})));
    assert!(client.cookie.take().is_some(), "a start's every reply has the cookie");
    let reply = client.post("/verify", json!({"responses_create_params": {"input": ""}})).await;
    let at: Vec<_> = reply.body["detail"].as_array().unwrap().iter().map(|problem| &problem["loc"]).collect();
    assert_eq!(at, [&json!(["body", "response"]), &json!(["body", "guess"])]);
    for (path, body) in [("/append", "{"), ("/append", ""), ("/verify", "[]"), ("/double", r#"{"text": 1}"#)]
    {
        assert_eq!(client.ask("POST", path, body).await.status.as_u16(), 422, "{path} {body}");
    }
    assert_eq!(client.ask("POST", "/nope", "{}").await.body, json!({"detail": "Not Found"}));
    let reply = client.ask("GET", "/verify", "").await;
    assert_eq!((reply.status.as_u16(), reply.body), (405, json!({"detail": "Method Not Allowed"})));
    assert_eq!(reply.headers["allow"], "POST");
    let reply = client.ask("POST", "/verify/?a=b", "").await;
    assert_eq!((reply.status.as_u16(), &reply.headers["location"]), (307, &"/verify?a=b".parse().unwrap()));
    assert_eq!(client.cookie, None);
}

#[tokio::test]
async fn a_body_over_the_limit_is_413() {
    let mut settings = Settings::new("vault");
    settings.max_body_bytes = 100;
    let (mut client, _) = server(settings);
    let reply = client.post("/double", json!({"text": "x".repeat(100)})).await;
    assert_eq!(reply.code(), (413, "body_too_large"));
}

#[tokio::test]
async fn health_and_the_protocol_s_other_routes_answer() {
    let (mut client, _) = vault();
    for path in ["/", "/health", "/healthz", "/livez", "/readyz"] {
        assert_eq!(client.ask("GET", path, "").await.body, json!({"status": "ok"}), "{path}");
        assert_eq!(client.ask("HEAD", path, "").await.status, 405, "{path}");
    }
    assert_eq!(client.ask("GET", "/reverify_mode", "").await.body, "unknown");
    let metrics = client.ok("/aggregate_metrics", json!({"verify_responses": [{"reward": 1.0}]})).await;
    assert_eq!(metrics["key_metrics"]["mean/reward"], 1.0);
    let prefixed = client.ok("/ng-rollout/r1/seed_session", word("ab")).await;
    assert_eq!(prefixed, json!({}));
    assert!(client.cookie.is_some());
}

#[tokio::test]
async fn routes_that_cannot_stand_side_by_side_are_named() {
    let app = ResourcesApp::new(Vault::default()).tool("verify", double).tool("a b", double);
    let said = app.settings(Settings::new("vault")).into_router().unwrap_err().to_string();
    assert!(said.contains("/verify is there already") && said.contains("\"a b\""), "{said}");
}

/// A server without state.
struct Plain;

impl ResourcesServer for Plain {
    const CLASS: &'static str = "PlainServer";
    type Seed = Empty;
    type State = ();
    type Verify = Empty;
    type Details = Empty;

    async fn verify(&self, _: Session<()>, request: VerifyRequest<Empty>) -> Result<Verdict> {
        Ok(Verdict::reward(f64::from(request.response.function_calls().any(|call| call.name == "square"))))
    }
}

#[tokio::test]
async fn a_server_without_state_needs_no_seed_and_has_no_fences() {
    let router = ResourcesApp::new(Plain).settings(Settings::new("plain")).into_router().unwrap();
    let mut client = Client::new(router);
    let call = json!([{"type": "function_call", "name": "square", "arguments": "{}", "call_id": "c"}]);
    let mut body = verify(json!({}));
    body["response"] = response(call);
    assert_eq!(client.ok("/verify", body).await["reward"], 1.0);
    assert_eq!(client.cookie, None);
    for _ in 0..2 {
        assert_eq!(client.another().ok("/seed_session", json!({})).await, json!({}));
        client.another().ok("/seed_session", seed("s1", "r1", json!({}))).await;
        client.another().ok("/close_session", close("s1", "r1")).await;
    }
}
