//! The task routes.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::front::Core;
use super::hosted::Hosted;
use super::routes::refusal;
use crate::body::Body;
use crate::errors::{Failure, detail};
use crate::http::{json_reply, to_json};
use crate::tasks::{Call, MadeProvider, Split, TaskApi, TaskError, TaskProvider, TaskRange};

/// What is asked of a provider. The answer is the splits, tasks, number or task alone.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Splits,
    Tasks(String),
    NumTasks(String),
    Task(String, i64),
    TaskRange(String, TaskRange),
}

/// An environment's tasks, whatever the provider's type.
pub(super) type Asked =
    Box<dyn Fn(Ask) -> BoxFuture<'static, Result<Box<RawValue>, TaskError>> + Send + Sync>;

pub(super) fn asked<F, M>(api: TaskApi<F>) -> Asked
where
    F: Fn() -> M + Send + Sync + 'static,
    M: MadeProvider,
{
    let api = Arc::new(api);
    Box::new(move |ask| {
        let api = api.clone();
        Box::pin(async move { api.call(ask).await })
    })
}

impl<P: TaskProvider> Call<P> for Ask {
    const METHOD: &'static str = "tasks";

    async fn answer(self, provider: &P, _env_name: &str) -> Result<Box<RawValue>, TaskError> {
        let not_supported = |error: &TaskError| *error == TaskError::NotSupported;
        match self {
            Self::Splits => written(&provider.list_splits().await?.into_iter().map(told).collect::<Vec<_>>()),
            Self::Tasks(split) => written(&provider.list_tasks(&split).await?),
            Self::NumTasks(split) => match provider.num_tasks(&split).await {
                Err(error) if not_supported(&error) => written(&provider.list_tasks(&split).await?.len()),
                count => written(&count?),
            },
            Self::Task(split, index) => match provider.get_task(&split, index).await {
                Err(error) if not_supported(&error) => {
                    let tasks = provider.list_tasks(&split).await?;
                    written(tasks.get(of_list(index, tasks.len())?).ok_or(TaskError::Index)?)
                }
                task => written(&task?),
            },
            Self::TaskRange(split, range) => match provider.get_task_range(&split, range).await {
                Err(error) if not_supported(&error) => by_parts(provider, &split, range).await,
                tasks => written(&tasks?),
            },
        }
    }
}

/// Of the list; of a provider without one, task by task.
async fn by_parts<P: TaskProvider>(
    provider: &P,
    split: &str,
    range: TaskRange,
) -> Result<Box<RawValue>, TaskError> {
    match provider.list_tasks(split).await {
        Ok(tasks) => {
            let rows = range.within(tasks.len().try_into()?);
            let rows = usize::try_from(rows.start)?..usize::try_from(rows.end)?.min(tasks.len());
            written(&tasks.get(rows).unwrap_or_default())
        }
        Err(TaskError::NotSupported) => {
            let mut tasks = Vec::new();
            for row in range.within(provider.num_tasks(split).await?) {
                tasks.push(provider.get_task(split, row.try_into()?).await?);
            }
            written(&tasks)
        }
        Err(error) => Err(error),
    }
}

/// An index of a list counts from the end if it is negative.
fn of_list(index: i64, length: usize) -> Result<usize, TaskError> {
    let length = i64::try_from(length)?;
    let row = if index < 0 { index.saturating_add(length) } else { index };
    usize::try_from(row).map_err(|_negative| TaskError::Index)
}

/// A split here is a name and one of three types.
fn told(split: Split) -> Value {
    let split = split.into_json();
    let is_known = |kind: &&str| matches!(*kind, "train" | "validation" | "test");
    let kind = split["type"].as_str().filter(is_known).unwrap_or("validation");
    json!({"name": split["name"], "type": kind})
}

fn written(reply: &impl Serialize) -> Result<Box<RawValue>, TaskError> {
    to_json(reply).map_err(TaskError::failed)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfSplit {
    split: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetTask {
    split: String,
    index: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetTaskRange {
    split: String,
    start: Option<i64>,
    stop: Option<i64>,
}

pub(super) async fn list_environments(State(core): State<Arc<Core>>) -> Response {
    json_reply(&core.names().collect::<Vec<_>>())
}

pub(super) async fn splits(State(core): State<Arc<Core>>, Path(name): Path<String>) -> Response {
    let splits =
        async { core.environment(&name)?.splits().await.map_err(|error| failed(&error, "list_splits")) };
    match splits.await {
        Ok(splits) => json_reply(&splits),
        Err(failure) => refusal(failure),
    }
}

pub(super) async fn tasks(
    State(core): State<Arc<Core>>,
    Path(name): Path<String>,
    Body(OfSplit { split }): Body<OfSplit>,
) -> Response {
    match answer(&core, &name, &split, Ask::Tasks(split.clone()), "").await {
        Ok(tasks) => json_reply(&Tasks { tasks, env_name: name }),
        Err(failure) => refusal(failure),
    }
}

pub(super) async fn num_tasks(
    State(core): State<Arc<Core>>,
    Path(name): Path<String>,
    Body(OfSplit { split }): Body<OfSplit>,
) -> Response {
    #[derive(Serialize)]
    struct Reply {
        num_tasks: Box<RawValue>,
    }
    match answer(&core, &name, &split, Ask::NumTasks(split.clone()), "").await {
        Ok(num_tasks) => json_reply(&Reply { num_tasks }),
        Err(failure) => refusal(failure),
    }
}

pub(super) async fn task(
    State(core): State<Arc<Core>>,
    Path(name): Path<String>,
    Body(GetTask { split, index }): Body<GetTask>,
) -> Response {
    #[derive(Serialize)]
    struct Reply {
        task: Box<RawValue>,
        env_name: String,
    }
    match answer(&core, &name, &split, Ask::Task(split.clone(), index), "Invalid index").await {
        Ok(task) => json_reply(&Reply { task, env_name: name }),
        Err(failure) => refusal(failure),
    }
}

pub(super) async fn task_range(
    State(core): State<Arc<Core>>,
    Path(name): Path<String>,
    Body(GetTaskRange { split, start, stop }): Body<GetTaskRange>,
) -> Response {
    let ask = Ask::TaskRange(split.clone(), TaskRange { start, stop });
    match answer(&core, &name, &split, ask, "Invalid index range").await {
        Ok(tasks) => json_reply(&Tasks { tasks, env_name: name }),
        Err(failure) => refusal(failure),
    }
}

#[derive(Serialize)]
struct Tasks {
    tasks: Box<RawValue>,
    env_name: String,
}

async fn answer(
    core: &Core,
    name: &str,
    split: &str,
    ask: Ask,
    no_such_index: &str,
) -> Result<Box<RawValue>, Failure> {
    core.environment(name)?.ask(split, ask, no_such_index).await
}

impl dyn Hosted + '_ {
    /// Asks the provider, if the split is one.
    ///
    /// # Errors
    /// 400 for a split or an index that is not there, 501 for what the provider does not support.
    pub(super) async fn ask(
        &self,
        split: &str,
        ask: Ask,
        no_such_index: &str,
    ) -> Result<Box<RawValue>, Failure> {
        let splits = self.splits().await.map_err(|error| failed(&error, "list_splits"))?;
        if !splits.iter().any(|known| known["name"] == split) {
            return Err(Failure::new(400, "Invalid split"));
        }
        let method = ask.method();
        self.asked(ask).await.map_err(|error| match error {
            TaskError::Index => Failure::new(400, no_such_index),
            TaskError::NotSupported if method == "list_tasks" => Failure::new(
                400,
                "list_tasks is not supported for this environment. Use the index-based API (num_tasks + get_task) instead.",
            ),
            error => failed(&error, method),
        })
    }
}

impl Ask {
    /// In refusals.
    fn method(&self) -> &'static str {
        match self {
            Self::Splits => "list_splits",
            Self::Tasks(_) => "list_tasks",
            Self::NumTasks(_) => "num_tasks",
            Self::Task(..) => "get_task",
            Self::TaskRange(..) => "get_task_range",
        }
    }
}

fn failed(error: &TaskError, method: &str) -> Failure {
    match error {
        TaskError::NotSupported => Failure::new(
            StatusCode::NOT_IMPLEMENTED,
            format!("{method} is not supported for this environment"),
        ),
        error => Failure::fault(error),
    }
}

/// 404, as the Python server says it.
pub(super) fn unknown(name: &str) -> Failure {
    Failure::not_found(format!("unknown environment {}", crate::repr::repr(name)))
}

/// No route has that path.
pub(super) async fn nothing() -> Response {
    detail(StatusCode::NOT_FOUND, "Not Found")
}
