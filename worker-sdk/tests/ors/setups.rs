//! Setups that take their time, and servers that cannot be.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use gym_worker_sdk::ors::{Block, OrsApp, OrsEnvironment, Secrets, ToolOutput};
use gym_worker_sdk::session::Released;
use gym_worker_sdk::tasks::{Split, TaskApi, TaskError, TaskProvider};
use gym_worker_sdk::{Result, Settings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use crate::{ask, call, create, get, json_of, post};

struct Tasks;

impl TaskProvider for Tasks {
    type Task = Map<String, Value>;

    async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
        let more = Split::spec(json!({"name": "stream", "type": "streaming", "random_access": false}))?;
        Ok(vec!["train".into(), more])
    }
}

struct Slow {
    go: Arc<Semaphore>,
    torn_down: Arc<Semaphore>,
}

impl OrsEnvironment for Slow {
    type Task = Map<String, Value>;

    async fn setup(&mut self) -> Result<()> {
        self.go.acquire().await?.forget();
        Ok(())
    }

    async fn prompt(&self) -> Result<Vec<Block>> {
        Ok(vec!["ready".into()])
    }

    async fn teardown(self, _: Released) {
        self.torn_down.add_permits(1);
    }
}

impl Slow {
    async fn look(&self) -> Result<ToolOutput> {
        Ok(ToolOutput::text("seen"))
    }

    async fn last(&mut self, _: Last) -> Result<ToolOutput> {
        Ok(ToolOutput::default())
    }

    async fn two(&mut self, _: Two) -> Result<ToolOutput> {
        Ok(ToolOutput::default())
    }
}

#[derive(Deserialize, JsonSchema)]
struct Last {
    #[serde(rename = "text")]
    _text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Two {
    #[serde(rename = "a")]
    _a: String,
    #[serde(rename = "b")]
    _b: String,
}

fn bare(name: &str, go: &Arc<Semaphore>, torn_down: &Arc<Semaphore>) -> OrsApp<Slow> {
    let (go, torn_down) = (go.clone(), torn_down.clone());
    OrsApp::new(TaskApi::new(|| Tasks).named(name), move |_, _: Secrets| {
        let slow = Slow { go: go.clone(), torn_down: torn_down.clone() };
        async { Ok(slow) }
    })
    .settings(Settings::new("slow"))
}

fn server() -> (Arc<Semaphore>, Arc<Semaphore>, Router) {
    let (go, torn_down) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let app = bare("slow", &go, &torn_down).concurrent_tool("look", "Looks.", Slow::look);
    let router = app.into_router().unwrap();
    (go, torn_down, router)
}

#[tokio::test(start_paused = true)]
async fn who_asks_before_the_setup_is_done_waits_25_seconds() {
    let (go, _torn_down, router) = server();
    create(&router, "a", json!({})).await;
    assert_eq!(get(&router, "/slow/task_tools", "a").await.0, 200, "it needs no setup");
    for (method, path, body) in [
        ("GET", "/slow/prompt", None),
        ("GET", "/slow/messages", None),
        ("POST", "/slow/call", Some(json!({"name": "look", "input": {}}))),
    ] {
        let begin = tokio::time::Instant::now();
        let reply = ask(&router, method, path, "a", body).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(25));
        assert_eq!(
            (reply.headers()["x-backend-state"].as_bytes(), reply.headers()["retry-after"].as_bytes()),
            (&b"starting"[..], &b"2"[..])
        );
        assert_eq!(json_of(reply).await, (503, json!({"detail": "Environment still starting."})));
    }
    let waiting = tokio::spawn({
        let router = router.clone();
        async move { get(&router, "/slow/prompt", "a").await }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    go.add_permits(1);
    assert_eq!(waiting.await.unwrap().0, 200);
    assert!(call(&router, "/slow/call", "a", "look", json!({})).await.contains("seen"));
}

#[tokio::test(start_paused = true)]
async fn a_delete_gives_up_the_setup() {
    let (_go, torn_down, router) = server();
    create(&router, "a", json!({})).await;
    let waiting = tokio::spawn({
        let router = router.clone();
        async move { get(&router, "/slow/prompt", "a").await }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(post(&router, "/delete", "a", None).await, (200, json!({"sid": "a"})));
    assert_eq!(torn_down.available_permits(), 1);
    assert_eq!(waiting.await.unwrap(), (410, json!({"detail": "Session deleted"})));
}

#[tokio::test]
async fn what_the_provider_lacks_is_said() {
    let (_go, _torn_down, router) = server();
    let splits = json!([{"name": "train", "type": "train"}, {"name": "stream", "type": "validation"}]);
    assert_eq!(get(&router, "/slow/splits", "a").await, (200, splits));
    let asked = |path: &'static str, body: Value| {
        let router = &router;
        async move {
            let (status, reply) = post(router, path, "a", Some(body)).await;
            (status, reply["detail"].as_str().unwrap_or_default().to_owned())
        }
    };
    let split = || json!({"split": "train"});
    assert_eq!(asked("/slow/tasks", split()).await.0, 400);
    for (path, body, method) in [
        ("/slow/num_tasks", split(), "num_tasks"),
        ("/slow/task", json!({"split": "train", "index": 0}), "get_task"),
        ("/slow/task_range", split(), "get_task_range"),
    ] {
        let words = format!("{method} is not supported for this environment");
        assert_eq!(asked(path, body).await, (501, words));
    }
}

#[test]
fn what_cannot_be_served_is_told() {
    let (go, torn_down) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let bare = |name| bare(name, &go, &torn_down);
    let good = || bare("good").tool("last", "", Slow::last);
    let said = |app: OrsApp<Slow>| app.into_router().unwrap_err().to_string();
    for (app, words) in [
        (bare("a"), "a: no tools"),
        (good().tool("last", "", Slow::last), "good: two tools of the name last"),
        (good().tool("", "", Slow::last), "a tool without a name"),
        (bare("a").terminal_tool("two", "", Slow::two), "the terminal tool two has 2 arguments"),
        (
            bare("a").terminal_tool("x", "", Slow::last).terminal_tool("y", "", Slow::last),
            "two terminal tools: x and y",
        ),
        (good().and(good()), "two environments of the name good"),
        (bare("create").tool("last", "", Slow::last), "\"create\" cannot be an environment's name"),
        (bare("a/b").tool("last", "", Slow::last), "\"a/b\" cannot be an environment's name"),
    ] {
        let said = said(app);
        assert!(said.contains(words), "{said}");
    }
}
