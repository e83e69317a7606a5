//! The Task API of OpenEnv: what tasks a dataset-backed environment has, for trainers that enumerate and choose them.
//!
//! ```
//! use gym_worker_sdk::tasks::{self, Split, TaskError, TaskProvider, TaskRange};
//! use serde_json::{Value, json};
//!
//! struct LatexOcrEnvironment;
//!
//! impl TaskProvider for LatexOcrEnvironment {
//!     type Task = Value;
//!
//!     async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
//!         Ok(vec!["train".into(), "test".into()])
//!     }
//!
//!     async fn num_tasks(&self, split: &str) -> Result<u64, TaskError> {
//!         match split {
//!             "train" => Ok(68_686),
//!             "test" => Ok(7_595),
//!             _ => Err(TaskError::failed(format_args!("unknown split: {split}"))),
//!         }
//!     }
//!
//!     async fn get_task(&self, split: &str, index: i64) -> Result<Value, TaskError> {
//!         let index = tasks::row(index, self.num_tasks(split).await?)?;
//!         Ok(json!({"id": format!("{split}-{index}"), "index": index, "split": split}))
//!     }
//!
//!     async fn get_task_range(&self, split: &str, range: TaskRange) -> Result<Vec<Value>, TaskError> {
//!         let rows = range.within(self.num_tasks(split).await?);
//!         Ok(rows.map(|index| json!({"id": format!("{split}-{index}"), "index": index})).collect())
//!     }
//! }
//!
//! let router: axum::Router = tasks::routes(|| LatexOcrEnvironment);
//! ```
//!
//! | route | body | reply |
//! |---|---|---|
//! | `GET /list_environments` | | `["latex_ocr_env"]` |
//! | `GET /{env_name}/splits` | | `[{"name": "train", "type": "train"}]` |
//! | `POST /{env_name}/tasks` | `split` | `{"tasks": [...], "env_name": "latex_ocr_env"}` |
//! | `POST /{env_name}/num_tasks` | `split` | `{"num_tasks": 7595}` |
//! | `POST /{env_name}/task` | `split`, `index` | `{"task": ...}` |
//! | `POST /{env_name}/task_range` | `split`, `start`?, `stop`? | `{"tasks": [...]}` |
//!
//! Refused, in this order: 422 for a body that does not fit (in pydantic's words), 404 for another environment's name, 501
//! for a method that is not there, 400 for an index out of range. Whatever else fails is a 500 `Internal Server Error`, and
//! its reason is in the log.
//!
//! Alone the routes are served with [`serve`](crate::serve()); beside a server of NeMo Gym's protocols, with
//! [`ResourcesApp::tasks`](crate::ResourcesApp::tasks) and [`GymnasiumApp::tasks`](crate::GymnasiumApp::tasks). `client`
//! asks any server that has them.

mod api;
mod call;
#[cfg(feature = "client")]
pub mod client;
mod error;
mod provider;
mod range;
mod routes;
mod split;

#[cfg(feature = "openenv")]
pub(crate) use api::last_name;
pub use api::{MadeProvider, TaskApi};
pub(crate) use call::Call;
pub use error::TaskError;
pub use provider::TaskProvider;
pub use range::{TaskRange, row};
pub(crate) use routes::PATHS;
pub use split::Split;

/// The six routes for the environments that `factory` makes, under the name of their type; [`TaskApi`] to give another.
///
/// Can be merged with other routers; 404s and 405s of other paths are those of the router that it is merged into.
pub fn routes<F, M>(factory: F) -> axum::Router
where
    F: Fn() -> M + Send + Sync + 'static,
    M: MadeProvider,
{
    TaskApi::new(factory).into_router()
}
