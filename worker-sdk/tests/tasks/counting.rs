//! The counting environment's tasks, its plain variant without any, and its broken one.

use gym_worker_sdk::tasks::{Split, TaskApi, TaskError, TaskProvider, TaskRange, row};
use serde::Serialize;
use serde_json::{Value, json};

/// How many tasks are listed at most.
const PREVIEW: u64 = 5;

pub(crate) struct CountingEnvironment;

#[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) index: u64,
    pub(crate) split: String,
    pub(crate) target: u64,
}

fn size(split: &str) -> Result<u64, TaskError> {
    match split {
        "train" => Ok(12),
        "test" => Ok(7),
        "holdout" => Ok(3),
        "stream" => Ok(1_000_000),
        _ => Err(TaskError::failed(format_args!("unknown split: {split}"))),
    }
}

pub(crate) fn task(split: &str, index: u64) -> Task {
    Task { id: format!("{split}-{index}"), index, split: split.to_owned(), target: index + 2 }
}

impl TaskProvider for CountingEnvironment {
    type Task = Task;

    async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
        let stream = Split::spec(json!({"name": "stream", "type": "streaming", "random_access": false}))?;
        Ok(vec!["train".into(), "test".into(), "holdout".into(), stream])
    }

    async fn list_tasks(&self, split: &str) -> Result<Vec<Task>, TaskError> {
        Ok((0..size(split)?.min(PREVIEW)).map(|index| task(split, index)).collect())
    }

    async fn num_tasks(&self, split: &str) -> Result<u64, TaskError> {
        size(split)
    }

    async fn get_task(&self, split: &str, index: i64) -> Result<Task, TaskError> {
        if split == "stream" {
            return Err(TaskError::NotSupported);
        }
        Ok(task(split, row(index, size(split)?)?))
    }

    async fn get_task_range(&self, split: &str, range: TaskRange) -> Result<Vec<Task>, TaskError> {
        if split == "stream" {
            return Err(TaskError::NotSupported);
        }
        Ok(range.within(size(split)?).map(|index| task(split, index)).collect())
    }
}

pub(crate) struct PlainEnvironment;

impl TaskProvider for PlainEnvironment {
    type Task = Value;
}

pub(crate) struct BrokenEnvironment;

impl TaskProvider for BrokenEnvironment {
    type Task = Value;
}

pub(crate) fn counting() -> TaskApi<fn() -> CountingEnvironment> {
    let make: fn() -> CountingEnvironment = || CountingEnvironment;
    TaskApi::new(make).named("counting_env")
}

pub(crate) fn plain() -> TaskApi<fn() -> PlainEnvironment> {
    let make: fn() -> PlainEnvironment = || PlainEnvironment;
    TaskApi::new(make)
}

pub(crate) type Broken = Result<BrokenEnvironment, std::fmt::Error>;

pub(crate) fn broken() -> TaskApi<fn() -> Broken> {
    let make: fn() -> Broken = || Err(std::fmt::Error);
    TaskApi::new(make)
}
