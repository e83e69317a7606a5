//! The seed/verify protocol, asked without a socket.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::routing::post;
use common::{Client, close, response, seed, verify};
use gym_worker_sdk::{
    Empty, Failure, Released, ResourcesApp, ResourcesServer, Result, SeedError, SeedInfo, Seeded, Session,
    Settings, Start, Verdict, VerifyRequest,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Every state that was released, and why.
type Releases = Arc<Mutex<Vec<(String, Released)>>>;

/// Keeps a word for each session; the reward is 1 for who names it.
#[derive(Default)]
struct Vault {
    released: Releases,
}

#[derive(Deserialize)]
struct Word {
    word: String,
    #[serde(default)]
    observation: Option<String>,
    #[serde(default)]
    keep_open: bool,
}

#[derive(Deserialize)]
struct Guess {
    guess: String,
}

#[derive(Serialize)]
struct Details {
    length: usize,
}

struct Kept {
    word: String,
    keep_open: bool,
    close_fails: bool,
}

impl gym_worker_sdk::SessionState for Kept {}

impl ResourcesServer for Vault {
    const CLASS: &'static str = "VaultServer";
    type Seed = Word;
    type State = Kept;
    type Verify = Guess;
    type Details = Details;

    async fn seed_session(&self, _: SeedInfo, seed: Word) -> Result<Seeded<Kept>, SeedError> {
        match seed.word.as_str() {
            "" => return Err(SeedError::rejected("an empty word")),
            "taken" => return Err(SeedError::conflict("that word is taken")),
            "panic" => panic!("no such word"),
            _ => {}
        }
        let close_fails = seed.word == "sticky";
        let seeded = Seeded::new(Kept { word: seed.word, keep_open: seed.keep_open, close_fails });
        Ok(match seed.observation {
            Some(text) => seeded.observation(text).field("hint", 1),
            None => seeded,
        })
    }

    async fn verify(
        &self,
        session: Session<Kept>,
        request: VerifyRequest<Guess>,
    ) -> Result<Verdict<Details>> {
        let kept = session.state().await?;
        match request.body.guess.as_str() {
            "panic" => panic!("no such guess"),
            "fail" => return Err(Failure::new(418, "a teapot")),
            "nan" => return Ok(Verdict::reward(f64::NAN).with(Details { length: 0 })),
            _ => {}
        }
        if kept.keep_open {
            session.keep_open();
        }
        let is_right = kept.word == request.body.guess;
        Ok(Verdict::reward(f64::from(is_right)).with(Details { length: kept.word.len() }))
    }

    async fn close_session(&self, _: &str, kept: &mut Kept) -> Result<()> {
        match std::mem::take(&mut kept.close_fails) {
            true => Err(Failure::new(503, "not now")),
            false => Ok(()),
        }
    }

    async fn release(&self, _: Arc<str>, kept: Kept, why: Released) {
        self.released.lock().unwrap().push((kept.word, why));
    }
}

#[derive(Deserialize, JsonSchema)]
struct Append {
    text: String,
}

async fn append(session: Session<Kept>, Append { text }: Append) -> Result<String> {
    let mut kept = session.state().await?;
    kept.word += &text;
    Ok(kept.word.clone())
}

async fn read(session: Session<Kept>) -> Result<String> {
    Ok(session.state().await?.word.clone())
}

async fn double(Append { text }: Append) -> Result<String> {
    Ok(text.repeat(2))
}

async fn broken() -> Result<()> {
    Err(std::io::Error::other("the disk is on fire").into())
}

fn server(settings: Settings) -> (Client, Releases) {
    let vault = Vault::default();
    let released = vault.released.clone();
    let begin = async |start: Start<Kept>, Json(word): Json<Word>| -> Result<Json<String>> {
        let kept = Kept { word: word.word, keep_open: false, close_fails: false };
        Ok(Json(start.open(kept).await?.id().to_owned()))
    };
    let router = ResourcesApp::new(vault)
        .tool("append", append)
        .tool("read", read)
        .tool("double", double)
        .tool("broken", |_: Arc<Vault>| broken())
        .start_route("/begin", post(begin))
        .end_route("/leave", post(async |session: Session<Kept>| session.end().await))
        .route("/peek", post(async |session: Session<Kept>| Json(session.id().to_owned())))
        .settings(settings)
        .into_router()
        .unwrap();
    (Client::new(router), released)
}

fn vault() -> (Client, Releases) {
    server(Settings::new("vault"))
}

fn word(word: &str) -> Value {
    json!({"word": word})
}

#[tokio::test]
async fn a_legacy_session_lives_from_its_seed_to_its_verify() {
    let (mut client, released) = vault();
    assert_eq!(client.ok("/seed_session", json!({"word": "ab", "more": 1})).await, json!({}));
    assert!(client.cookie.as_ref().unwrap().starts_with("VaultServer___vault="));
    assert_eq!(client.ok("/append", json!({"text": "c"})).await, "abc");
    let reply = client.post("/verify", verify(json!({"guess": "abc", "other": 1}))).await;
    let mut expected = verify(json!({}));
    expected.as_object_mut().unwrap().extend(
        json!({"reward": 1.0, "mask_sample": false, "failure_kind": null, "failure_reason": null, "length": 3})
            .as_object()
            .unwrap()
            .clone(),
    );
    assert_eq!((reply.body.to_string(), reply.says()), (expected.to_string(), None));
    assert_eq!(*released.lock().unwrap(), [("abc".to_owned(), Released::Verified)]);
    assert_eq!(client.post("/read", json!({})).await.code(), (404, "unknown_session"));
}

#[tokio::test]
async fn a_repeated_verify_gets_its_verdict_and_another_the_masked_sample() {
    let (mut client, _) = vault();
    client.ok("/seed_session", word("ab")).await;
    let first = client.ok("/verify", verify(json!({"guess": "ab"}))).await;
    assert_eq!(client.ok("/verify", verify(json!({"guess": "ab"}))).await, first);
    let masked = client.ok("/verify", verify(json!({"guess": "other"}))).await;
    assert_eq!((&masked["reward"], &masked["mask_sample"]), (&json!(0.0), &json!(true)));
    assert_eq!(masked["failure_kind"], "session_lost");
    assert_eq!(masked["response"], response(json!([])));
}

#[tokio::test]
async fn an_unknown_session_is_masked_at_verify_and_404_for_tools() {
    let (mut client, _) = vault();
    let masked = client.ok("/verify", verify(json!({"guess": "ab"}))).await;
    assert_eq!(masked["failure_kind"], "session_lost");
    assert_eq!(client.post("/append", json!({"text": "c"})).await.code(), (404, "unknown_session"));
    assert_eq!(client.post("/peek", json!({})).await.code(), (404, "unknown_session"));
    assert_eq!(client.post("/leave", json!({})).await.code(), (404, "unknown_session"));
    assert_eq!(client.cookie, None, "nothing used a session");
    assert_eq!(client.ok("/double", json!({"text": "c"})).await, "cc", "it takes no session");
}

#[tokio::test]
async fn a_verify_may_keep_its_session_open() {
    let (mut client, released) = vault();
    client.ok("/seed_session", json!({"word": "ab", "keep_open": true})).await;
    let reply = client.post("/verify", verify(json!({"guess": "ab"}))).await;
    assert_eq!(reply.says(), Some("open"));
    assert_eq!(client.ok("/read", json!({})).await, "ab");
    assert_eq!(client.ok("/close_session", json!({})).await, json!({}));
    assert_eq!(*released.lock().unwrap(), [("ab".to_owned(), Released::Closed)]);
}

#[tokio::test]
async fn an_episode_is_seeded_once_and_lives_until_its_close() {
    let (mut client, released) = vault();
    let body = seed("s1", "r1", json!({"word": "ab", "observation": ""}));
    let first = client.ok("/seed_session", body.clone()).await;
    let expected = json!({"resources_session_id": "s1", "resources_tools": null, "sandbox_access": null, "observation": ""});
    assert_eq!(first, expected);
    client.ok("/append", json!({"text": "c"})).await;
    let mut without_cookie = client.another();
    assert_eq!(without_cookie.ok("/seed_session", body).await, first);
    assert_eq!(without_cookie.ok("/read", json!({})).await, "abc", "the repeat names the same session");
    let other = client.another().post("/seed_session", seed("s1", "r2", word("x"))).await;
    assert_eq!(other.code(), (409, "session_conflict"));

    let verdict = client.ok("/verify", verify(json!({"guess": "abc"}))).await;
    assert_eq!(client.ok("/read", json!({})).await, "abc", "its close follows");
    assert_eq!(
        client.another().post("/close_session", close("s1", "r2")).await.code(),
        (409, "session_conflict")
    );
    for _ in 0..2 {
        let closed = client.another().ok("/close_session", close("s1", "r1")).await;
        assert_eq!(closed, json!({"resources_session_id": "s1"}));
    }
    assert_eq!(*released.lock().unwrap(), [("abc".to_owned(), Released::Closed)]);
    assert_eq!(client.post("/read", json!({})).await.code(), (404, "unknown_session"));
    assert_eq!(client.ok("/verify", verify(json!({"guess": "abc"}))).await, verdict, "a lost reply");
    assert_eq!(client.ok("/verify", verify(json!({"guess": "no"}))).await["failure_kind"], "session_lost");
    for cookie in [None, client.cookie.clone()] {
        client.cookie = cookie;
        let late = client.post("/seed_session", seed("s1", "r1", word("ab"))).await;
        assert_eq!(late.code(), (409, "session_closed"));
    }
    assert_eq!(
        client.post("/seed_session", word("ab")).await.code(),
        (409, "session_closed"),
        "a legacy one too"
    );
}

#[tokio::test]
async fn a_close_before_the_seed_fences_it() {
    let (mut client, released) = vault();
    client.ok("/close_session", close("s1", "r1")).await;
    assert_eq!(
        client.post("/seed_session", seed("s1", "r1", word("ab"))).await.code(),
        (409, "session_closed")
    );
    assert!(released.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_fence_falls_after_the_window() {
    let (mut client, _) = vault();
    client.ok("/close_session", close("s1", "r1")).await;
    tokio::time::sleep(Duration::from_secs(400)).await;
    client.ok("/seed_session", seed("s1", "r1", word("ab"))).await;
}

#[tokio::test]
async fn seeds_are_refused_and_leave_nothing() {
    let (mut client, _) = vault();
    for (body, code) in [
        (word(""), (422, "seed_rejected")),
        (word("taken"), (409, "session_conflict")),
        (seed("s1", "r1", word("")), (422, "seed_rejected")),
        (seed("s1", "r1", json!({})), (422, "")),
        (seed("s1", "bad id", word("ab")), (422, "")),
        (seed("", "r1", word("ab")), (422, "")),
        (json!({"resources_session_id": "s1"}), (422, "")),
        (word("panic"), (500, "")),
        (json!([]), (422, "")),
    ] {
        let reply = client.another().post("/seed_session", body.clone()).await;
        assert_eq!(reply.code(), code, "{body}: {reply:?}");
    }
    client.ok("/seed_session", seed("s1", "r1", word("ab"))).await;
    let mismatch = client.post("/seed_session", seed("s2", "r1", word("ab"))).await;
    assert_eq!(mismatch.code(), (409, "session_mismatch"));
    assert_eq!(client.ok("/read", json!({})).await, "ab");
}

#[tokio::test]
async fn a_legacy_seed_starts_anew_and_one_that_fails_changes_nothing() {
    let (mut client, released) = vault();
    client.ok("/seed_session", word("ab")).await;
    assert_eq!(client.post("/seed_session", word("")).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(client.ok("/read", json!({})).await, "ab");
    let with_observation = client.ok("/seed_session", json!({"word": "cd", "observation": "look"})).await;
    assert_eq!(with_observation, json!({"hint": 1}));
    assert_eq!(client.ok("/read", json!({})).await, "cd");
    while released.lock().unwrap().is_empty() {
        tokio::task::yield_now().await; // what was is released beside the new session
    }
    assert_eq!(*released.lock().unwrap(), [("ab".to_owned(), Released::Restarted)]);
    client.ok("/verify", verify(json!({"guess": "cd"}))).await;
    client.ok("/seed_session", word("ef")).await;
    assert_eq!(client.ok("/read", json!({})).await, "ef", "an ended session is not fenced");
}

#[tokio::test]
async fn a_failing_handler_leaves_the_session_as_it_was() {
    let (mut client, _) = vault();
    client.ok("/seed_session", word("ab")).await;
    let cookie = client.cookie.clone();
    let panicked = client.post("/verify", verify(json!({"guess": "panic"}))).await;
    assert_eq!(panicked.body, "the handler panicked: no such guess");
    assert_eq!(panicked.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(client.cookie, cookie, "no cookie on a 500");
    let failed = client.post("/verify", verify(json!({"guess": "fail"}))).await;
    assert_eq!((failed.status.as_u16(), failed.body), (418, json!({"detail": "a teapot"})));
    let no_number = client.post("/verify", verify(json!({"guess": "nan"}))).await;
    assert_eq!(no_number.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(client.post("/broken", json!({})).await.body, "the disk is on fire");
    assert_eq!(client.ok("/verify", verify(json!({"guess": "ab"}))).await["reward"], 1.0);
}

#[tokio::test]
async fn a_close_that_fails_may_be_tried_again() {
    let (mut client, released) = vault();
    client.ok("/seed_session", seed("s1", "r1", word("sticky"))).await;
    assert_eq!(client.post("/close_session", close("s1", "r1")).await.status.as_u16(), 503);
    assert_eq!(client.ok("/read", json!({})).await, "sticky");
    client.ok("/close_session", close("s1", "r1")).await;
    assert_eq!(*released.lock().unwrap(), [("sticky".to_owned(), Released::Closed)]);
}

#[tokio::test]
async fn routes_of_the_author_s_own_start_use_and_end_sessions() {
    let (mut client, released) = vault();
    let id = client.ok("/begin", word("ab")).await;
    assert_eq!(client.ok("/peek", json!({})).await, id);
    let left = client.post("/leave", json!({})).await;
    assert_eq!((left.status, left.says()), (StatusCode::OK, Some("ended")));
    assert_eq!(*released.lock().unwrap(), [("ab".to_owned(), Released::Ended)]);
    client.ok("/begin", word("cd")).await;
    assert_eq!(client.ok("/peek", json!({})).await, id, "the same session again");
    client.ok("/close_session", json!({})).await;
    assert_eq!(client.post("/begin", word("ef")).await.code(), (409, "session_closed"));
}

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
