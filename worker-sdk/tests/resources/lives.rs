//! Sessions that an agent seeds, from their start to their end.

use axum::http::StatusCode;
use gym_worker_sdk::Released;
use serde_json::json;

use super::common::{response, verify};
use super::{vault, word};

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
