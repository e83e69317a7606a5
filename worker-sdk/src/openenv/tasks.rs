//! The Task API of an environment.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use serde_json::Value;

use super::Environment;
use super::live::{Core, closed};
use super::routes::fault;
use crate::http::collect_bytes;
use crate::tasks::{Split, TaskApi, TaskError, TaskProvider, TaskRange};

/// Of an environment that has tasks.
pub(super) fn of_its_own<E: Environment + TaskProvider>(core: &Arc<Core<E>>) -> Router {
    let makes = core.clone();
    let make = move || makes.make().map(|environment| Own { environment, core: makes.clone() });
    in_its_place(core, TaskApi::new(make).named(&core.name).into_router())
}

/// Of one that has none: each route answers so, and another's name is as unknown as ever.
pub(super) fn none<E: Environment>(core: &Arc<Core<E>>) -> Router {
    let owner = core.clone();
    let without = move |environment| Without { environment: Mutex::new(environment), core: owner.clone() };
    let makes = core.clone();
    let make = move || makes.make().map(&without);
    in_its_place(core, TaskApi::new(make).named(&core.name).into_router())
}

/// The routes, called where an environment that blocks its thread may do so.
fn in_its_place<E: Environment>(core: &Arc<Core<E>>, routes: Router) -> Router {
    match E::BLOCKS {
        true => routes.layer(from_fn_with_state(core.clone(), elsewhere)),
        false => routes,
    }
}

async fn elsewhere<E: Environment>(
    State(core): State<Arc<Core<E>>>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    // A thread is not kept for a client that takes its time.
    let bytes = match collect_bytes(Request::from_parts(head.clone(), body)).await {
        Ok(bytes) => bytes,
        Err(refused) => return refused,
    };
    let called = next.run(Request::from_parts(head, Body::from(bytes)));
    core.run(called).await.unwrap_or_else(|failure| fault(&failure))
}

/// An environment as the provider of its tasks, which is closed as an environment is.
struct Own<E: Environment> {
    environment: E,
    core: Arc<Core<E>>,
}

impl<E: Environment + TaskProvider> TaskProvider for Own<E> {
    type Task = E::Task;

    fn list_splits(&self) -> impl Future<Output = Result<Vec<Split>, TaskError>> + Send {
        self.environment.list_splits()
    }

    fn list_tasks(&self, split: &str) -> impl Future<Output = Result<Vec<E::Task>, TaskError>> + Send {
        self.environment.list_tasks(split)
    }

    fn num_tasks(&self, split: &str) -> impl Future<Output = Result<u64, TaskError>> + Send {
        self.environment.num_tasks(split)
    }

    fn get_task(&self, split: &str, index: i64) -> impl Future<Output = Result<E::Task, TaskError>> + Send {
        self.environment.get_task(split, index)
    }

    fn get_task_range(
        &self,
        split: &str,
        range: TaskRange,
    ) -> impl Future<Output = Result<Vec<E::Task>, TaskError>> + Send {
        self.environment.get_task_range(split, range)
    }

    async fn close(self) {
        close(&self.core, self.environment).await;
    }
}

async fn close<E: Environment>(core: &Core<E>, environment: E) {
    if let Err(error) = core.run(closed(environment)).await {
        tracing::error!(%error, "an environment's close failed");
    }
}

/// An environment without tasks. The lock is never taken: it makes what may not be shared shareable.
struct Without<E: Environment> {
    environment: Mutex<E>,
    core: Arc<Core<E>>,
}

impl<E: Environment> TaskProvider for Without<E> {
    type Task = Value;

    async fn close(self) {
        if let Ok(environment) = self.environment.into_inner() {
            close(&self.core, environment).await;
        }
    }
}
