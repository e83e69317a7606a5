//! Resources servers: the seed/verify protocol of NeMo Gym.
//!
//! An environment is a type with [`ResourcesServer`]; [`ResourcesApp`] serves it.

mod app;
mod close;
mod refusal;
mod seed;
mod tool;
mod tools;
mod verify;

use std::sync::Arc;

use gym_wire::message::{EpisodeId, SandboxAccess, TaskId, Verdict, VerifyRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) use app::Core;
pub use app::ResourcesApp;
pub use gym_wire::message::Empty;
pub use refusal::SeedError;
pub use tool::{
    Form, FromJson, HasJsonSchema, SameServer, ToJson, ToolArguments, ToolFunction, ToolReturns, ToolTakes,
};
pub(crate) use tools::Tools;
#[cfg(feature = "mcp")]
pub(crate) use tools::{ErasedTool, ToolError};

use crate::Result;
use crate::metrics::MetricsHooks;
use crate::session::{Released, Session, SessionState};

/// Whether a stored rollout may be scored again without its session (`gym eval reverify`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReverifyMode {
    /// `verify` needs nothing but its body.
    Stateless,
    /// `verify` needs the session.
    Unsupported,
    /// The author did not say.
    #[default]
    Unknown,
}

/// What is known of a session that is being seeded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SeedInfo {
    /// The session ID.
    pub id: Arc<str>,
    /// The episode, of a seed by an environment server; `None` of a legacy seed, by an agent.
    pub episode: Option<EpisodeId>,
    /// The task, of a seed by an environment server.
    pub task: Option<TaskId>,
}

/// What a seed made: the session's state, and what the reply says besides.
#[derive(Clone, Debug)]
pub struct Seeded<S> {
    pub(crate) state: S,
    pub(crate) observation: Option<Option<String>>,
    pub(crate) sandbox_access: Option<SandboxAccess>,
    pub(crate) fields: Map<String, Value>,
}

impl<S> Seeded<S> {
    /// A session with this state, and a reply without anything besides.
    pub fn new(state: S) -> Self {
        Self { state, observation: None, sandbox_access: None, fields: Map::new() }
    }

    /// A first observation for the environment server `single_agent_turn`, which adds it to the prompt as a user
    /// message. Default: the field is left out; `None` and an empty text are sent as they are.
    #[must_use]
    pub fn observation(mut self, text: impl Into<Option<String>>) -> Self {
        self.observation = Some(text.into());
        self
    }

    /// How an agent reaches the session's sandbox. Default: null. Only environment servers are told.
    #[must_use]
    pub fn sandbox_access(mut self, access: SandboxAccess) -> Self {
        self.sandbox_access = Some(access);
        self
    }

    /// A further field of the reply to a legacy seed. The reply to an environment server has no room for it.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}

impl<S> From<S> for Seeded<S> {
    fn from(state: S) -> Self {
        Self::new(state)
    }
}

/// An environment with the seed/verify protocol: NeMo Gym's `SimpleResourcesServer`.
///
/// One value serves all sessions; what belongs to one rollout is in [`State`](Self::State), which is reached through its
/// [`Session`] only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resources server yet",
    note = "write `impl ResourcesServer for {Self}` with its four types, `CLASS` and `verify`"
)]
pub trait ResourcesServer: Send + Sync + Sized + 'static {
    /// What a seed carries: the body of a legacy seed, `task_data` of an environment server's. [`Empty`] if nothing.
    /// Further fields are looked past; `#[serde(deny_unknown_fields)]` refuses them with 422, and a
    /// `#[serde(flatten)]` map keeps them.
    type Seed: DeserializeOwned + Send + 'static;

    /// What a session holds. `()`, and any type without content: the server keeps no state, and any request is served
    /// without a seed.
    type State: SessionState;

    /// The fields of a verify body besides `responses_create_params` and `response`; [`Empty`] if none.
    type Verify: DeserializeOwned + Send + 'static;

    /// The fields of a verify reply besides those of [`Verdict`] and of the conversation; [`Empty`] if none. One that has
    /// the name of one of those is a 500 that says so. A float that is not finite becomes null, with a warning.
    type Details: Serialize + Send + 'static;

    /// The first part of the session cookie's name, `<CLASS>___<server name>`: the class's name in Python.
    const CLASS: &'static str;

    /// Whether a session's requests must reach the worker that holds it. A server that shares its state outside of
    /// the process can say `false`, as NeMo Gym's `routes_sessions_to_owner` does. Default: `true`.
    const ROUTES_SESSIONS_TO_OWNER: bool = true;

    /// What `/reverify_mode` answers. Default: unknown.
    const REVERIFY_MODE: ReverifyMode = ReverifyMode::Unknown;

    /// Begins a session. Called under the session's lock; not for the repeat of an episode's seed, which gets the
    /// first one's reply. Default: a default state.
    ///
    /// If the client leaves meanwhile, this is dropped at the `await` where it is, and the session stays as it was: there
    /// is no state yet that [`release`](Self::release) would get. So what was begun by then, such as a container, must
    /// be given back when it is dropped. A seed that is sent again begins anew.
    ///
    /// # Errors
    /// [`SeedError`], by which the session stays unseeded.
    fn seed_session(
        &self,
        info: SeedInfo,
        seed: Self::Seed,
    ) -> impl Future<Output = Result<Seeded<Self::State>, SeedError>> + Send {
        let _unused = (info, seed);
        async { Self::State::unseeded().map(Seeded::new).ok_or_else(SeedError::not_written) }
    }

    /// Scores a session by its finished trajectory. Called once for a body: a repeat gets the first one's verdict for
    /// the close-retry window (if the server keeps state). Not called for a session that is not open here; that is
    /// answered with a masked sample.
    ///
    /// After it a session is over and its state released, unless an episode seed opened it (its close follows) or
    /// [`Session::keep_open`] was called.
    ///
    /// # Errors
    /// Any; the reply is the failure's, and the session goes on.
    fn verify(
        &self,
        session: Session<Self::State>,
        request: VerifyRequest<Self::Verify>,
    ) -> impl Future<Output = Result<Verdict<Self::Details>>> + Send;

    /// What is to be done before an open session is closed, and may fail: then the reply is the failure's, and the
    /// session stays open for another try. Called under the session's lock. Default: nothing.
    ///
    /// # Errors
    /// Any.
    fn close_session(&self, id: &str, state: &mut Self::State) -> impl Future<Output = Result<()>> + Send {
        let _unused = (id, state);
        async { Ok(()) }
    }

    /// Gives back what a state holds, exactly once for each: after close, verify, idleness, a new start, or at the
    /// server's stop. Default: the state is dropped.
    fn release(&self, id: Arc<str>, state: Self::State, why: Released) -> impl Future<Output = ()> + Send {
        let _unused = (id, why);
        drop(state);
        async {}
    }

    /// Which tools an MCP token of this session may list and call; `seed` is the body of a legacy seed, or `task_data`.
    /// Default: `None`, all.
    fn allowed_tools(&self, seed: &Map<String, Value>) -> Option<Vec<String>> {
        let _unused = seed;
        None
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
