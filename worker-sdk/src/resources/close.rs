//! `POST /close_session`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use gym_wire::message::{CloseSessionRequest, CloseSessionResponse, EpisodeId};
use serde_json::{Map, Value};

use super::app::Core;
use super::seed::{ID_KEY, check_length};
use super::{Empty, ResourcesServer};
use crate::Failure;
use crate::body::from_value;
use crate::errors::catch_panic;
use crate::http::{collect_object, json_reply};
use crate::session::{Caller, Locked, Phase, Released};

pub(super) async fn close_session<E: ResourcesServer>(
    State(core): State<Arc<Core<E>>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let body = match collect_object(request).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    match body.contains_key(ID_KEY) {
        true => episode(&core, &caller, body).await,
        false => legacy(&core, &caller).await,
    }
}

/// A close by the ID in its body, whether or not a cookie comes along: after a lost seed reply there is none.
async fn episode<E: ResourcesServer>(
    core: &Arc<Core<E>>,
    caller: &Caller,
    body: Map<String, Value>,
) -> Response {
    let request: CloseSessionRequest = match from_value(Value::Object(body), &["body"]) {
        Ok(request) => request,
        Err(invalid) => return invalid.into_response(),
    };
    if let Err(refused) = check_length(&request.resources_session_id) {
        return refused.into_response();
    }
    caller.takes(&request.resources_session_id);
    let response = CloseSessionResponse { resources_session_id: request.resources_session_id };
    if !Core::<E>::KEEPS_STATE {
        return json_reply(&response);
    }
    let locked = core.store.lock(caller).await;
    if locked.inner.episode.as_ref().is_some_and(|bound| *bound != request.episode_id) {
        let reason = "this session belongs to another episode; close it with that one's ID";
        return Failure::conflict(reason).with_code("session_conflict").into_response();
    }
    match close(core.server.clone(), locked, Some(request.episode_id)).await {
        Ok(()) => json_reply(&response),
        Err(failure) => failure.into_response(),
    }
}

/// A close of the cookie's session. It is no error if there is none.
async fn legacy<E: ResourcesServer>(core: &Arc<Core<E>>, caller: &Caller) -> Response {
    if Core::<E>::KEEPS_STATE && caller.cookie_id().is_some() {
        let locked = core.store.lock(caller).await;
        if let Err(failure) = close(core.server.clone(), locked, None).await {
            return failure.into_response();
        }
    }
    json_reply(&Empty {})
}

/// Closes and fences the session. This goes on to its end even if the client leaves: a close is not half done.
///
/// The fence is the episode's that closed it, if one did.
async fn close<E: ResourcesServer>(
    server: Arc<E>,
    locked: Locked<E::State>,
    episode: Option<EpisodeId>,
) -> Result<(), Failure> {
    let task = locked.tracker().spawn(async move {
        let mut locked = locked;
        let id = locked.record.id.clone();
        if let Some(state) = locked.inner.state.as_mut() {
            catch_panic(server.close_session(&id, state)).await.flatten()?;
        }
        locked.inner.episode = episode.or(locked.inner.episode.take());
        locked.end(Phase::Closed, Released::Closed).await;
        Ok(())
    });
    task.await.unwrap_or_else(|_| Err(Failure::fault("the server stops")))
}
