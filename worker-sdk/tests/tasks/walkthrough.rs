//! The walk-through of OpenEnv's guide to the Task API: its environment, its curl lines, and its training loop.

use axum::body::Body;
use axum::http::{Request, header};
use gym_worker_sdk::tasks::client::TaskClient;
use gym_worker_sdk::tasks::{Split, TaskApi, TaskError, TaskProvider, TaskRange, row};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Dataset-backed: answers of its tasks from metadata alone.
struct LatexOcrEnvironment {
    sizes: [(&'static str, u64); 2],
}

impl LatexOcrEnvironment {
    fn new() -> Self {
        Self { sizes: [("train", 68_686), ("test", 7_595)] }
    }
}

impl TaskProvider for LatexOcrEnvironment {
    type Task = Value;

    async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
        Ok(self.sizes.iter().map(|(name, _)| (*name).into()).collect())
    }

    async fn num_tasks(&self, split: &str) -> Result<u64, TaskError> {
        let known = self.sizes.iter().find(|(name, _)| *name == split);
        known.map(|(_, size)| *size).ok_or_else(|| TaskError::failed(format_args!("unknown split {split:?}")))
    }

    async fn list_tasks(&self, split: &str) -> Result<Vec<Value>, TaskError> {
        let preview = 0..self.num_tasks(split).await?.min(100);
        Ok(preview.map(|i| json!({"id": format!("{split}-{i}"), "index": i})).collect())
    }

    async fn get_task(&self, split: &str, index: i64) -> Result<Value, TaskError> {
        let i = row(index, self.num_tasks(split).await?)?;
        Ok(json!({"id": format!("{split}-{i}"), "index": i, "split": split}))
    }

    async fn get_task_range(&self, split: &str, range: TaskRange) -> Result<Vec<Value>, TaskError> {
        let rows = range.within(self.num_tasks(split).await?);
        Ok(rows.map(|i| json!({"id": format!("{split}-{i}"), "index": i, "split": split})).collect())
    }
}

fn api() -> axum::Router {
    TaskApi::new(LatexOcrEnvironment::new).named("latex_ocr_env").into_router()
}

#[tokio::test]
async fn the_curl_lines() {
    let task = |i: u64| json!({"id": format!("test-{i}"), "index": i, "split": "test"});
    for (path, data, answer) in [
        ("/list_environments", None, json!(["latex_ocr_env"])),
        (
            "/latex_ocr_env/splits",
            None,
            json!([{"name": "train", "type": "train"}, {"name": "test", "type": "test"}]),
        ),
        ("/latex_ocr_env/num_tasks", Some(r#"{"split": "test"}"#), json!({"num_tasks": 7595})),
        (
            "/latex_ocr_env/task_range",
            Some(r#"{"split": "test", "start": 0, "stop": 4}"#),
            json!({"tasks": [task(0), task(1), task(2), task(3)]}),
        ),
        ("/latex_ocr_env/task", Some(r#"{"split": "test", "index": 12}"#), json!({"task": task(12)})),
    ] {
        let request = match data {
            None => Request::get(path).body(Body::empty()),
            Some(data) => {
                Request::post(path).header(header::CONTENT_TYPE, "application/json").body(Body::from(data))
            }
        };
        let reply = api().oneshot(request.unwrap()).await.unwrap();
        assert_eq!(reply.status(), 200, "{path}");
        let bytes = reply.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), answer, "{path}");
    }
}

/// `for index in range(total)`, and each index once.
#[tokio::test]
async fn the_training_loop() {
    // As a client of episodes has it: the WebSocket's address.
    let url = crate::serve(api()).await.replace("http://", "ws://") + "/ws";
    let env = TaskClient::new(&url).unwrap().env("latex_ocr_env");
    let splits: Vec<String> = env.list_splits().await.unwrap().into_iter().map(|split| split.name).collect();
    assert_eq!(splits, ["train", "test"]);
    let total = env.num_tasks("test").await.unwrap();
    assert_eq!(total, 7595, "the preview's 100 do not count");
    assert_eq!(env.list_tasks::<Value>("test").await.unwrap().len(), 100);
    let mut tasks = env.walk::<Value>("test", super::client::walk()).await.unwrap();
    let mut index = 0;
    while let Some(found) = tasks.next().await {
        let found = found.unwrap();
        assert_eq!((found.index, &found.task["index"]), (index, &json!(index)));
        index += 1;
    }
    assert_eq!(index, total);
}
