//! What an author writes.

use std::any::type_name;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Observed, Reset, State, StepInfo};
use crate::tasks::last_name;
use crate::tools::Tools;
use crate::{Failure, Result};

/// An environment: OpenEnv's `Environment`. One value is one session, and holds what belongs to it.
///
/// ```
/// use gym_worker_sdk::openenv::{Environment, Observed, Reset, State, StepInfo};
/// use gym_worker_sdk::{Empty, Result};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Say {
///     message: String,
/// }
///
/// #[derive(Serialize, JsonSchema)]
/// struct Echo {
///     echoed: String,
/// }
///
/// #[derive(Default)]
/// struct EchoEnvironment(State<()>);
///
/// impl Environment for EchoEnvironment {
///     type Action = Say;
///     type Observation = Echo;
///     type State = ();
///     type Params = Empty;
///
///     async fn reset(&mut self, reset: Reset) -> Result<Observed<Echo>> {
///         self.0 = State::begin(reset.episode_id, ());
///         Ok(Observed::new(Echo { echoed: "ready".into() }))
///     }
///
///     async fn step(&mut self, Say { message }: Say, _: StepInfo) -> Result<Observed<Echo>> {
///         self.0.step_count += 1;
///         let reward = message.len() as f64 * 0.1;
///         Ok(Observed::new(Echo { echoed: message }).reward(reward))
///     }
///
///     async fn state(&mut self) -> Result<State<()>> {
///         Ok(self.0.clone())
///     }
/// }
/// ```
///
/// Methods run one at a time, each to its end. What none of them says is in the [module's words](super).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an OpenEnv environment yet",
    note = "write `impl Environment for {Self}` with its four types, `reset`, `step` and `state`"
)]
pub trait Environment: Send + Sized + 'static {
    /// What a step is asked to do. Keys that its schema does not have are refused, as in OpenEnv; `metadata` is not its
    /// own ([`StepInfo::metadata`]).
    type Action: DeserializeOwned + JsonSchema + Send + 'static;

    /// What is seen after a reset or a step, besides reward, `done` and metadata, which are [`Observed`]'s.
    type Observation: Serialize + JsonSchema + Send + 'static;

    /// What `/state` tells, besides the episode's ID and step count, which are [`State`]'s; `()` if nothing.
    type State: Serialize + JsonSchema + Send + 'static;

    /// The author's own reset parameters, besides those of [`Reset`]: [`Empty`](crate::Empty) if there are none, and others are
    /// dropped; a struct for some, and others are dropped; a `serde_json::Map` keeps all.
    type Params: DeserializeOwned + Send + 'static;

    /// Whether there may be several sessions at a time. Each has a value of its own; `false` is for environments that
    /// share something else, such as a device. Default: `true`.
    const SUPPORTS_CONCURRENT_SESSIONS: bool = true;

    /// Whether its methods block their thread: then each call runs on the pool for blocking code, those of its own tasks
    /// too. A method that never returns then keeps its thread to the end of the process. Default: `false`.
    const BLOCKS: bool = false;

    /// Begins an episode.
    ///
    /// # Errors
    /// Any. The environment goes on as the method left it: change nothing before all is known to be well.
    fn reset(
        &mut self,
        reset: Reset<Self::Params>,
    ) -> impl Future<Output = Result<Observed<Self::Observation>>> + Send;

    /// Takes one step. A client may step a new environment before any reset.
    ///
    /// # Errors
    /// Any.
    fn step(
        &mut self,
        action: Self::Action,
        info: StepInfo,
    ) -> impl Future<Output = Result<Observed<Self::Observation>>> + Send;

    /// Tells the state.
    ///
    /// # Errors
    /// Any.
    fn state(&mut self) -> impl Future<Output = Result<State<Self::State>>> + Send;

    /// Gives back what it holds. Called once for each value that was made, whatever ended its session; its place is
    /// taken until this is done. Default: it is dropped.
    fn close(self) -> impl Future<Output = ()> + Send {
        async move { drop(self) }
    }

    /// The tools that a model may call by MCP. `reset`, `step`, `state` and `close` are no names for tools. Default: none, and
    /// clients are told that the environment does not support MCP.
    fn tools() -> Tools<Self> {
        Tools::new()
    }

    /// What `/metadata` tells. Default: the type's name.
    fn metadata() -> Metadata {
        Metadata::named(last_name(type_name::<Self>()))
    }
}

/// What is told about an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its README.
    pub readme_content: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// Where it is documented.
    pub documentation_url: Option<String>,
}

impl Metadata {
    /// What OpenEnv tells of an environment of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: format!("{name} environment"),
            readme_content: None,
            version: Some("1.0.0".to_owned()),
            author: None,
            documentation_url: None,
        }
    }
}

/// What a factory makes: an environment, or a `Result` of one.
pub trait MadeEnvironment: 'static {
    /// The environment.
    type Environment: Environment;

    /// The environment, or why it could not be made: `FACTORY_ERROR`.
    ///
    /// # Errors
    /// If the factory failed.
    fn made(self) -> Result<Self::Environment>;
}

impl<E: Environment> MadeEnvironment for E {
    type Environment = E;

    fn made(self) -> Result<E> {
        Ok(self)
    }
}

impl<E: Environment, X: Into<Failure> + 'static> MadeEnvironment for Result<E, X> {
    type Environment = E;

    fn made(self) -> Result<E> {
        self.map_err(Into::into)
    }
}
