//! What an author writes.

use serde::Serialize;

use super::{Split, TaskError, TaskRange};

/// An environment's tasks: five methods, each of which an environment may lack, which is a 501.
///
/// Every call has an instance of its own, fresh from the factory, and the instance is closed behind it. It has no session
/// and `&self` alone: tasks are told of, and no episode begins. An environment with a dataset answers from the dataset's
/// metadata; the row itself is for the reset to read.
#[allow(unused_variables)] // named for who implements them
pub trait TaskProvider: Send + Sync + Sized + 'static {
    /// A task as clients get it: the author's own type, or `serde_json::Value`. An ID, a split and an index are enough.
    type Task: Serialize + Send;

    /// The dataset's splits. Default: not supported.
    fn list_splits(&self) -> impl Future<Output = Result<Vec<Split>, TaskError>> + Send {
        async { Err(TaskError::NotSupported) }
    }

    /// The split's tasks, or the first of them if they are many: a preview. Default: not supported.
    fn list_tasks(&self, split: &str) -> impl Future<Output = Result<Vec<Self::Task>, TaskError>> + Send {
        async { Err(TaskError::NotSupported) }
    }

    /// How many tasks the split really has, also where [`list_tasks`](Self::list_tasks) lists fewer: trainers share the
    /// work out by it. Default: not supported.
    fn num_tasks(&self, split: &str) -> impl Future<Output = Result<u64, TaskError>> + Send {
        async { Err(TaskError::NotSupported) }
    }

    /// One task. [`row`](super::row) checks the index, which comes as it was sent: negative or past the end is for the
    /// author to refuse, with [`TaskError::Index`]. Default: not supported.
    fn get_task(
        &self,
        split: &str,
        index: i64,
    ) -> impl Future<Output = Result<Self::Task, TaskError>> + Send {
        async { Err(TaskError::NotSupported) }
    }

    /// The tasks of a slice; [`TaskRange::within`] says which rows these are. Default: not supported.
    fn get_task_range(
        &self,
        split: &str,
        range: TaskRange,
    ) -> impl Future<Output = Result<Vec<Self::Task>, TaskError>> + Send {
        async { Err(TaskError::NotSupported) }
    }

    /// Called once for each instance, after its one call, also if that failed, panicked or lost its client. The reply
    /// waits for it. Default: the instance is dropped.
    fn close(self) -> impl Future<Output = ()> + Send {
        async move { drop(self) }
    }
}
