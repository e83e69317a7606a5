//! Environments whose methods block.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use gym_worker_sdk::openenv::{Environment, EnvironmentApp, Observed, Reset, State, StepInfo};
use gym_worker_sdk::tasks::{TaskError, TaskProvider};
use gym_worker_sdk::{Bounded, Empty, Result, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::client::{Server, soon};

/// The first waits, with its thread, for what the second says.
struct Blocks {
    says: Sender<i64>,
    hears: Arc<Mutex<Receiver<i64>>>,
}

#[derive(Deserialize, JsonSchema)]
struct Say {
    number: Option<Bounded<0, 9>>,
}

#[derive(Serialize, JsonSchema)]
struct Heard {
    number: Option<i64>,
}

impl Environment for Blocks {
    type Action = Say;
    type Observation = Heard;
    type State = ();
    type Params = Empty;
    const BLOCKS: bool = true;

    async fn reset(&mut self, _: Reset) -> Result<Observed<Heard>> {
        Ok(Observed::new(Heard { number: None }))
    }

    async fn step(&mut self, action: Say, _: StepInfo) -> Result<Observed<Heard>> {
        let number = match action.number {
            Some(number) => {
                self.says.send(*number)?;
                None
            }
            None => Some(self.hears.lock().unwrap().recv()?),
        };
        // And what is awaited works there, too.
        tokio::task::yield_now().await;
        Ok(Observed::new(Heard { number }))
    }

    async fn state(&mut self) -> Result<State<()>> {
        Ok(State::default())
    }
}

impl TaskProvider for Blocks {
    type Task = i64;

    async fn list_tasks(&self, _split: &str) -> Result<Vec<i64>, TaskError> {
        Ok(vec![self.hears.lock().unwrap().recv().unwrap()])
    }
}

/// On one thread: a method that blocks it would end the test.
#[tokio::test(flavor = "current_thread")]
async fn a_method_that_blocks_holds_nobody_up() {
    let (says, hears) = channel();
    let hears = Arc::new(Mutex::new(hears));
    let app = EnvironmentApp::new(move || Blocks { says: says.clone(), hears: hears.clone() });
    let server = Server::start(app.settings(Settings::new("blocks")).into_router().unwrap()).await;
    let (mut one, mut other) = (server.connect("/ws").await, server.connect("/ws").await);
    one.send(&json!({"type": "step", "data": {}})).await;
    soon("the other's step", other.step(json!({"number": 7}))).await;
    assert_eq!(one.next().await.unwrap()["data"]["observation"]["number"], 7);
}

#[tokio::test(flavor = "current_thread")]
async fn a_list_of_tasks_that_blocks_holds_nobody_up() {
    let (says, hears) = channel();
    let hears = Arc::new(Mutex::new(hears));
    let app =
        EnvironmentApp::new(move || Blocks { says: says.clone(), hears: hears.clone() }).named("blocks");
    let app = app.with_tasks().settings(Settings::new("blocks"));
    let server = Server::start(app.into_router().unwrap()).await;
    let mut other = server.connect("/ws").await;
    let split = json!({"split": "train"});
    let lists = server.post("/blocks/tasks", &split);
    let ((_, tasks), _) =
        soon("the tasks", async { tokio::join!(lists, other.step(json!({"number": 7}))) }).await;
    assert!(tasks.contains("[7]"), "{tasks}");
}

async fn create(router: Router) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"}).to_string();
    let reply = router.oneshot(Request::post("/mcp").body(Body::from(body)).unwrap()).await.unwrap();
    serde_json::from_slice(&to_bytes(reply.into_body(), usize::MAX).await.unwrap()).unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_made_for_a_client_that_left_holds_its_place() {
    let (begins, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let (lets, waits) = channel::<()>();
    let waits = Mutex::new(waits);
    let app = EnvironmentApp::new(move || {
        begins.send(()).unwrap();
        waits.lock().unwrap().recv().unwrap();
        let (says, hears) = channel();
        Blocks { says, hears: Arc::new(Mutex::new(hears)) }
    });
    let app = app.max_concurrent_envs(1).settings(Settings::new("blocks"));
    let router = app.into_router().unwrap();
    tokio::select! {
        _ = create(router.clone()) => panic!("nothing is made yet"),
        _ = begun.recv() => {}
    }
    let refused = create(router.clone()).await;
    assert_eq!(refused["error"]["data"], json!({"active_sessions": 1, "max_sessions": 1}));
    // For the one that nobody waits for, and for the next.
    lets.send(()).unwrap();
    lets.send(()).unwrap();
    let created = async {
        while create(router.clone()).await["result"].is_null() {
            tokio::task::yield_now().await;
        }
    };
    soon("its place", created).await;
}
