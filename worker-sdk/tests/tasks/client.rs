//! The client against servers over sockets.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use futures_util::StreamExt as _;
use gym_worker_sdk::tasks::client::{BadPosition, ClientError, EnvTasks, Position, TaskClient, Tasks, Walk};
use gym_worker_sdk::tasks::{TaskApi, TaskError, TaskProvider, TaskRange};
use serde_json::{Value, json};

use crate::counting::{self, Task, task};
use crate::serve;

pub(crate) fn walk() -> Walk {
    Walk::new().page_size(1000)
}

async fn counting_env() -> EnvTasks {
    let url = serve(counting::counting().into_router()).await;
    TaskClient::new(&url).unwrap().env("counting_env")
}

fn refused<T: std::fmt::Debug>(result: Result<T, ClientError>) -> (u16, Value) {
    match result.unwrap_err() {
        ClientError::Refused { status, detail, .. } => (status, detail),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn all_calls_are_answered() {
    let url = serve(counting::counting().into_router()).await;
    let client = TaskClient::new(&url).unwrap();
    assert_eq!(client.list_environments().await.unwrap(), ["counting_env"]);
    let env = client.env("Counting_Env");
    let splits = env.list_splits().await.unwrap();
    let (names, kinds): (Vec<_>, Vec<_>) =
        splits.iter().map(|split| (split.name.as_str(), split.kind.as_str())).unzip();
    assert_eq!(names, ["train", "test", "holdout", "stream"]);
    assert_eq!(kinds, ["train", "test", "validation", "streaming"]);
    assert_eq!(splits[3].more["random_access"], false);
    assert_eq!(env.num_tasks("train").await.unwrap(), 12);
    assert_eq!(env.list_tasks::<Task>("train").await.unwrap().len(), 5);
    assert_eq!(env.get_task::<Task>("train", 3).await.unwrap(), task("train", 3));
    let slice = env.get_task_range::<Task>("test", Some(-2), None).await.unwrap();
    assert_eq!(slice, [task("test", 5), task("test", 6)]);
}

#[tokio::test]
async fn refusals_say_why() {
    let env = counting_env().await;
    assert_eq!(refused(env.get_task::<Value>("train", 12).await), (400, json!("Invalid task index")));
    let unsupported = json!("get_task_range is not supported for this environment");
    assert_eq!(refused(env.get_task_range::<Value>("stream", None, Some(1)).await), (501, unsupported));
    assert_eq!(refused(env.num_tasks("nope").await), (500, json!("Internal Server Error")));
    let url = serve(counting::plain().into_router()).await;
    let other = TaskClient::new(&url).unwrap().env("it's/other");
    assert_eq!(refused(other.num_tasks("train").await), (404, json!("unknown environment \"it's/other\"")));
    let error = other.num_tasks("train").await.unwrap_err().to_string();
    assert!(error.ends_with("/num_tasks answers 404: unknown environment \"it's/other\""), "{error}");
}

#[tokio::test]
async fn servers_that_do_not_answer_are_told_of() {
    let routes = Router::new()
        .route("/list_environments", get(async || std::future::pending::<()>().await))
        .route("/env/num_tasks", post(async || "no JSON"))
        .route("/env/splits", get(async || vec![b' '; 2000]));
    let url = serve(routes).await;
    let client = TaskClient::new(&url).unwrap().timeout(Duration::from_millis(50)).max_reply_bytes(1000);
    let late = client.list_environments().await.unwrap_err();
    assert!(matches!(late, ClientError::NoReply { .. }), "{late:?}");
    let client = client.timeout(Duration::from_secs(10));
    let bad = client.env("env").num_tasks("train").await.unwrap_err();
    assert!(matches!(bad, ClientError::BadReply { .. }), "{bad:?}");
    let long = client.env("env").list_splits().await.unwrap_err();
    assert!(long.to_string().contains("more than 1000 bytes"), "{long}");
    let nobody = TaskClient::new("http://127.0.0.1:1").unwrap().list_environments().await.unwrap_err();
    assert!(matches!(nobody, ClientError::NoReply { .. }), "{nobody:?}");
}

async fn indices(mut tasks: Tasks<Task>) -> Vec<u64> {
    let mut indices = Vec::new();
    while let Some(found) = tasks.next().await {
        let found = found.unwrap();
        assert_eq!(found.task.index, found.index);
        indices.push(found.index);
    }
    indices
}

#[tokio::test]
async fn shards_share_a_split() {
    let env = counting_env().await;
    let in_order = indices(env.walk("train", Walk::new().page_size(5)).await.unwrap()).await;
    assert!(in_order.into_iter().eq(0..12));
    let mut all = Vec::new();
    for shard in 0..5 {
        let walk = Walk::new().page_size(2).shard(shard, 5).shuffled(7);
        let got = indices(env.walk("train", walk.clone()).await.unwrap()).await;
        assert!((2..=3).contains(&got.len()), "{got:?}");
        let tasks: Tasks<Task> = env.walk("train", walk).await.unwrap();
        assert_eq!(tasks.remaining(), got.len() as u64);
        let again: Vec<u64> = tasks.into_stream().map(|found| found.unwrap().index).collect().await;
        assert_eq!(again, got, "the same seed, the same order");
        all.extend(got);
    }
    assert_ne!(all, (0..12).collect::<Vec<_>>());
    all.sort_unstable();
    assert!(all.into_iter().eq(0..12));
    let range = TaskRange { start: Some(-3), stop: None };
    assert_eq!(indices(env.walk("test", Walk::new().range(range)).await.unwrap()).await, [4, 5, 6]);
}

#[tokio::test]
async fn a_walk_goes_on_from_any_position() {
    let env = counting_env().await;
    let walk = Walk::new().page_size(5).shuffled(3);
    let whole = indices(env.walk("train", walk.clone()).await.unwrap()).await;
    for done in 0..=whole.len() {
        let mut tasks: Tasks<Task> = env.walk("train", walk.clone()).await.unwrap();
        for _ in 0..done {
            tasks.next().await.unwrap().unwrap();
        }
        let stored = serde_json::to_string(tasks.position()).unwrap();
        let position: Position = serde_json::from_str(&stored).unwrap();
        let rest: Tasks<Task> = env.resume(position).await.unwrap();
        assert_eq!(rest.remaining(), (whole.len() - done) as u64);
        assert_eq!(indices(rest).await, whole[done..], "after {done}");
    }
}

#[tokio::test]
async fn bad_positions_are_refused() {
    let env = counting_env().await;
    let none = env.walk::<Task>("train", Walk::new().shard(8, 8)).await.unwrap_err();
    assert_eq!(none, ClientError::Position(BadPosition::Shard { shard: 8, shards: 8 }));
    let tasks = env.walk::<Task>("train", Walk::new()).await.unwrap();
    let stored = serde_json::to_string(tasks.position()).unwrap();
    let grown: Position = serde_json::from_str(&stored.replace("12", "13")).unwrap();
    let changed = BadPosition::OtherSize { split: "train".into(), was: 13, is: 12 };
    assert_eq!(env.resume::<Task>(grown).await.unwrap_err(), ClientError::Position(changed));
}

/// A dataset of any size, whose server fails every third range and loses one row in the fourth.
struct Flaky(Arc<AtomicU64>);

impl TaskProvider for Flaky {
    type Task = u64;

    async fn num_tasks(&self, _: &str) -> Result<u64, TaskError> {
        Ok(20)
    }

    async fn get_task_range(&self, _: &str, range: TaskRange) -> Result<Vec<u64>, TaskError> {
        let mut rows = range.within(20);
        assert!(rows.end - rows.start <= 4, "a page at a time");
        match self.0.fetch_add(1, Ordering::Relaxed) {
            2 => Err(TaskError::failed("now and then")),
            3 => {
                rows.next();
                Ok(rows.collect())
            }
            _ => Ok(rows.collect()),
        }
    }
}

#[tokio::test]
async fn after_an_error_a_walk_can_go_on() {
    let asked = Arc::new(AtomicU64::new(0));
    let counter = asked.clone();
    let api = TaskApi::new(move || Flaky(counter.clone())).named("flaky");
    let env = TaskClient::new(&serve(api.into_router()).await).unwrap().env("flaky");
    let mut tasks = env.walk::<u64>("train", Walk::new().page_size(4).shuffled(1)).await.unwrap();
    let (mut errors, mut rows) = (Vec::new(), BTreeSet::new());
    while let Some(found) = tasks.next().await {
        match found {
            Ok(found) => assert!(rows.insert(found.task)),
            Err(error) => errors.push(error),
        }
    }
    assert!(rows.into_iter().eq(0..20));
    assert_eq!(asked.load(Ordering::Relaxed), 7, "five pages and two repeats");
    assert!(matches!(&errors[..], [ClientError::Refused { status: 500, .. }, ClientError::BadReply { .. }]));
}
