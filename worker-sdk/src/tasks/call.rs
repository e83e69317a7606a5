//! The five calls, by what their requests hold.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{TaskError, TaskProvider, TaskRange};
use crate::http::to_json;

/// One method of a provider, with its arguments.
pub(crate) trait Call<P: TaskProvider>: Send + 'static {
    /// Its name in refusals.
    const METHOD: &'static str;

    /// Calls it and writes the reply's JSON.
    fn answer(
        self,
        provider: &P,
        env_name: &str,
    ) -> impl Future<Output = Result<Box<RawValue>, TaskError>> + Send;
}

fn written(reply: &impl Serialize) -> Result<Box<RawValue>, TaskError> {
    to_json(reply).map_err(TaskError::failed)
}

pub(super) struct ListSplits;

impl<P: TaskProvider> Call<P> for ListSplits {
    const METHOD: &'static str = "list_splits";

    async fn answer(self, provider: &P, _env_name: &str) -> Result<Box<RawValue>, TaskError> {
        let splits = provider.list_splits().await?;
        written(&splits.into_iter().map(super::Split::into_json).collect::<Vec<Value>>())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTasks {
    split: String,
}

impl<P: TaskProvider> Call<P> for ListTasks {
    const METHOD: &'static str = "list_tasks";

    async fn answer(self, provider: &P, env_name: &str) -> Result<Box<RawValue>, TaskError> {
        #[derive(Serialize)]
        struct Reply<'a, T> {
            tasks: Vec<T>,
            env_name: &'a str,
        }
        written(&Reply { tasks: provider.list_tasks(&self.split).await?, env_name })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NumTasks {
    split: String,
}

impl<P: TaskProvider> Call<P> for NumTasks {
    const METHOD: &'static str = "num_tasks";

    async fn answer(self, provider: &P, _env_name: &str) -> Result<Box<RawValue>, TaskError> {
        #[derive(Serialize)]
        struct Reply {
            num_tasks: u64,
        }
        written(&Reply { num_tasks: provider.num_tasks(&self.split).await? })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetTask {
    split: String,
    index: i64,
}

impl<P: TaskProvider> Call<P> for GetTask {
    const METHOD: &'static str = "get_task";

    async fn answer(self, provider: &P, _env_name: &str) -> Result<Box<RawValue>, TaskError> {
        #[derive(Serialize)]
        struct Reply<T> {
            task: T,
        }
        written(&Reply { task: provider.get_task(&self.split, self.index).await? })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetTaskRange {
    split: String,
    start: Option<i64>,
    stop: Option<i64>,
}

impl<P: TaskProvider> Call<P> for GetTaskRange {
    const METHOD: &'static str = "get_task_range";

    async fn answer(self, provider: &P, _env_name: &str) -> Result<Box<RawValue>, TaskError> {
        #[derive(Serialize)]
        struct Reply<T> {
            tasks: Vec<T>,
        }
        let range = TaskRange { start: self.start, stop: self.stop };
        written(&Reply { tasks: provider.get_task_range(&self.split, range).await? })
    }
}
