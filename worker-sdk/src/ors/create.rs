//! `/create`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Secrets;
use super::front::{Core, session_id};
use super::hosted::Hosted;
use super::open::Open;
use super::routes::{refusal, take_apart};
use super::tasks::Ask;
use crate::body::{Fields, from_fields};
use crate::errors::{Failure, Invalid};
use crate::http::json_reply;
use crate::repr::repr;
use crate::session::{Caller, Phase, shortened};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    env_name: Option<String>,
    task_spec: Option<Map<String, Value>>,
    split: Option<String>,
    index: Option<i64>,
    toolset_name: Option<String>,
}

/// Where the task comes from.
enum Source {
    Spec(Map<String, Value>),
    Row(String, i64),
}

pub(super) async fn create(State(core): State<Arc<Core>>, request: Request) -> Response {
    let (head, body) = match take_apart(request).await {
        Ok(apart) => apart,
        Err(refused) => return refused,
    };
    let id = match session_id(&head.headers) {
        Ok(id) => id,
        Err(failure) => return refusal(failure),
    };
    let read = body.fields().and_then(|fields| read(&fields));
    let (create, source) = match read {
        Ok(read) => read,
        Err(invalid) => return invalid.into_response(),
    };
    let mut session = core.store.lock(&Caller::without_cookie(&id, &head.method, &head.uri)).await;
    if session.record.phase() == Phase::Open {
        return refusal(Failure::new(400, "Session already exists"));
    }
    let made = async {
        let environment = core.chosen(create.env_name.as_deref())?;
        let task = environment.task(source).await?;
        let secrets = Secrets::of(&head.headers)?;
        if let Some(toolset) = &create.toolset_name {
            let words = format!("unknown toolset {}; valid options are []", repr(toolset));
            return Err(Failure::new(400, words));
        }
        environment.create(task, secrets).await
    };
    match made.await {
        Ok(live) => {
            session.open(Open::begin(live), None);
            tracing::info!(session = shortened(&id), "created");
            json_reply(&json!({"sid": &*id}))
        }
        Err(failure) => refusal(failure),
    }
}

fn read(fields: &Fields<'_>) -> Result<(Create, Source), Invalid> {
    let mut create: Create = from_fields(fields, &["body"])?;
    match (create.task_spec.take(), create.split.take(), create.index) {
        (Some(spec), None, None) => Ok((create, Source::Spec(spec))),
        (None, Some(split), Some(index)) => Ok((create, Source::Row(split, index))),
        (spec, split, index) => {
            let is_whole = split.is_some() && index.is_some();
            let words = match spec.is_some() == is_whole {
                true => "Provide either task_spec or both split and index, not both/neither",
                false => "split and index must both be provided together",
            };
            let whole: Map<String, Value> = from_fields(fields, &["body"])?;
            Err(Invalid::value(&["body"], words, Value::Object(whole)))
        }
    }
}

impl Core {
    /// The environment of that name, or the first.
    fn chosen(&self, name: Option<&str>) -> Result<&dyn Hosted, Failure> {
        match (name, self.environments.first()) {
            (None, Some((_, first))) => Ok(&**first),
            (name, _) => self.environment(name.unwrap_or_default()),
        }
    }
}

impl dyn Hosted + '_ {
    async fn task(&self, source: Source) -> Result<Value, Failure> {
        match source {
            Source::Spec(spec) => Ok(Value::Object(spec)),
            Source::Row(split, index) => {
                let task = self.ask(&split, Ask::Task(split.clone(), index), "Invalid index").await?;
                Ok(serde_json::from_str(task.get())?)
            }
        }
    }
}
