//! The six routes.

use std::sync::Arc;

use axum::extract::{RawPathParams, Request, State, rejection::RawPathParamsRejection};
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use axum::{Json, Router};
use serde::de::DeserializeOwned;

use super::call::{Call, GetTask, GetTaskRange, ListSplits, ListTasks, NumTasks};
use super::{MadeProvider, TaskApi};
use crate::body::Body;
use crate::errors::{detail, method_not_allowed};
use crate::http::json_text_reply;
use crate::repr::repr;
use crate::serve::redirect;

const ENV_NAME: &str = "env_name";

/// Where the Task API is.
pub(crate) const PATHS: [&str; 6] = [
    "/list_environments",
    "/{env_name}/splits",
    "/{env_name}/tasks",
    "/{env_name}/num_tasks",
    "/{env_name}/task",
    "/{env_name}/task_range",
];

type Api<F> = State<Arc<TaskApi<F>>>;
/// Refused if it is no UTF-8.
type Params = Result<RawPathParams, RawPathParamsRejection>;

pub(super) fn router<F, M>(api: TaskApi<F>) -> Router
where
    F: Fn() -> M + Send + Sync + 'static,
    M: MadeProvider,
{
    let [environments, splits, tasks, num_tasks, task, task_range] = PATHS;
    let router = Router::new()
        .route(environments, only_get(get(async |State(api): Api<F>| Json([api.name()]).into_response())))
        .route(splits, only_get(get(list_splits::<F, M>)))
        .route(tasks, only_post(post(answer::<F, M, ListTasks>)))
        .route(num_tasks, only_post(post(answer::<F, M, NumTasks>)))
        .route(task, only_post(post(answer::<F, M, GetTask>)))
        .route(task_range, only_post(post(answer::<F, M, GetTaskRange>)));
    let with_slash = |router: Router<_>, path: &&str| router.route(&format!("{path}/"), any(without_slash));
    PATHS.iter().fold(router, with_slash).with_state(Arc::new(api))
}

async fn list_splits<F, M>(State(api): Api<F>, params: Params) -> Response
where
    F: Fn() -> M + Send + Sync + 'static,
    M: MadeProvider,
{
    reply(&api, &params, ListSplits).await
}

/// The body is looked at first, as in OpenEnv.
async fn answer<F, M, C>(State(api): Api<F>, params: Params, Body(call): Body<C>) -> Response
where
    F: Fn() -> M + Send + Sync + 'static,
    M: MadeProvider,
    C: Call<M::Provider> + DeserializeOwned,
{
    reply(&api, &params, call).await
}

async fn reply<F, M, C>(api: &TaskApi<F>, params: &Params, call: C) -> Response
where
    F: Fn() -> M + Send + Sync + 'static,
    M: MadeProvider,
    C: Call<M::Provider>,
{
    let asked = params.iter().flatten().find(|(name, _)| *name == ENV_NAME).map_or("", |(_, asked)| asked);
    if asked.to_lowercase() != api.name().to_lowercase() {
        return detail(StatusCode::NOT_FOUND, &format!("unknown environment {}", repr(asked)));
    }
    match api.call(call).await {
        Ok(json) => json_text_reply(Box::<str>::from(json).into()),
        Err(error) => error.reply(C::METHOD),
    }
}

/// FastAPI's GET is no HEAD.
fn only_get<S: Clone + Send + Sync + 'static>(route: MethodRouter<S>) -> MethodRouter<S> {
    route.head(async || other_method("GET").await).fallback(async || other_method("GET").await)
}

fn only_post<S: Clone + Send + Sync + 'static>(route: MethodRouter<S>) -> MethodRouter<S> {
    route.fallback(async || other_method("POST").await)
}

async fn other_method(allowed: &'static str) -> Response {
    let mut reply = method_not_allowed().await;
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

/// To the same path without the slash at its end.
async fn without_slash(request: Request) -> Response {
    let path = request.uri().path();
    redirect(&request, path.strip_suffix('/').unwrap_or(path))
}
