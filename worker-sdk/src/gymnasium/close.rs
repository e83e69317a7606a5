//! `POST /close`: gives up a session, over or not.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use gym_wire::message::Empty;
use serde::Serialize;

use super::GymnasiumServer;
use super::app::Core;
use crate::session::{Caller, Phase, Released};

/// The reply, as NeMo Gym's server with this route has it.
#[derive(Serialize)]
pub(super) struct Closed {
    ok: bool,
    already_closed: bool,
    summary: Empty,
}

/// The body is not looked at. It is no error if there is nothing to close. A later reset may begin the session again.
pub(super) async fn close<E: GymnasiumServer>(
    State(core): State<Arc<Core<E>>>,
    Extension(caller): Extension<Caller>,
) -> Json<Closed> {
    let was_open = core.give_up(&caller).await;
    Json(Closed { ok: true, already_closed: !was_open, summary: Empty {} })
}

impl<E: GymnasiumServer> Core<E> {
    /// Whether there was something to give up.
    async fn give_up(&self, caller: &Caller) -> bool {
        let Some(record) = caller.cookie_id().and_then(|id| self.store.find_open(id)) else { return false };
        let locked = self.store.lock_record(record, caller).await;
        let was_open = locked.record.phase() == Phase::Open;
        if was_open {
            locked.end(Phase::Ended, Released::Closed).await;
        }
        was_open
    }
}
