//! What becomes of sessions: every environment is torn down once, whatever happens to it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use futures_util::StreamExt as _;
use gym_worker_sdk::ors::{Block, OrsApp, OrsEnvironment, Secrets, ToolOutput};
use gym_worker_sdk::session::Released;
use gym_worker_sdk::tasks::{Split, TaskApi, TaskError, TaskProvider};
use gym_worker_sdk::{Result, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{ask, call, create, get, post, text_of};

/// What all environments of a server share.
#[derive(Debug)]
pub(crate) struct Seen {
    made: AtomicU32,
    torn_down: Mutex<Vec<Released>>,
    /// A permit for each teardown.
    tearing: Semaphore,
    /// A permit for each tool that waits.
    waiting: Semaphore,
    /// A waiting tool goes on for each permit.
    go: Semaphore,
}

/// What a count of teardowns says if it is wrong.
pub(crate) const TIMES: &str = "each environment is torn down once";

impl Seen {
    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed).try_into().unwrap()
    }

    /// A permit for each teardown.
    pub(crate) fn tearing(&self) -> &Semaphore {
        &self.tearing
    }

    /// So many tools go on.
    pub(crate) fn lets_go(&self, tools: usize) {
        self.go.add_permits(tools);
    }

    pub(crate) fn released(&self) -> Vec<Released> {
        self.torn_down.lock().unwrap().clone()
    }

    pub(crate) async fn take(semaphore: &Semaphore) {
        let waited = tokio::time::timeout(Duration::from_secs(30), semaphore.acquire()).await;
        waited.expect("it comes").unwrap().forget();
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Panics {
    #[default]
    Never,
    Made,
    Setup,
    Prompt,
    Teardown,
}

#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Task {
    #[serde(default)]
    panics: Panics,
}

struct Tasks;

impl TaskProvider for Tasks {
    type Task = Task;

    async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
        Ok(vec!["train".into()])
    }
}

struct Watched {
    seen: Arc<Seen>,
    panics: Panics,
    runs: u32,
}

impl Watched {
    async fn new(seen: Arc<Seen>, task: Task) -> Result<Self> {
        assert_ne!(task.panics, Panics::Made, "on purpose");
        seen.made.fetch_add(1, Ordering::Relaxed);
        Ok(Self { seen, panics: task.panics, runs: 0 })
    }

    /// Waits for its permission.
    async fn wait(&mut self) -> Result<ToolOutput> {
        self.seen.waiting.add_permits(1);
        Seen::take(&self.seen.go).await;
        self.runs += 1;
        Ok(ToolOutput::text(self.runs.to_string()))
    }

    /// The same, beside others.
    async fn wait_beside(&self, finish: Finish) -> Result<ToolOutput> {
        self.seen.waiting.add_permits(1);
        Seen::take(&self.seen.go).await;
        let output = ToolOutput::text("done");
        Ok(if finish.finishes { output.finished() } else { output })
    }

    async fn hang(&mut self) -> Result<ToolOutput> {
        self.seen.waiting.add_permits(1);
        std::future::pending().await
    }

    async fn panic(&mut self) -> Result<ToolOutput> {
        panic!("on purpose")
    }

    async fn finish(&mut self) -> Result<ToolOutput> {
        Seen::take(&self.seen.go).await;
        Ok(ToolOutput::default().finished())
    }
}

#[derive(Deserialize, JsonSchema)]
struct Finish {
    finishes: bool,
}

impl OrsEnvironment for Watched {
    type Task = Task;

    async fn setup(&mut self) -> Result<()> {
        tokio::task::yield_now().await;
        assert_ne!(self.panics, Panics::Setup, "on purpose");
        Ok(())
    }

    async fn prompt(&self) -> Result<Vec<Block>> {
        assert_ne!(self.panics, Panics::Prompt, "on purpose");
        Ok(vec!["begin".into()])
    }

    async fn teardown(self, why: Released) {
        tokio::task::yield_now().await;
        self.seen.torn_down.lock().unwrap().push(why);
        self.seen.tearing.add_permits(1);
        assert_ne!(self.panics, Panics::Teardown, "on purpose");
    }
}

pub(crate) fn app() -> (Arc<Seen>, OrsApp<impl OrsEnvironment>) {
    let none = || Semaphore::new(0);
    let (tearing, waiting, go) = (none(), none(), none());
    let seen = Arc::new(Seen { made: AtomicU32::new(0), torn_down: Mutex::default(), tearing, waiting, go });
    let made = seen.clone();
    let app = OrsApp::new(TaskApi::new(|| Tasks).named("watched"), move |task, _: Secrets| {
        Watched::new(made.clone(), task)
    })
    .tool("wait", "Waits.", Watched::wait)
    .concurrent_tool("wait_beside", "Waits.", Watched::wait_beside)
    .tool("hang", "Hangs.", Watched::hang)
    .tool("panic", "Panics.", Watched::panic)
    .tool("finish", "Finishes.", Watched::finish);
    (seen, app)
}

fn server() -> (Arc<Seen>, Router) {
    let (seen, app) = app();
    (seen, app.settings(Settings::new("watched")).into_router().unwrap())
}

const CALL: &str = "/watched/call";

/// Begins a call whose stream is read later, and its ID.
async fn begin(router: &Router, sid: &str, tool: &str, input: Value) -> (String, Response) {
    let reply = ask(router, "POST", CALL, sid, Some(json!({"name": tool, "input": input}))).await;
    assert_eq!(reply.status(), 200);
    let (head, body) = reply.into_parts();
    let mut stream = body.into_data_stream();
    let first = String::from_utf8(stream.next().await.unwrap().unwrap().to_vec()).unwrap();
    let id = first.strip_prefix("event: task_id\r\ndata: ").unwrap().trim().to_owned();
    (id, Response::from_parts(head, axum::body::Body::from_stream(stream)))
}

#[tokio::test]
async fn a_deleted_session_is_torn_down_once() {
    let (seen, router) = server();
    create(&router, "a", json!({})).await;
    let deletes = (0..5).map(|_| post(&router, "/delete", "a", None));
    for deleted in futures_util::future::join_all(deletes).await {
        assert_eq!(deleted, (200, json!({"sid": "a"})));
    }
    assert_eq!(seen.released(), [Released::Closed]);
    assert_eq!(get(&router, "/watched/prompt", "a").await.0, 404);
    create(&router, "a", json!({})).await;
    post(&router, "/delete", "a", None).await;
    assert_eq!(seen.released(), [Released::Closed; 2]);
}

#[tokio::test]
async fn of_many_creates_of_one_session_one_succeeds() {
    let (seen, router) = server();
    let creates = (0..5).map(|_| post(&router, "/create", "a", Some(json!({"task_spec": {}}))));
    let created = futures_util::future::join_all(creates).await;
    assert_eq!(created.iter().filter(|(status, _)| *status == 200).count(), 1, "{created:?}");
    assert_eq!(created.iter().filter(|(status, _)| *status == 400).count(), 4, "{created:?}");
    assert_eq!(seen.made.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_uses_for_900_seconds_is_torn_down() {
    let (seen, app) = app();
    // What the environment says, which is nothing.
    let router = app.into_router().unwrap();
    create(&router, "kept", json!({})).await;
    create(&router, "left", json!({})).await;
    for _ in 0..29 {
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(post(&router, "/ping", "kept", None).await.0, 200);
    }
    assert_eq!(seen.released(), [], "870 s");
    tokio::time::sleep(Duration::from_secs(61)).await;
    Seen::take(&seen.tearing).await;
    assert_eq!(seen.released(), [Released::Idle], "931 s");
    assert_eq!(
        post(&router, "/ping", "left", None).await,
        (404, json!({"detail": "Active environment not found"}))
    );
    assert_eq!(post(&router, "/ping", "kept", None).await.0, 200);
    tokio::time::sleep(Duration::from_secs(931)).await;
    Seen::take(&seen.tearing).await;
    assert_eq!(seen.released(), [Released::Idle; 2]);
    assert_eq!(post(&router, "/ping", "kept", None).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_call_keeps_its_session_while_its_client_waits() {
    let (seen, app) = app();
    let router = app.into_router().unwrap();
    create(&router, "a", json!({})).await;
    let (_id, stream) = begin(&router, "a", "hang", json!({})).await;
    tokio::time::sleep(Duration::from_secs(2000)).await;
    assert_eq!(seen.released(), []);
    drop(stream);
    tokio::time::sleep(Duration::from_secs(1000)).await;
    Seen::take(&seen.tearing).await;
    assert_eq!(seen.released(), [Released::Idle], "a call alone does not");
}

#[tokio::test]
async fn panics_are_answered_and_take_nothing_with_them() {
    let (seen, router) = server();
    let failed = (
        500,
        json!({"detail": "the handler panicked: assertion `left != right` failed: on purpose\n  left: "}),
    );
    let begins = |reply: &(u16, Value)| {
        let words = reply.1["detail"].as_str().unwrap();
        assert_eq!(reply.0, failed.0);
        assert!(words.starts_with(failed.1["detail"].as_str().unwrap()), "{words}");
    };
    begins(&post(&router, "/create", "made", Some(json!({"task_spec": {"panics": "made"}}))).await);
    assert_eq!((seen.made.load(Ordering::Relaxed), seen.released()), (0, vec![]));
    create(&router, "made", json!({})).await;
    create(&router, "setup", json!({"panics": "setup"})).await;
    begins(&get(&router, "/watched/prompt", "setup").await);
    begins(&get(&router, "/watched/task_tools", "setup").await);
    create(&router, "prompt", json!({"panics": "prompt"})).await;
    begins(&get(&router, "/watched/prompt", "prompt").await);
    create(&router, "teardown", json!({"panics": "teardown"})).await;
    let events = call(&router, CALL, "made", "panic", json!({})).await;
    assert!(events.ends_with("event: error\r\ndata: the handler panicked: on purpose\r\n\r\n"), "{events}");
    seen.go.add_permits(1);
    let events = call(&router, CALL, "made", "wait", json!({})).await;
    assert!(events.contains(r#""text":"1""#), "the environment is as it was: {events}");
    for (times, sid) in ["made", "setup", "prompt", "teardown"].into_iter().enumerate() {
        assert_eq!(post(&router, "/delete", sid, None).await.0, 200);
        assert_eq!(seen.released(), vec![Released::Closed; times + 1], "{sid}");
    }
}

#[tokio::test]
async fn a_delete_gives_up_what_runs() {
    let (seen, router) = server();
    create(&router, "a", json!({})).await;
    let (_id, stream) = begin(&router, "a", "hang", json!({})).await;
    Seen::take(&seen.waiting).await;
    let (_id, queued) = begin(&router, "a", "wait", json!({})).await;
    post(&router, "/delete", "a", None).await;
    assert_eq!(seen.released(), [Released::Closed]);
    for stream in [stream, queued] {
        assert_eq!(text_of(stream).await, "event: error\r\ndata: Session deleted\r\n\r\n");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_lost_its_stream_comes_back_for_the_result() {
    let (seen, router) = server();
    create(&router, "a", json!({})).await;
    let (id, stream) = begin(&router, "a", "wait", json!({})).await;
    drop(stream);
    Seen::take(&seen.waiting).await;
    let again = || json!({"name": "wait", "input": {}, "task_id": id});
    let resumed = ask(&router, "POST", CALL, "a", Some(again())).await;
    seen.go.add_permits(1);
    let events = text_of(resumed).await;
    assert!(
        events.starts_with(&format!("event: task_id\r\ndata: {id}\r\n")) && events.contains(r#""text":"1""#)
    );
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(text_of(ask(&router, "POST", CALL, "a", Some(again())).await).await, events);
    create(&router, "b", json!({})).await;
    let unknown = "event: error\r\ndata: unknown task_id\r\n\r\n";
    assert_eq!(text_of(ask(&router, "POST", CALL, "b", Some(again())).await).await, unknown, "another's");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(text_of(ask(&router, "POST", CALL, "a", Some(again())).await).await, unknown, "over a minute");
}

#[tokio::test]
async fn tools_run_alone_and_concurrent_ones_beside_each_other() {
    let (seen, router) = server();
    create(&router, "a", json!({})).await;
    let (_first, first) = begin(&router, "a", "wait", json!({})).await;
    let (_second, second) = begin(&router, "a", "wait", json!({})).await;
    Seen::take(&seen.waiting).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(seen.waiting.available_permits(), 0, "the second waits for the first");
    seen.go.add_permits(2);
    assert!(text_of(first).await.contains(r#""text":"1""#));
    assert!(text_of(second).await.contains(r#""text":"2""#));
    Seen::take(&seen.waiting).await;
    let beside = json!({"finishes": false});
    let (_third, third) = begin(&router, "a", "wait_beside", beside.clone()).await;
    let (_fourth, fourth) = begin(&router, "a", "wait_beside", beside).await;
    Seen::take(&seen.waiting).await;
    Seen::take(&seen.waiting).await;
    seen.go.add_permits(2);
    for stream in [third, fourth] {
        assert!(text_of(stream).await.contains("done"));
    }
}

#[tokio::test]
async fn what_the_end_of_the_episode_overtakes_is_refused() {
    let (seen, router) = server();
    create(&router, "a", json!({})).await;
    let (_id, finishing) = begin(&router, "a", "finish", json!({})).await;
    let (_id, queued) = begin(&router, "a", "wait", json!({})).await;
    seen.go.add_permits(1);
    assert!(text_of(finishing).await.contains(r#""finished":true"#));
    assert!(text_of(queued).await.contains(r#""reason":"episode_finished""#));
    assert_eq!(seen.waiting.available_permits(), 0, "it did not run");

    create(&router, "b", json!({})).await;
    let (_id, one) = begin(&router, "b", "wait_beside", json!({"finishes": true})).await;
    let (_id, other) = begin(&router, "b", "wait_beside", json!({"finishes": true})).await;
    Seen::take(&seen.waiting).await;
    Seen::take(&seen.waiting).await;
    seen.go.add_permits(2);
    let ends = [text_of(one).await, text_of(other).await];
    assert_eq!(ends.iter().filter(|end| end.contains(r#""finished":true"#)).count(), 1, "{ends:?}");
    assert_eq!(ends.iter().filter(|end| end.contains("episode_finished")).count(), 1, "{ends:?}");
}
