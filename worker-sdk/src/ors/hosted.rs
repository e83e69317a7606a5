//! One environment of a server, whatever its type.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::OnceCell;

use super::live::{Live, Session};
use super::tasks::{Ask, Asked};
use super::tools::Tools;
use super::{OrsEnvironment, Secrets};
use crate::Result;
use crate::body::from_value;
use crate::errors::Failure;
use crate::session::Released;
use crate::tasks::TaskError;

/// Makes a session's environment.
pub(super) type Create<E> =
    Box<dyn Fn(<E as OrsEnvironment>::Task, Secrets) -> BoxFuture<'static, Result<E>> + Send + Sync>;

/// One environment of a server.
pub(super) trait Hosted: Send + Sync {
    /// Its name in paths, in lower case.
    fn name(&self) -> &str;
    /// What clients are told of its tools.
    fn tools(&self) -> &Value;
    /// Asks its provider.
    fn asked(&self, ask: Ask) -> BoxFuture<'_, Result<Box<RawValue>, TaskError>>;
    /// Its splits; the provider is asked once.
    fn splits(&self) -> BoxFuture<'_, Result<&[Value], TaskError>>;
    /// Makes an environment for a session of that task.
    fn create(&self, task: Value, secrets: Secrets) -> BoxFuture<'_, Result<Box<dyn Live>>>;
}

pub(super) struct Environment<E: OrsEnvironment> {
    pub(super) name: String,
    pub(super) asked: Asked,
    pub(super) create: Create<E>,
    pub(super) tools: Arc<Tools<E>>,
    pub(super) listed: Value,
    pub(super) splits: OnceCell<Vec<Value>>,
}

impl<E: OrsEnvironment> Hosted for Environment<E> {
    fn name(&self) -> &str {
        &self.name
    }

    fn tools(&self) -> &Value {
        &self.listed
    }

    fn asked(&self, ask: Ask) -> BoxFuture<'_, Result<Box<RawValue>, TaskError>> {
        (self.asked)(ask)
    }

    fn splits(&self) -> BoxFuture<'_, Result<&[Value], TaskError>> {
        let ask = async || Ok(serde_json::from_str((self.asked)(Ask::Splits).await?.get())?);
        Box::pin(async move { self.splits.get_or_try_init(ask).await.map(Vec::as_slice) })
    }

    fn create(&self, task: Value, secrets: Secrets) -> BoxFuture<'_, Result<Box<dyn Live>>> {
        Box::pin(async move {
            let task = from_value(task, &["body", "task_spec"])?;
            let environment = (self.create)(task, secrets).await?;
            let listed = catch_unwind(AssertUnwindSafe(|| self.tools.listed(&environment.task_tools())));
            match listed {
                Ok(listed) => {
                    Ok(Box::new(Session::new(environment, self.tools.clone(), listed)) as Box<dyn Live>)
                }
                Err(_panic) => {
                    environment.teardown(Released::Closed).await;
                    Err(Failure::fault("task_tools panicked"))
                }
            }
        })
    }
}
