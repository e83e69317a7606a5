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
