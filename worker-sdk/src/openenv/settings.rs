//! How many sessions, for how long, and which routes.

use std::time::Duration;

use serde_json::Value;

use crate::serve::{Settings, SetupError};

/// How many sessions at a time, where nobody says.
const MAX_CONCURRENT_ENVS: usize = 100;
/// The key of a server's block.
const KEY: &str = "max_concurrent_envs";
const IDLE: &str = "session_idle_timeout_seconds";

/// Which routes there are: OpenEnv's `OPENENV_MODE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All: for training.
    #[default]
    Simulation,
    /// Without `/reset`, `/step` and `/state` over HTTP.
    Production,
}

/// What a server keeps to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) max_concurrent_envs: usize,
    /// None: they never expire.
    pub(super) session_idle_timeout: Option<Duration>,
    pub(super) mode: Mode,
}

/// What the author says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    pub(super) max_concurrent_envs: Option<usize>,
    pub(super) mode: Option<Mode>,
}

impl Limits {
    /// What the server's block says, else the environment's variables, else the author; the mode by the author first, as in
    /// OpenEnv. `can_be_several` is whether the environment supports several sessions at a time.
    ///
    /// # Errors
    /// If a number is none, the mode is unknown, or there are to be several sessions and cannot be.
    pub(super) fn read(
        settings: &Settings,
        said: Said,
        can_be_several: bool,
        variable: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Self, SetupError> {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        Ok(Self {
            max_concurrent_envs: most(settings, said, can_be_several, &variable)?,
            session_idle_timeout: idle(settings, &variable)?,
            mode: mode(said, &variable)?,
        })
    }
}

fn most(
    settings: &Settings,
    said: Said,
    can_be_several: bool,
    variable: &dyn Fn(&'static str) -> Option<String>,
) -> Result<usize, SetupError> {
    let of_block = settings.block.get(KEY).filter(|value| !value.is_null()).map(|value| (KEY, count(value)));
    let of_variable = || {
        let value = variable("MAX_CONCURRENT_ENVS")?;
        Some(("MAX_CONCURRENT_ENVS", value.parse().ok().filter(|count| *count > 0)))
    };
    let most = match of_block.or_else(of_variable) {
        Some((_, Some(count))) => count,
        Some((name, None)) => return Err(wrong(format!("{name} must be a number above 0"))),
        None if can_be_several => said.max_concurrent_envs.unwrap_or(MAX_CONCURRENT_ENVS),
        None => said.max_concurrent_envs.unwrap_or(1),
    };
    match most {
        0 => Err(wrong("max_concurrent_envs must be above 0".to_owned())),
        2.. if !can_be_several => Err(wrong(format!(
            "it does not support several sessions at a time (SUPPORTS_CONCURRENT_SESSIONS is false), but \
             max_concurrent_envs is {most}: set it to 1"
        ))),
        most => Ok(most),
    }
}

fn idle(
    settings: &Settings,
    variable: &dyn Fn(&'static str) -> Option<String>,
) -> Result<Option<Duration>, SetupError> {
    let idle = match variable("SESSION_TIMEOUT").filter(|_| !settings.block.contains_key(IDLE)) {
        None => settings.session_idle_timeout,
        Some(value) => {
            let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            seconds.ok_or_else(|| wrong(format!("SESSION_TIMEOUT is no number of seconds: {value:?}")))?
        }
    };
    Ok(Some(idle).filter(|idle| !idle.is_zero()))
}

fn mode(said: Said, variable: &dyn Fn(&'static str) -> Option<String>) -> Result<Mode, SetupError> {
    let (None, Some(value)) = (said.mode, variable("OPENENV_MODE")) else {
        return Ok(said.mode.unwrap_or_default());
    };
    match value.to_lowercase().as_str() {
        "simulation" => Ok(Mode::Simulation),
        "production" => Ok(Mode::Production),
        _ => Err(wrong(format!("OPENENV_MODE is {value:?}: simulation or production are modes"))),
    }
}

fn wrong(words: String) -> SetupError {
    SetupError::Environment(words)
}

fn count(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0)
}

#[cfg(test)]
mod tests;
