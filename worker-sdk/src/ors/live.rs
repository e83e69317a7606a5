//! A session's environment, and who may use it when.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::RwLock;

use super::call::Called;
use super::tools::{Ran, Run, Stopped, Tools};
use super::{Block, Message, OrsEnvironment};
use crate::Result;
use crate::errors::Failure;
use crate::session::Released;

/// A session's environment, whatever its type.
pub(super) trait Live: Send + Sync {
    fn setup(&self) -> BoxFuture<'_, Result<()>>;
    fn prompt(&self) -> BoxFuture<'_, Result<Vec<Block>>>;
    fn messages(&self) -> BoxFuture<'_, Result<Vec<Message>>>;
    /// The tools that its client is told of.
    fn tools(&self) -> &Value;
    fn call(&self, name: String, input: Map<String, Value>) -> BoxFuture<'_, Result<Called>>;
    /// Once, after everything else of it was dropped.
    fn teardown(&self, why: Released) -> BoxFuture<'_, ()>;
}

/// The environment, until its teardown takes it. Who writes is alone with it: the setup, tools but the concurrent ones.
pub(super) struct Session<E> {
    environment: RwLock<Option<E>>,
    tools: Arc<Tools<E>>,
    listed: Value,
    /// A tool ended the episode. Set under the lock that the tool had.
    is_finished: AtomicBool,
}

impl<E: OrsEnvironment> Session<E> {
    pub(super) fn new(environment: E, tools: Arc<Tools<E>>, listed: Value) -> Self {
        Self {
            environment: RwLock::new(Some(environment)),
            tools,
            listed,
            is_finished: AtomicBool::new(false),
        }
    }

    async fn run(&self, name: String, input: Map<String, Value>) -> Result<Called> {
        let Some(tool) = self.tools.get(&name) else {
            return Ok(Called::not_found(&name));
        };
        if self.is_finished.load(Ordering::Acquire) {
            return Ok(Called::finished(&name));
        }
        let input = Value::Object(input);
        match &tool.run {
            Run::Alone(run) => {
                let mut environment = self.environment.write().await;
                // The call before may have ended it.
                if self.is_finished.load(Ordering::Acquire) {
                    return Ok(Called::finished(&name));
                }
                let ran = run(environment.as_mut().ok_or_else(deleted)?, input).await;
                self.called(&name, ran)
            }
            Run::Beside(run) => {
                let environment = self.environment.read().await;
                if self.is_finished.load(Ordering::Acquire) {
                    return Ok(Called::finished(&name));
                }
                let ran = run(environment.as_ref().ok_or_else(deleted)?, input).await;
                self.called(&name, ran)
            }
        }
    }

    /// The first that ends the episode does; what ran beside it is void.
    fn called(&self, name: &str, ran: Ran) -> Result<Called> {
        let output = match ran {
            Ok(output) => output,
            Err(Stopped::Invalid(invalid)) => return Ok(Called::invalid(&invalid)),
            Err(Stopped::Failed(failure)) => return Err(failure),
        };
        match self.is_finished.fetch_or(output.finished, Ordering::AcqRel) {
            true => Ok(Called::finished(name)),
            false => Ok(Called::success(output)),
        }
    }
}

/// 410: there is no such session any more.
pub(super) fn deleted() -> Failure {
    Failure::new(410, "Session deleted")
}

impl<E: OrsEnvironment> Live for Session<E> {
    fn setup(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { self.environment.write().await.as_mut().ok_or_else(deleted)?.setup().await })
    }

    fn prompt(&self) -> BoxFuture<'_, Result<Vec<Block>>> {
        Box::pin(async { self.environment.read().await.as_ref().ok_or_else(deleted)?.prompt().await })
    }

    fn messages(&self) -> BoxFuture<'_, Result<Vec<Message>>> {
        Box::pin(async { self.environment.read().await.as_ref().ok_or_else(deleted)?.messages().await })
    }

    fn tools(&self) -> &Value {
        &self.listed
    }

    fn call(&self, name: String, input: Map<String, Value>) -> BoxFuture<'_, Result<Called>> {
        Box::pin(self.run(name, input))
    }

    fn teardown(&self, why: Released) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let environment = self.environment.write().await.take();
            if let Some(environment) = environment {
                environment.teardown(why).await;
            }
        })
    }
}
