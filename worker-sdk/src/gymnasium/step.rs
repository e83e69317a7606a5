//! `POST /step`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use gym_wire::message::{NeMoGymResponse, ResponsesCreateParams};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::GymnasiumServer;
use super::app::Core;
use super::patience::with_patience;
use crate::Result;
use crate::body::{Fields, fields, from_fields};
use crate::errors::{Failure, Invalid, catch_panic};
use crate::http::{collect_bytes, json_text_reply, to_json, two_parts};
use crate::session::{Caller, Phase, Record, Released, Replayable, Session, unknown_session};

/// The fields of the protocol itself.
pub(super) const PARAMS: &str = "responses_create_params";
const RESPONSE: &str = "response";
/// Names a step, on servers that support it.
const STEP_ID: &str = "_ng_step_request_id";
/// The longest name of a step, in characters. The agent's are of 32.
const LONGEST_STEP_ID: usize = 128;

/// What a body has besides the task's row.
#[derive(Deserialize)]
struct Taken {
    /// For its types only: metadata is without it.
    #[serde(rename = "responses_create_params")]
    _params: ResponsesCreateParams,
    response: NeMoGymResponse,
}

/// One step, as it was asked for.
struct Action<M> {
    response: NeMoGymResponse,
    metadata: M,
    /// What names it, if it may be sent again.
    step_id: Option<Arc<str>>,
}

pub(super) async fn step<E: GymnasiumServer>(
    State(core): State<Arc<Core<E>>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let content_type = request.headers().get(CONTENT_TYPE).cloned();
    let bytes = match collect_bytes(request).await {
        Ok(bytes) => bytes,
        Err(refused) => return refused,
    };
    let action = match action::<E>(&bytes, content_type.as_ref()) {
        Ok(action) => action,
        Err(invalid) => return invalid.into_response(),
    };
    match core.answer(caller, action).await {
        Ok(reply) => json_text_reply(reply.get().to_owned()),
        Err(failure) => failure.into_response(),
    }
}

fn action<E: GymnasiumServer>(
    bytes: &[u8],
    content_type: Option<&HeaderValue>,
) -> Result<Action<E::Metadata>, Invalid> {
    let fields = fields(bytes, content_type)?;
    let protocol: &[&str] = match E::SUPPORTS_STEP_IDEMPOTENCY {
        true => &[PARAMS, RESPONSE, STEP_ID],
        // To this server it is a field like any other.
        false => &[PARAMS, RESPONSE],
    };
    let (Taken { response, .. }, metadata) = two_parts(&fields, protocol)?;
    let step_id = if E::SUPPORTS_STEP_IDEMPOTENCY { step_id(&fields)? } else { None };
    Ok(Action { response, metadata, step_id })
}

fn step_id(fields: &Fields<'_>) -> Result<Option<Arc<str>>, Invalid> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default, rename = "_ng_step_request_id")]
        step_id: Option<String>,
    }

    let Named { step_id } = from_fields(fields, &["body"])?;
    match step_id {
        Some(id) if id.is_empty() || id.chars().count() > LONGEST_STEP_ID => {
            let msg = format_args!("must be of 1 to {LONGEST_STEP_ID} characters");
            Err(Invalid::value(&["body", STEP_ID], msg, id.clone().into()))
        }
        step_id => Ok(step_id.map(Arc::from)),
    }
}

/// A step's reply.
struct Done {
    is_terminal: bool,
    json: Arc<RawValue>,
}

impl<E: GymnasiumServer> Core<E> {
    async fn answer(self: Arc<Self>, caller: Caller, action: Action<E::Metadata>) -> Result<Arc<RawValue>> {
        if !Self::KEEPS_SESSIONS {
            let session = self.store.session(&caller)?;
            return Ok(self.take(session, action.response, action.metadata).await?.json);
        }
        if action.step_id.is_none() {
            return self.answer_in_session(&caller, action).await;
        }
        let patience = self.settings.session_close_retry_window;
        let stopping = self.store.stopping().clone();
        with_patience(patience, stopping, async move { self.answer_in_session(&caller, action).await }).await
    }

    /// Takes the step, or repeats the reply that it got.
    async fn answer_in_session(&self, caller: &Caller, action: Action<E::Metadata>) -> Result<Arc<RawValue>> {
        let unknown = unknown_session;
        let record = self.store.find(caller.id()).ok_or_else(unknown)?;
        // A repeat waits for the first one's reply.
        let _one_at_a_time = record.turn(caller).await;
        let session = {
            let mut locked = self.store.lock_record(record.clone(), caller).await;
            if let Some(earlier) = locked.inner.replayable.as_ref()
                && Some(&earlier.request) == action.step_id.as_ref()
            {
                caller.uses();
                if record.phase() != Phase::Open {
                    caller.ends();
                }
                return Ok(earlier.reply.clone());
            }
            if let Some(step_id) = &action.step_id {
                if locked.took_step(step_id) {
                    return Err(late_copy());
                }
                if record.phase() == Phase::Open {
                    locked.begins_step(step_id);
                }
            }
            if record.phase() != Phase::Open {
                return Err(unknown());
            }
            Session::new(caller.clone(), record.clone(), self.store.clone())
        };
        caller.uses();
        let life = session.life();
        let done = self.take(session, action.response, action.metadata).await?;
        let json = done.json.clone();
        self.settle(caller, &record, life, action.step_id, done).await;
        Ok(json)
    }

    /// The author's step.
    async fn take(
        &self,
        session: Session<E::State>,
        action: NeMoGymResponse,
        metadata: E::Metadata,
    ) -> Result<Done> {
        let step = catch_panic(self.server.step(session, action, metadata)).await.flatten()?;
        let response = step.into_response()?;
        Ok(Done { is_terminal: response.is_terminal(), json: to_json(&response)?.into() })
    }

    /// Remembers a reply that may be asked for again, then ends the session if the step was terminal.
    async fn settle(
        &self,
        caller: &Caller,
        record: &Arc<Record<E::State>>,
        life: u32,
        step_id: Option<Arc<str>>,
        done: Done,
    ) {
        let mut locked = self.store.lock_record(record.clone(), caller).await;
        if let Some(step_id) = &step_id {
            locked.ends_step(step_id);
        }
        // A reset came meanwhile: what it began goes on.
        if record.life() != life {
            return;
        }
        if let Some(request) = step_id {
            locked.inner.replayable = Some(Replayable { request, reply: done.json });
        }
        if done.is_terminal && record.phase() == Phase::Open {
            // The gateway sees it by itself only where `/reset` began the session.
            caller.ends();
            locked.end(Phase::Ended, Released::Terminal).await;
        }
    }
}

/// 409: a copy of a step whose reply is not the last one any more. Whoever sent it has gone on since.
fn late_copy() -> Failure {
    let reason = "a step of this name was taken before, and others, or a reset, have come since; its reply is not kept. \
                  Give every step a name of its own";
    Failure::conflict(reason).with_code("late_step")
}
