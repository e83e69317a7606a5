//! `POST /seed_session`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use gym_wire::message::{EpisodeId, SeedSessionRequest, SeedSessionResponse};
use serde_json::{Map, Value};

use super::app::Core;
use super::{ResourcesServer, SeedError, SeedInfo, Seeded};
use crate::Failure;
use crate::body::from_value;
use crate::http::{collect_object, json_reply};
use crate::session::{Caller, Locked, Phase, closed_session};

/// Names an episode's seed and close.
pub(super) const ID_KEY: &str = "resources_session_id";
/// The longest session ID in bytes. Its cookie is half as long again, and NeMo Gym's client refuses header lines over 8 KiB:
/// what cannot come back is refused before it is kept. (The gateway's own bound, 256, is of what may reach a worker.)
const LONGEST_ID: usize = 4096;

pub(super) async fn seed_session<E: ResourcesServer>(
    State(core): State<Arc<Core<E>>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let body = match collect_object(request).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let seeded = match body.contains_key(ID_KEY) {
        true => episode(&core, &caller, body).await,
        false => legacy(&core, &caller, body).await,
    };
    seeded.unwrap_or_else(IntoResponse::into_response)
}

/// A seed by an environment server: the body says which session, and a repeat gets the first one's reply.
async fn episode<E: ResourcesServer>(
    core: &Arc<Core<E>>,
    caller: &Caller,
    body: Map<String, Value>,
) -> Result<Response, SeedError> {
    let request: SeedSessionRequest = from_value(Value::Object(body), &["body"])?;
    check_length(&request.resources_session_id)?;
    check_cookie(caller, &request.resources_session_id)?;
    caller.takes(&request.resources_session_id);
    if !Core::<E>::KEEPS_STATE {
        let (_, response) = begin_episode(core, caller, request).await?;
        return Ok(json_reply(&response));
    }
    let mut locked = core.store.lock(caller).await;
    match locked.record.phase() {
        Phase::Closed => return Err(closed_session(caller.id()).into()),
        Phase::Open => return repeated(&locked, &request.episode_id),
        Phase::Fresh | Phase::Ended => {}
    }
    let episode = request.episode_id.clone();
    let (state, response) = begin_episode(core, caller, request).await?;
    let reply = json_reply(&response);
    locked.open(state, Some(episode));
    locked.inner.seeded = Some(Box::new(response));
    Ok(reply)
}

/// The first reply, if the open session is of the same episode.
fn repeated<S: Send + 'static>(locked: &Locked<S>, episode: &EpisodeId) -> Result<Response, SeedError> {
    match (&locked.inner.episode, &locked.inner.seeded) {
        (Some(bound), Some(response)) if bound == episode => Ok(json_reply(&**response)),
        _ => Err(SeedError::conflict("this ID is open for another episode; seed another one")),
    }
}

async fn begin_episode<E: ResourcesServer>(
    core: &Arc<Core<E>>,
    caller: &Caller,
    request: SeedSessionRequest,
) -> Result<(E::State, SeedSessionResponse), SeedError> {
    let tools = core.tool_access(caller, &request.task_data);
    let seed = from_value(Value::Object(request.task_data), &["body", "task_data"])?;
    let info =
        SeedInfo { id: caller.id().clone(), episode: Some(request.episode_id), task: Some(request.task_id) };
    let Seeded { state, observation, sandbox_access, fields: _ } =
        core.server.seed_session(info, seed).await?;
    let response = SeedSessionResponse {
        resources_session_id: request.resources_session_id,
        resources_tools: tools,
        sandbox_access,
        observation,
    };
    Ok((state, response))
}

/// A seed by an agent: the cookie says which session, and it begins anew.
async fn legacy<E: ResourcesServer>(
    core: &Arc<Core<E>>,
    caller: &Caller,
    body: Map<String, Value>,
) -> Result<Response, SeedError> {
    let tools = core.tool_access(caller, &body);
    // Before the lock: bad input changes nothing.
    let seed: E::Seed = from_value(Value::Object(body), &["body"])?;
    let info = SeedInfo { id: caller.id().clone(), episode: None, task: None };
    if !Core::<E>::KEEPS_STATE {
        let seeded = core.server.seed_session(info, seed).await?;
        return Ok(legacy_reply(seeded.fields, tools)?);
    }
    let mut locked = core.store.lock(caller).await;
    locked.may_start_anew()?;
    let seeded = core.server.seed_session(info, seed).await?;
    let reply = legacy_reply(seeded.fields, tools)?;
    locked.open(seeded.state, None);
    Ok(reply)
}

/// The author's fields, and the MCP server's under NeMo Gym's `mcp`, unless that is one of the author's.
fn legacy_reply(
    mut fields: Map<String, Value>,
    tools: Option<gym_wire::message::McpAccess>,
) -> Result<Response, Failure> {
    if let Some(tools) = tools
        && !fields.contains_key("mcp")
    {
        let tools = serde_json::to_value(tools).map_err(|error| Failure::fault(error.to_string()))?;
        fields.insert("mcp".into(), tools);
    }
    Ok(json_reply(&fields))
}

/// An ID goes into a header, and stays in a table: it must not be too long.
pub(super) fn check_length(id: &str) -> Result<(), Failure> {
    if id.len() <= LONGEST_ID {
        return Ok(());
    }
    let reason = format!("{ID_KEY} is longer than {LONGEST_ID} bytes; choose a shorter one");
    Err(Failure::rejected(reason).with_code("invalid_session_id"))
}

/// A seed's cookie and body must not name different sessions.
fn check_cookie(caller: &Caller, id: &str) -> Result<(), SeedError> {
    match caller.cookie_id() {
        Some(named) if **named != *id => Err(SeedError::mismatch()),
        _ => Ok(()),
    }
}
