//! Gymnasium servers: the reset/step protocol of NeMo Gym.
//!
//! An environment is a type with [`GymnasiumServer`]; [`GymnasiumApp`] serves it. NeMo Gym's `gymnasium_agent` drives it:
//! it resets once, and sends every answer of the model as a step, until one is terminal.
//!
//! | route | |
//! |---|---|
//! | `POST /reset` | begins the caller's session, anew if there is one; every reply sets the session cookie |
//! | `POST /step` | one transition. On a server that keeps state, 404 (`unknown_session`) for a session that is not held here |
//! | `POST /close` | gives up the session, with [`SUPPORTS_EXPLICIT_CLOSE`](GymnasiumServer::SUPPORTS_EXPLICIT_CLOSE) |
//! | `POST /aggregate_metrics`, health routes | as of any server |
//!
//! Where NeMo Gym's own servers step an unknown session in whatever state they make up, with a reward that nobody can
//! tell from a true one, here it is an error: `gymnasium_agent` then fails the rollout. A masked sample would not do:
//! the agent of NeMo Gym 0.7 does not know the keys that mask one.

mod app;
mod close;
mod outcome;
mod patience;
mod reset;
mod step;

use std::sync::Arc;

use gym_wire::message::NeMoGymResponse;
use serde::de::DeserializeOwned;

pub use app::GymnasiumApp;
pub use outcome::{Reset, Step};

use crate::Result;
use crate::errors::Failure;
use crate::metrics::MetricsHooks;
use crate::session::{Released, Session, SessionState};

/// What is known of a session that is being reset.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResetInfo {
    /// The session ID.
    pub id: Arc<str>,
}

/// An environment with the reset/step protocol: NeMo Gym's `GymnasiumServer`.
///
/// One value serves all sessions; what belongs to one rollout is in [`State`](Self::State), which is reached through its
/// [`Session`] only.
///
/// ```
/// use gym_worker_sdk::{Empty, GymnasiumServer, NeMoGymResponse, Result, Session, Step};
///
/// /// One word, three tries.
/// struct Password;
///
/// impl GymnasiumServer for Password {
///     const CLASS: &'static str = "PasswordEnv";
///     type Metadata = Empty;
///     type State = u32;
///
///     async fn step(&self, session: Session<u32>, action: NeMoGymResponse, _: Empty) -> Result<Step> {
///         let mut tries = session.state().await?;
///         *tries += 1;
///         Ok(match action.output_text().as_str() {
///             "swordfish" => Step::reward(1.0).terminated(),
///             _ if *tries == 3 => Step::reward(0.0).truncated(),
///             _ => Step::reward(0.0).observation("No. Try again."),
///         })
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Gymnasium server yet",
    note = "write `impl GymnasiumServer for {Self}` with its two types, `CLASS` and `step`"
)]
pub trait GymnasiumServer: Send + Sync + Sized + 'static {
    /// The fields of the task's row besides `responses_create_params`, such as the answer; [`Empty`](crate::Empty) if
    /// they do not matter, a `serde_json::Map` for all as they are. Every reset and every step carries them.
    ///
    /// Further fields are looked past: agents add some of their own, such as `_ng_rollout_id`, so
    /// `#[serde(deny_unknown_fields)]` would refuse real requests.
    type Metadata: DeserializeOwned + Send + 'static;

    /// What a session holds. `()`, and any type without content: the server keeps no state, and any request is served
    /// without a reset.
    type State: SessionState;

    /// The first part of the session cookie's name, `<CLASS>___<server name>`: the class's name in Python.
    const CLASS: &'static str;

    /// Whether a session's requests must reach the worker that holds it. A server that shares its state outside of
    /// the process can say `false`, as NeMo Gym's `routes_sessions_to_owner` does. Default: `true`.
    const ROUTES_SESSIONS_TO_OWNER: bool = true;

    /// Whether there is `POST /close`, which gives up a session before its terminal step. The agent is told by `info` of
    /// the reset's reply, and closes each rollout, also one that fails: for states that hold a slot of something scarce.
    /// Default: `false`.
    const SUPPORTS_EXPLICIT_CLOSE: bool = false;

    /// Whether a step that is sent again (with the same `_ng_step_request_id`) gets the reply that it got, instead of
    /// being another step: its first reply may have been lost. The agent is told by `info` of the reset's reply. Only a
    /// session's last reply is there to be repeated, the terminal one too, for the close-retry window; a copy of an earlier
    /// step, or of one before a reset, is refused with 409 (`late_step`). A step that failed may be sent again. Default:
    /// `false`.
    ///
    /// Such a step is not cancelled at once when its client leaves, since the client may be about to send it again; it
    /// has the close-retry window to come to its end.
    const SUPPORTS_STEP_IDEMPOTENCY: bool = false;

    /// Begins an episode. Called under the session's lock; what the session held before is released after it. Default:
    /// a default state, and nothing to observe.
    ///
    /// If the client leaves meanwhile, this is dropped at the `await` where it is, and the session stays as it was: there
    /// is no new state yet that [`release`](Self::release) would get. So what was begun by then, such as a container,
    /// must be given back when it is dropped.
    ///
    /// # Errors
    /// Any; the reply is the failure's, and the session stays as it was.
    fn reset(
        &self,
        info: ResetInfo,
        metadata: Self::Metadata,
    ) -> impl Future<Output = Result<Reset<Self::State>>> + Send {
        let _unused = (info, metadata);
        async {
            let written = "reset is not written, and the state has no default: write one of them";
            Self::State::unseeded().map(Reset::new).ok_or_else(|| Failure::fault(written))
        }
    }

    /// Takes one step: `action` is the model's whole answer, with its messages and function calls. A session's steps are
    /// taken one at a time, in the order in which they come.
    ///
    /// After a terminal one ([`Step::terminated`], [`Step::truncated`]) the session is over and its state released.
    /// `gymnasium_agent` gives up after `max_steps` of its own without saying so: be terminal before it.
    ///
    /// # Errors
    /// Any; the reply is the failure's, and the session goes on.
    fn step(
        &self,
        session: Session<Self::State>,
        action: NeMoGymResponse,
        metadata: Self::Metadata,
    ) -> impl Future<Output = Result<Step>> + Send;

    /// Gives back what a state holds, exactly once for each: after a terminal step, close, idleness, a new reset, or at
    /// the server's stop. Default: the state is dropped.
    fn release(&self, id: Arc<str>, state: Self::State, why: Released) -> impl Future<Output = ()> + Send {
        let _unused = (id, why);
        drop(state);
        async {}
    }

    /// What `/aggregate_metrics` adds to the numbers of its own. Default: nothing.
    fn metrics(&self) -> &(dyn MetricsHooks + Sync) {
        &()
    }

    /// Why this server must not have several workers, such as a registry that is keyed by another ID in a request's
    /// body. Default: it may.
    fn multiple_workers_unsupported_reason(&self) -> Option<String> {
        None
    }
}
