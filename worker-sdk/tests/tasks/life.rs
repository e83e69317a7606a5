//! The life of an instance: fresh for each call, and closed behind it whatever happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use gym_worker_sdk::tasks::{self, Split, TaskError, TaskProvider};
use serde_json::Value;
use tokio::sync::Notify;
use tower::ServiceExt as _;

#[derive(Default)]
struct Seen {
    made: AtomicU32,
    called: AtomicU32,
    closed: AtomicU32,
    /// Told at each close.
    closing: Notify,
}

struct Watched {
    seen: Arc<Seen>,
    /// How many calls this instance has had.
    calls: AtomicU32,
}

impl Watched {
    fn call(&self) {
        assert_eq!(self.calls.fetch_add(1, Ordering::Relaxed), 0, "an instance has one call");
        self.seen.called.fetch_add(1, Ordering::Relaxed);
    }
}

impl TaskProvider for Watched {
    type Task = Value;

    async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
        self.call();
        Ok(vec!["train".into()])
    }

    async fn num_tasks(&self, split: &str) -> Result<u64, TaskError> {
        self.call();
        match split {
            "fails" => Err(std::fmt::Error.into()),
            "panics" => panic!("on purpose"),
            "hangs" => std::future::pending().await,
            _ => Ok(1),
        }
    }

    async fn close(self) {
        tokio::task::yield_now().await;
        self.seen.closed.fetch_add(1, Ordering::Relaxed);
        self.seen.closing.notify_one();
        assert_eq!(self.calls.into_inner(), 1);
    }
}

fn server() -> (Arc<Seen>, Router) {
    let seen = Arc::new(Seen::default());
    let making = seen.clone();
    let make = move || {
        making.made.fetch_add(1, Ordering::Relaxed);
        Watched { seen: making.clone(), calls: AtomicU32::new(0) }
    };
    (seen, tasks::routes(make))
}

fn post(path: &str, split: &str) -> Request<Body> {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    request.body(Body::from(format!(r#"{{"split": "{split}"}}"#))).unwrap()
}

impl Seen {
    fn counts(&self) -> [u32; 3] {
        [&self.made, &self.called, &self.closed].map(|count| count.load(Ordering::Relaxed))
    }
}

#[tokio::test]
async fn each_call_has_an_instance_that_is_closed_before_the_reply() {
    let (seen, router) = server();
    let mut times = 0;
    for (split, status) in [("train", 200), ("fails", 500), ("panics", 500), ("train", 200)] {
        let reply = router.clone().oneshot(post("/watched/num_tasks", split)).await.unwrap();
        assert_eq!(reply.status(), status, "{split}");
        times += 1;
        assert_eq!(seen.counts(), [times; 3], "{split}");
    }
    let splits = Request::get("/Watched/splits").body(Body::empty()).unwrap();
    assert_eq!(router.oneshot(splits).await.unwrap().status(), 200);
    assert_eq!(seen.counts(), [times + 1; 3]);
}

#[tokio::test]
async fn no_instance_is_made_in_vain() {
    let (seen, router) = server();
    for (request, status) in [
        (post("/other/num_tasks", "train"), 404),
        (Request::post("/watched/num_tasks").body(Body::empty()).unwrap(), 422),
        (Request::get("/list_environments").body(Body::empty()).unwrap(), 200),
    ] {
        assert_eq!(router.clone().oneshot(request).await.unwrap().status(), status);
    }
    assert_eq!(seen.counts(), [0; 3]);
}

#[tokio::test]
async fn an_instance_whose_client_leaves_is_closed_too() {
    let (seen, router) = server();
    let asked = router.oneshot(post("/watched/num_tasks", "hangs"));
    // Ready at once is the timer: the call hangs.
    tokio::time::timeout(Duration::ZERO, asked).await.unwrap_err();
    tokio::time::timeout(Duration::from_secs(10), seen.closing.notified()).await.expect("the close");
    assert_eq!(seen.counts(), [1; 3]);
}

struct Unclosable;

impl TaskProvider for Unclosable {
    type Task = Value;

    async fn num_tasks(&self, _: &str) -> Result<u64, TaskError> {
        Ok(3)
    }

    async fn close(self) {
        panic!("on purpose");
    }
}

#[tokio::test]
async fn a_close_that_fails_does_not_take_the_answer() {
    let router = tasks::routes(|| Unclosable);
    let reply = router.oneshot(post("/unclosable/num_tasks", "train")).await.unwrap();
    assert_eq!(reply.status(), 200);
}

#[tokio::test]
async fn a_factory_that_panics_or_fails_is_a_500() {
    let panics = tasks::routes(|| -> Unclosable { panic!("on purpose") });
    let fails = tasks::routes(|| -> Result<Unclosable, TaskError> { Err(TaskError::NotSupported) });
    for router in [panics, fails] {
        let reply = router.oneshot(post("/unclosable/num_tasks", "train")).await.unwrap();
        assert_eq!(reply.status(), 500);
        assert_eq!(reply.headers()[header::CONTENT_TYPE], "text/plain; charset=utf-8");
    }
}
