//! `POST /reset`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use gym_wire::message::{ResetResponse, ResponsesCreateParams};
use serde::Deserialize;

use super::app::Core;
use super::step::PARAMS;
use super::{GymnasiumServer, ResetInfo};
use crate::Result;
use crate::body::fields;
use crate::http::{collect_bytes, json_reply, two_parts};
use crate::session::Caller;

/// What a body has besides the task's row.
#[derive(Deserialize)]
struct Begun {
    /// For its types only: metadata is without it.
    #[serde(rename = "responses_create_params")]
    _params: ResponsesCreateParams,
}

pub(super) async fn reset<E: GymnasiumServer>(
    State(core): State<Arc<Core<E>>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let content_type = request.headers().get(CONTENT_TYPE).cloned();
    let bytes = match collect_bytes(request).await {
        Ok(bytes) => bytes,
        Err(refused) => return refused,
    };
    let metadata = fields(&bytes, content_type.as_ref()).and_then(|fields| two_parts(&fields, &[PARAMS]));
    let (_, metadata): (Begun, _) = match metadata {
        Ok(parts) => parts,
        Err(invalid) => return invalid.into_response(),
    };
    match core.begin(&caller, metadata).await {
        Ok(response) => json_reply(&response),
        Err(failure) => failure.into_response(),
    }
}

impl<E: GymnasiumServer> Core<E> {
    /// Begins the caller's session, anew if it is open.
    async fn begin(&self, caller: &Caller, metadata: E::Metadata) -> Result<ResetResponse> {
        let info = ResetInfo { id: caller.id().clone() };
        if !Self::KEEPS_SESSIONS {
            let mut reset = self.server.reset(info, metadata).await?;
            self.tell(&mut reset.response);
            return Ok(reset.response);
        }
        let mut locked = self.store.lock(caller).await;
        locked.may_start_anew()?;
        let mut reset = self.server.reset(info, metadata).await?;
        self.tell(&mut reset.response);
        locked.open(reset.state, None);
        Ok(reset.response)
    }
}
