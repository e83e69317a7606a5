//! Asks any server that has the Task API, OpenEnv's or ORS's, in Python or Rust.
//!
//! ```no_run
//! use gym_worker_sdk::tasks::client::{TaskClient, Walk};
//! use serde_json::Value;
//!
//! # async fn train() -> Result<(), Box<dyn std::error::Error>> {
//! let env = TaskClient::new("ws://127.0.0.1:8000")?.env("latex_ocr_env");
//! println!("{} tasks", env.num_tasks("test").await?);
//! // The second of eight trainers, in an order of its own for this epoch.
//! let mut tasks = env.walk::<Value>("test", Walk::new().shard(1, 8).shuffled(42)).await?;
//! while let Some(next) = tasks.next().await {
//!     let next = next?;
//!     println!("{} {}", next.index, next.task);
//!     let position = serde_json::to_string(tasks.position())?; // to go on from here: `env.resume`
//! }
//! # Ok(())
//! # }
//! ```

mod error;
mod http;
mod order;
mod position;
mod walk;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use error::ClientError;
pub use position::{BadPosition, Position, Walk};
pub use walk::{Found, Tasks};

/// A server with the Task API. Cheap to clone; needs a tokio runtime.
#[derive(Clone, Debug)]
pub struct TaskClient {
    http: http::Http,
}

/// A split, as servers tell of it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct SplitInfo {
    /// What the calls take.
    pub name: String,
    /// `train`, `validation`, `test`, or a word of the environment's own; empty if the server says none.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// What else it says.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl TaskClient {
    /// The server at `url`. `ws://127.0.0.1:8000` and `ws://127.0.0.1:8000/ws`, as OpenEnv's episodes have it, are the same
    /// server's as `http://127.0.0.1:8000`. A request may take 30 s, and a reply be of 64 MiB.
    ///
    /// # Errors
    /// If it is no URL, or not of HTTP, with or without TLS (whose certificates are the system's).
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Ok(Self { http: http::Http::new(url)? })
    }

    /// How long one request may take. Default: 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.http.timeout = timeout;
        self
    }

    /// The longest reply that is read, in bytes. Default: 64 MiB.
    #[must_use]
    pub fn max_reply_bytes(mut self, bytes: usize) -> Self {
        self.http.max_reply_bytes = bytes;
        self
    }

    /// The names of its environments.
    ///
    /// # Errors
    /// If there is no answer, or none that fits.
    pub async fn list_environments(&self) -> Result<Vec<String>, ClientError> {
        self.http.get(&["list_environments"]).await
    }

    /// One of its environments; whether it is there, the calls tell.
    pub fn env(&self, name: impl Into<String>) -> EnvTasks {
        EnvTasks { http: self.http.clone(), env: name.into() }
    }
}

/// The tasks of one environment. `T` is whatever its tasks are read as, such as `serde_json::Value`.
///
/// # Errors
/// All calls fail with [`ClientError::Refused`] if the server refuses them: 404 for another environment, 501 for a method
/// that it does not have, 400 for an index out of range; and with the other errors if there is no answer that fits.
#[derive(Clone, Debug)]
pub struct EnvTasks {
    http: http::Http,
    env: String,
}

#[derive(Deserialize)]
struct Counted {
    num_tasks: u64,
}

#[derive(Deserialize)]
struct One<T> {
    task: T,
}

#[derive(Deserialize)]
struct Many<T> {
    tasks: Vec<T>,
}

impl EnvTasks {
    /// The environment's name.
    pub fn name(&self) -> &str {
        &self.env
    }

    /// Its splits.
    ///
    /// # Errors
    /// As the type says.
    pub async fn list_splits(&self) -> Result<Vec<SplitInfo>, ClientError> {
        self.http.get(&[&self.env, "splits"]).await
    }

    /// A split's tasks, or as many of them as the server lists: [`num_tasks`](Self::num_tasks) says how many there are.
    ///
    /// # Errors
    /// As the type says.
    pub async fn list_tasks<T: DeserializeOwned>(&self, split: &str) -> Result<Vec<T>, ClientError> {
        let Many { tasks } = self.http.post(&[&self.env, "tasks"], &json!({"split": split})).await?;
        Ok(tasks)
    }

    /// How many tasks a split has.
    ///
    /// # Errors
    /// As the type says.
    pub async fn num_tasks(&self, split: &str) -> Result<u64, ClientError> {
        let Counted { num_tasks } =
            self.http.post(&[&self.env, "num_tasks"], &json!({"split": split})).await?;
        Ok(num_tasks)
    }

    /// One task.
    ///
    /// # Errors
    /// As the type says.
    pub async fn get_task<T: DeserializeOwned>(&self, split: &str, index: i64) -> Result<T, ClientError> {
        let body = json!({"split": split, "index": index});
        let One { task } = self.http.post(&[&self.env, "task"], &body).await?;
        Ok(task)
    }

    /// The tasks of a slice, as Python has slices: negative bounds count from the end.
    ///
    /// # Errors
    /// As the type says.
    pub async fn get_task_range<T: DeserializeOwned>(
        &self,
        split: &str,
        start: Option<i64>,
        stop: Option<i64>,
    ) -> Result<Vec<T>, ClientError> {
        let bounds = [("start", start), ("stop", stop)];
        let mut body = Map::from_iter([("split".to_owned(), split.into())]);
        body.extend(bounds.iter().filter_map(|(key, bound)| Some(((*key).to_owned(), (*bound)?.into()))));
        let Many { tasks } = self.http.post(&[&self.env, "task_range"], &Value::Object(body)).await?;
        Ok(tasks)
    }

    /// Walks over a split, page by page: asks how many tasks there are now, and for no task yet.
    ///
    /// # Errors
    /// As the type says; [`ClientError::Position`] if the walk cannot be, such as shard 8 of 8.
    pub async fn walk<T: DeserializeOwned>(&self, split: &str, walk: Walk) -> Result<Tasks<T>, ClientError> {
        let total = self.num_tasks(split).await?;
        self.tasks(Position::start(&self.env, split, total, walk))
    }

    /// Goes on with a walk where it was at `position`.
    ///
    /// # Errors
    /// As the type says; [`ClientError::Position`] if it is of another environment, or the split's size is another now,
    /// so that the rows would be others, too.
    pub async fn resume<T: DeserializeOwned>(&self, position: Position) -> Result<Tasks<T>, ClientError> {
        let total = self.num_tasks(&position.split).await?;
        position.fits(&self.env, total).map_err(ClientError::Position)?;
        self.tasks(position)
    }

    fn tasks<T>(&self, position: Position) -> Result<Tasks<T>, ClientError> {
        position.check().map_err(ClientError::Position)?;
        Ok(Tasks::new(self.clone(), position))
    }
}
