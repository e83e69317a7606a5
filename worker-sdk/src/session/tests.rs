//! The store, on a paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::record::Phase;
use super::store::{Limits, Store};
use super::{Caller, Released, Session, SessionCookie};

const WINDOW: Duration = Duration::from_secs(300);
const IDLE: Duration = Duration::from_secs(3600);

/// Every release: whose, of what, and why.
type Releases = Arc<Mutex<Vec<(String, u32, Released)>>>;

fn store() -> (Arc<Store<u32>>, Releases) {
    let releases = Releases::default();
    let seen = releases.clone();
    let hook = move |id: Arc<str>, state: u32, why| {
        let seen = seen.clone();
        Box::pin(async move { seen.lock().unwrap().push((id.to_string(), state, why)) }) as _
    };
    (Store::new(Limits { window: WINDOW, idle: IDLE }, Box::new(hook)), releases)
}

fn taken(releases: &Releases) -> Vec<(String, u32, Released)> {
    std::mem::take(&mut releases.lock().unwrap())
}

async fn open(store: &Arc<Store<u32>>, id: &str, state: u32) {
    store.lock(&caller(id)).await.open(state, None);
}

fn caller(id: &str) -> Caller {
    Caller::of(&SessionCookie::new("A", "b", None), id)
}

fn session(store: &Arc<Store<u32>>, id: &str) -> Option<Session<u32>> {
    store.session(&caller(id)).ok()
}

/// Lets the tasks run that are ready.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_there_from_its_seed_to_its_end() {
    let (store, releases) = store();
    assert!(session(&store, "a").is_none());
    open(&store, "a", 1).await;
    let a = session(&store, "a").unwrap();
    *a.state().await.unwrap() += 1;
    a.end().await;
    assert_eq!(taken(&releases), [("a".into(), 2, Released::Ended)]);
    assert!(session(&store, "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_lock_without_a_seed_leaves_nothing() {
    let (store, _) = store();
    let first = store.lock(&caller("a")).await;
    let waits = tokio::spawn({
        let store = store.clone();
        async move { store.lock(&caller("a")).await.open(7, None) }
    });
    settle().await;
    assert_eq!(store.len(), 1);
    drop(first);
    waits.await.unwrap();
    assert!(session(&store, "a").is_some(), "whoever waited has the session's own record");
    drop(store.lock(&caller("b")).await);
    assert_eq!(store.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_start_anew_releases_what_was() {
    let (store, releases) = store();
    open(&store, "a", 1).await;
    open(&store, "a", 2).await;
    settle().await;
    assert_eq!(taken(&releases), [("a".into(), 1, Released::Restarted)]);
    assert_eq!(*session(&store, "a").unwrap().state().await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_session_waits_for_its_state_and_others_do_not() {
    let (store, _) = store();
    open(&store, "a", 1).await;
    open(&store, "b", 1).await;
    let (a, again) = (session(&store, "a").unwrap(), session(&store, "a").unwrap());
    let held = a.state().await.unwrap();
    let waits = tokio::spawn(async move { *again.state().await.unwrap() });
    assert_eq!(*session(&store, "b").unwrap().state().await.unwrap(), 1);
    settle().await;
    assert!(!waits.is_finished());
    drop(held);
    assert_eq!(waits.await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_are_reclaimed_and_used_ones_are_not() {
    let (store, releases) = store();
    for id in ["idle", "asked", "in use"] {
        open(&store, id, 1).await;
    }
    let in_use = session(&store, "in use").unwrap();
    tokio::time::advance(IDLE / 2).await;
    drop(session(&store, "asked"));
    tokio::time::advance(IDLE / 2).await;
    store.sweep();
    settle().await;
    assert_eq!(taken(&releases), [("idle".into(), 1, Released::Idle)]);
    drop(in_use);
    tokio::time::advance(IDLE / 2).await;
    store.sweep();
    settle().await;
    assert_eq!(taken(&releases), [("asked".into(), 1, Released::Idle)]);
    tokio::time::advance(IDLE / 2).await;
    store.sweep();
    settle().await;
    assert_eq!(taken(&releases), [("in use".into(), 1, Released::Idle)], "from the end of its last use");
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_is_forgotten_after_its_window() {
    let (store, releases) = store();
    open(&store, "a", 1).await;
    store.lock(&caller("a")).await.end(Phase::Closed, Released::Closed).await;
    assert_eq!(taken(&releases).len(), 1);
    tokio::time::advance(WINDOW - Duration::from_millis(1)).await;
    store.sweep();
    settle().await;
    assert_eq!(store.find("a").unwrap().phase(), Phase::Closed);
    tokio::time::advance(WINDOW).await;
    store.sweep();
    settle().await;
    assert!(store.find("a").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_sweeper_runs_by_itself_and_ends_with_the_store() {
    let (store, releases) = store();
    store.keep_swept();
    open(&store, "a", 1).await;
    tokio::time::sleep(IDLE + WINDOW).await;
    assert_eq!(taken(&releases).len(), 1);
    let weak = Arc::downgrade(&store);
    drop(store);
    tokio::time::sleep(IDLE).await;
    assert!(weak.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_release_goes_on_without_its_client_and_keeps_the_lock() {
    let (go_on, began) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (waits, count) = (go_on.clone(), began.clone());
    let hook = move |_: Arc<str>, _: u32, _| {
        count.fetch_add(1, Ordering::SeqCst);
        let waits = waits.clone();
        Box::pin(async move { waits.notified().await }) as _
    };
    let store = Store::new(Limits { window: WINDOW, idle: IDLE }, Box::new(hook));
    open(&store, "a", 1).await;
    let closing = tokio::spawn({
        let store = store.clone();
        async move { store.lock(&caller("a")).await.end(Phase::Closed, Released::Closed).await }
    });
    settle().await;
    closing.abort();
    let again = tokio::spawn({
        let store = store.clone();
        async move { store.lock(&caller("a")).await.record.phase() }
    });
    settle().await;
    assert!(!again.is_finished(), "a repeated close waits until the state is released");
    go_on.notify_one();
    assert_eq!(again.await.unwrap(), Phase::Closed);
    assert_eq!(began.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_panics_is_not_repeated() {
    let began = Arc::new(AtomicUsize::new(0));
    let count = began.clone();
    let hook = move |_: Arc<str>, _: u32, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            let fails = true;
            assert!(!fails, "release");
        }) as _
    };
    let store = Store::new(Limits { window: WINDOW, idle: IDLE }, Box::new(hook));
    open(&store, "a", 1).await;
    store.lock(&caller("a")).await.end(Phase::Closed, Released::Closed).await;
    store.lock(&caller("a")).await.end(Phase::Closed, Released::Closed).await;
    store.shut_down(true).await;
    assert_eq!(began.load(Ordering::SeqCst), 1);
    assert_eq!(store.find("a").unwrap().phase(), Phase::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_stop_releases_what_is_open() {
    let (store, releases) = store();
    open(&store, "a", 1).await;
    open(&store, "b", 2).await;
    store.lock(&caller("a")).await.end(Phase::Ended, Released::Terminal).await;
    taken(&releases);
    store.shut_down(true).await;
    assert_eq!(taken(&releases), [("b".into(), 2, Released::Shutdown)]);
}

#[tokio::test(start_paused = true)]
async fn a_handle_of_an_earlier_life_has_no_part_in_the_next() {
    let (store, releases) = store();
    open(&store, "a", 1).await;
    let before = session(&store, "a").unwrap();
    open(&store, "a", 2).await;
    assert_eq!(before.state().await.unwrap_err().status(), 404);
    before.end().await;
    assert_eq!(*session(&store, "a").unwrap().state().await.unwrap(), 2);
    settle().await;
    assert_eq!(taken(&releases), [("a".into(), 1, Released::Restarted)]);
}

#[tokio::test(start_paused = true)]
async fn a_release_or_a_request_without_end_holds_up_no_other_session() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let released = seen.clone();
    let hook = move |id: Arc<str>, _: u32, _| {
        released.lock().unwrap().push(id.to_string());
        Box::pin(async move {
            if &*id == "stuck" {
                std::future::pending::<()>().await;
            }
        }) as _
    };
    let store = Store::new(Limits { window: WINDOW, idle: IDLE }, Box::new(hook));
    store.keep_swept();
    open(&store, "stuck", 1).await;
    open(&store, "used", 1).await;
    let used = session(&store, "used").unwrap();
    let _held = used.state().await.unwrap();
    tokio::time::sleep(IDLE * 2).await;
    open(&store, "other", 1).await;
    tokio::time::sleep(IDLE * 2).await;
    assert_eq!(*seen.lock().unwrap(), ["stuck", "other"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_does_not_wait_leaves_what_is_in_use() {
    let (store, releases) = store();
    open(&store, "a", 1).await;
    open(&store, "b", 2).await;
    let a = session(&store, "a").unwrap();
    let _held = a.state().await.unwrap();
    store.shut_down(false).await;
    assert_eq!(taken(&releases), [("b".into(), 2, Released::Shutdown)]);
}

#[tokio::test(start_paused = true)]
async fn a_handle_of_an_earlier_life_says_nothing_of_the_next() {
    let (store, _) = store();
    open(&store, "a", 1).await;
    let caller = caller("a");
    let before = store.session(&caller).unwrap();
    open(&store, "a", 2).await;
    before.end().await;
    let mut headers = axum::http::HeaderMap::new();
    caller.tell(&mut headers);
    assert!(headers.is_empty(), "{headers:?}");
}
