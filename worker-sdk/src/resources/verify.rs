//! `POST /verify`.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use gym_wire::message::{NeMoGymResponse, ResponsesCreateParams, Verdict, VerifyRequest};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::ResourcesServer;
use super::app::Core;
use crate::Failure;
use crate::body::{Fields, fields};
use crate::errors::Invalid;
use crate::http::{collect_bytes, json_text_reply, to_json, two_parts};
use crate::session::{Caller, Phase, Record, Released, Replayable, Session};

/// The fields of the protocol itself.
const PARAMS: &str = "responses_create_params";
const RESPONSE: &str = "response";

/// What a body has besides the author's fields.
#[derive(Deserialize)]
struct Conversation {
    responses_create_params: ResponsesCreateParams,
    response: NeMoGymResponse,
    #[serde(default, rename = "_ng_rollout_id")]
    capture_rollout_id: Option<String>,
}

pub(super) async fn verify<E: ResourcesServer>(
    State(core): State<Arc<Core<E>>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let content_type = request.headers().get(CONTENT_TYPE).cloned();
    let bytes = match collect_bytes(request).await {
        Ok(bytes) => bytes,
        Err(refused) => return refused,
    };
    let fields = match fields(&bytes, content_type.as_ref()) {
        Ok(fields) => fields,
        Err(invalid) => return invalid.into_response(),
    };
    let request = match core.verify_request(&fields) {
        Ok(request) => request,
        Err(invalid) => return invalid.into_response(),
    };
    let verdict = match Core::<E>::KEEPS_STATE {
        true => core.verdict_of_session(&caller, &bytes, request).await,
        false => match core.store.session(&caller) {
            Ok(session) => core.verdict(session, request).await,
            Err(failure) => Err(failure),
        },
    };
    match verdict.and_then(|verdict| reply(&fields, &verdict)) {
        Ok(reply) => reply,
        Err(failure) => failure.into_response(),
    }
}

impl<E: ResourcesServer> Core<E> {
    /// The body, typed. The conversation is echoed from its bytes and not from this.
    fn verify_request(&self, fields: &Fields<'_>) -> Result<VerifyRequest<E::Verify>, Invalid> {
        let (mut conversation, body): (Conversation, _) = two_parts(fields, &[PARAMS, RESPONSE])?;
        self.restore_tool_names(&mut conversation.response);
        Ok(VerifyRequest {
            responses_create_params: conversation.responses_create_params,
            response: conversation.response,
            capture_rollout_id: conversation.capture_rollout_id,
            body,
        })
    }

    /// The author's verdict as JSON.
    async fn verdict(
        &self,
        session: Session<E::State>,
        request: VerifyRequest<E::Verify>,
    ) -> Result<Arc<RawValue>, Failure> {
        let verdict = self.server.verify(session, request).await?;
        if !verdict.reward.is_finite() {
            return Err(Failure::fault(format!(
                "verify gave a reward that JSON has no number for: {}",
                verdict.reward
            )));
        }
        crate::failure_kinds::report(verdict.failure_kind.as_ref());
        let verdict = to_json(&verdict)?;
        if size_of::<E::Details>() > 0 {
            check_names(&verdict)?;
        }
        Ok(verdict.into())
    }

    /// The verdict on a session that should be held here: the author's, the one of an earlier copy of this request, or
    /// the masked sample.
    async fn verdict_of_session(
        self: &Arc<Self>,
        caller: &Caller,
        bytes: &Bytes,
        request: VerifyRequest<E::Verify>,
    ) -> Result<Arc<RawValue>, Failure> {
        let Some(record) = self.store.find(caller.id()) else { return lost() };
        let digest = digest(bytes);
        // A repeat waits for the first one's verdict.
        let _one_at_a_time = record.turn(caller).await;
        if let Some(earlier) = replayed(caller, &record, &digest).await {
            return Ok(earlier);
        }
        if record.phase() != Phase::Open {
            return lost();
        }
        let session = Session::new(caller.clone(), record.clone(), self.store.clone());
        let life = session.life();
        let verdict = match self.verdict(session, request).await {
            // A close, or the idle limit, came first.
            Err(failure) if failure.is_unknown_session() && record.life_is_over(life) => return lost(),
            verdict => verdict?,
        };
        let remembered = Replayable { request: digest, reply: verdict.clone() };
        self.settle(caller, &record, life, remembered).await;
        Ok(verdict)
    }

    /// Remembers a verdict, and ends the session unless a close will follow.
    async fn settle(
        self: &Arc<Self>,
        caller: &Caller,
        record: &Arc<Record<E::State>>,
        life: u32,
        verdict: Replayable,
    ) {
        let mut locked = self.store.lock_record(record.clone(), caller).await;
        // A seed came meanwhile: what it began goes on.
        if record.life() != life {
            caller.keeps_open();
            return;
        }
        locked.inner.replayable = Some(verdict);
        let stays = caller.is_kept_open() || locked.inner.episode.is_some();
        if record.phase() == Phase::Open && !stays {
            locked.end(Phase::Ended, Released::Verified).await;
        }
    }
}

/// Whether the author's fields have names of their own. What they are is known only now: `Details` may be a map.
///
/// # Errors
/// A fault that names the first one that the reply has already: of two equal keys each client would take another.
fn check_names(verdict: &RawValue) -> Result<(), Failure> {
    let Names(names) = serde_json::from_str(verdict.get())?;
    let is_taken = |(place, name): &(usize, &String)| {
        [PARAMS, RESPONSE].contains(&name.as_str()) || names[..*place].contains(name)
    };
    match names.iter().enumerate().find(is_taken) {
        None => Ok(()),
        Some((_, name)) => Err(Failure::fault(format!(
            "the reply to a verify would have {name:?} twice: it has a field of that name beside the fields of `Details`; \
             rename that of `Details`"
        ))),
    }
}

/// An object's keys, as they come.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

/// The verdict that this same request got before. The gateway is told what it was told, if it was, the first time.
async fn replayed<S>(caller: &Caller, record: &Record<S>, digest: &str) -> Option<Arc<RawValue>> {
    let inner = record.inner.lock().await;
    let earlier = inner.replayable.as_ref().filter(|earlier| *earlier.request == *digest)?;
    caller.uses();
    if record.phase() == Phase::Open && inner.episode.is_none() {
        caller.keeps_open();
    }
    Some(earlier.reply.clone())
}

/// The masked sample of a session that is not held here.
fn lost() -> Result<Arc<RawValue>, Failure> {
    to_json(&Verdict::session_lost()).map(Arc::from)
}

/// Names a request by its body: a client that saw no reply sends the same bytes again.
fn digest(bytes: &Bytes) -> Arc<str> {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{:x}-{:x}", bytes.len(), hasher.finish()).into()
}

/// The conversation as it came, and the verdict's fields behind it.
fn reply(fields: &Fields<'_>, verdict: &RawValue) -> Result<Response, Failure> {
    let (params, response) = (fields.get(PARAMS), fields.get(RESPONSE));
    let (Some(params), Some(response)) = (params, response) else {
        return Err(Failure::fault("a verify body lost its conversation"));
    };
    let verdict =
        verdict.get().strip_prefix('{').ok_or_else(|| Failure::fault("a verdict must be an object"))?;
    let json = format!(r#"{{"{PARAMS}":{},"{RESPONSE}":{},{verdict}"#, params.get(), response.get());
    Ok(json_text_reply(json))
}
