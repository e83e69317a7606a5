//! The Task API of an environment.

use std::sync::{Arc, Mutex};

use axum::Router;
use serde_json::Value;

use super::Environment;
use super::live::Core;
use crate::tasks::{Split, TaskApi, TaskError, TaskProvider, TaskRange};

/// Of an environment that has tasks.
pub(super) fn of_its_own<E: Environment + TaskProvider>(core: &Arc<Core<E>>) -> Router {
    let makes = core.clone();
    TaskApi::new(move || makes.make().map(Own)).named(&core.name).into_router()
}

/// Of one that has none: each route answers so, and another's name is as unknown as ever.
pub(super) fn none<E: Environment>(core: &Arc<Core<E>>) -> Router {
    let makes = core.clone();
    TaskApi::new(move || makes.make().map(|environment| Without(Mutex::new(environment))))
        .named(&core.name)
        .into_router()
}

/// An environment as the provider of its tasks, which is closed as an environment is.
struct Own<E>(E);

impl<E: Environment + TaskProvider> TaskProvider for Own<E> {
    type Task = E::Task;

    fn list_splits(&self) -> impl Future<Output = Result<Vec<Split>, TaskError>> + Send {
        self.0.list_splits()
    }

    fn list_tasks(&self, split: &str) -> impl Future<Output = Result<Vec<E::Task>, TaskError>> + Send {
        self.0.list_tasks(split)
    }

    fn num_tasks(&self, split: &str) -> impl Future<Output = Result<u64, TaskError>> + Send {
        self.0.num_tasks(split)
    }

    fn get_task(&self, split: &str, index: i64) -> impl Future<Output = Result<E::Task, TaskError>> + Send {
        self.0.get_task(split, index)
    }

    fn get_task_range(
        &self,
        split: &str,
        range: TaskRange,
    ) -> impl Future<Output = Result<Vec<E::Task>, TaskError>> + Send {
        self.0.get_task_range(split, range)
    }

    async fn close(self) {
        Environment::close(self.0).await;
    }
}

/// An environment without tasks. The lock is never taken: it makes what may not be shared shareable.
struct Without<E>(Mutex<E>);

impl<E: Environment> TaskProvider for Without<E> {
    type Task = Value;

    async fn close(self) {
        if let Ok(environment) = self.0.into_inner() {
            Environment::close(environment).await;
        }
    }
}
