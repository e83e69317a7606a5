//! Sessions that an environment server seeds and closes.

use std::time::Duration;

use gym_worker_sdk::Released;
use serde_json::json;

use super::common::{close, seed, verify};
use super::{vault, word};

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
async fn a_close_that_fails_may_be_tried_again() {
    let (mut client, released) = vault();
    client.ok("/seed_session", seed("s1", "r1", word("sticky"))).await;
    assert_eq!(client.post("/close_session", close("s1", "r1")).await.status.as_u16(), 503);
    assert_eq!(client.ok("/read", json!({})).await, "sticky");
    client.ok("/close_session", close("s1", "r1")).await;
    assert_eq!(*released.lock().unwrap(), [("sticky".to_owned(), Released::Closed)]);
}
