use std::sync::Mutex;

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Map, Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::ors::{Block, ToolOutput};
use crate::session::Released;

struct Tasks;

impl TaskProvider for Tasks {
    type Task = Map<String, Value>;
}

struct Watched(Arc<Mutex<Vec<Released>>>);

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

async fn explode(_: &mut Watched) -> Result<ToolOutput> {
    let _bomb = Bomb;
    std::future::pending().await
}

/// Its tools cannot be asked for.
struct Badly(Watched);

impl OrsEnvironment for Badly {
    type Task = Map<String, Value>;

    async fn prompt(&self) -> Result<Vec<Block>> {
        Ok(vec![])
    }

    fn task_tools(&self) -> Vec<String> {
        panic!("badly")
    }

    async fn teardown(self, why: Released) {
        self.0.teardown(why).await;
    }
}

async fn look(_: &Badly) -> Result<ToolOutput> {
    Ok(ToolOutput::default())
}

impl OrsEnvironment for Watched {
    type Task = Map<String, Value>;

    async fn prompt(&self) -> Result<Vec<Block>> {
        Ok(vec![])
    }

    async fn teardown(self, why: Released) {
        tokio::task::yield_now().await;
        self.0.lock().unwrap().push(why);
    }
}

async fn hang(_: &mut Watched) -> Result<ToolOutput> {
    std::future::pending().await
}

fn app(seen: &Arc<Mutex<Vec<Released>>>) -> OrsApp<Watched> {
    let seen = seen.clone();
    let make = move |_, _: Secrets| std::future::ready(Ok(Watched(seen.clone())));
    OrsApp::new(TaskApi::new(|| Tasks).named("watched"), make).tool("hang", "Hangs.", hang)
}

async fn post(router: &Router, path: &str, sid: &str, body: Value) {
    let request =
        Request::post(path).header("x-session-id", sid).header(header::CONTENT_TYPE, "application/json");
    let reply = router.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
    assert_eq!(reply.status(), 200);
}

#[tokio::test]
async fn a_stop_tears_down_every_session_once() {
    let seen = Arc::default();
    let (router, end) = app(&seen).settings(Settings::new("ors")).built().unwrap().into_parts();
    for sid in ["a", "b", "c", "d"] {
        post(&router, "/create", sid, json!({"task_spec": {}})).await;
    }
    post(&router, "/delete", "b", json!({})).await;
    // Its client leaves at once.
    post(&router, "/watched/call", "c", json!({"name": "hang", "input": {}})).await;
    end(true).await;
    assert_eq!(*seen.lock().unwrap(), [&[Released::Closed][..], &[Released::Shutdown; 3]].concat());
}

#[test]
fn a_name_is_a_part_of_paths_as_it_is() {
    for name in ["counter", "a_b-c.2", "redoc"] {
        assert!(is_name(name), "{name}");
    }
    for name in ["", ".", "..", "my env", "a/b", "a?b", "z\u{fc}rich", "docs", "create"] {
        assert!(!is_name(name), "{name}");
    }
}

#[tokio::test]
async fn an_environment_whose_tools_cannot_be_asked_for_is_torn_down() {
    let seen: Arc<Mutex<Vec<Released>>> = Arc::default();
    let log = seen.clone();
    let make = move |_, _: Secrets| std::future::ready(Ok(Badly(Watched(log.clone()))));
    let app = OrsApp::new(TaskApi::new(|| Tasks).named("badly"), make).concurrent_tool("look", "", look);
    let router = app.settings(Settings::new("ors")).into_router().unwrap();
    let request = Request::post("/create").header("x-session-id", "a");
    let request =
        request.header(header::CONTENT_TYPE, "application/json").body(Body::from(r#"{"task_spec": {}}"#));
    assert_eq!(router.oneshot(request.unwrap()).await.unwrap().status(), 500);
    assert_eq!(*seen.lock().unwrap(), [Released::Closed]);
}

#[tokio::test]
async fn a_tool_whose_end_panics_is_told_of() {
    let seen = Arc::default();
    let app = app(&seen).tool("explode", "Explodes.", explode).settings(Settings::new("ors"));
    let router = app.into_router().unwrap();
    post(&router, "/create", "a", json!({"task_spec": {}})).await;
    let call = Request::post("/watched/call").header("x-session-id", "a");
    let call = call.header(header::CONTENT_TYPE, "application/json");
    let call = call.body(Body::from(r#"{"name": "explode", "input": {}}"#)).unwrap();
    let reply = router.clone().oneshot(call).await.unwrap();
    // The tool has begun.
    tokio::task::yield_now().await;
    post(&router, "/delete", "a", json!({})).await;
    let events = axum::body::to_bytes(reply.into_body(), usize::MAX).await.unwrap();
    let events = String::from_utf8(events.to_vec()).unwrap();
    assert!(events.contains("event: error\r\ndata: the handler panicked: dropped"), "{events}");
    assert_eq!(*seen.lock().unwrap(), [Released::Closed]);
}

#[tokio::test]
async fn the_gateway_is_told_of_the_kind() {
    let reason = "one board for all";
    let built =
        app(&Arc::default()).settings(Settings::new("ors")).multiple_workers_unsupported(reason).built();
    let told = serde_json::to_value(built.unwrap().description()).unwrap();
    let expected = json!({
        "kind": "ors", "session_cookie": null, "session_start_routes": [], "session_end_routes": [], "routes_sessions_to_owner": true,
        "multiple_workers_unsupported_reason": reason,
    });
    assert_eq!(told, expected);
}
