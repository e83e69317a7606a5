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
        let wrong = |words: String| SetupError::Environment(words);
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let of_block =
            settings.block.get(KEY).filter(|value| !value.is_null()).map(|value| (KEY, count(value)));
        let of_variable = || {
            let value = variable("MAX_CONCURRENT_ENVS")?;
            Some(("MAX_CONCURRENT_ENVS", value.parse().ok().filter(|count| *count > 0)))
        };
        let max_concurrent_envs = match of_block.or_else(of_variable) {
            Some((name, None)) => return Err(wrong(format!("{name} must be a number above 0"))),
            Some((_, Some(count))) => count,
            None if can_be_several => said.max_concurrent_envs.unwrap_or(MAX_CONCURRENT_ENVS),
            None => said.max_concurrent_envs.unwrap_or(1),
        };
        if max_concurrent_envs == 0 {
            return Err(wrong("max_concurrent_envs must be above 0".to_owned()));
        }
        if max_concurrent_envs > 1 && !can_be_several {
            let words = "it does not support several sessions at a time (SUPPORTS_CONCURRENT_SESSIONS is false), \
                         but max_concurrent_envs is";
            return Err(wrong(format!("{words} {max_concurrent_envs}: set it to 1")));
        }
        let idle = match variable("SESSION_TIMEOUT").filter(|_| !settings.block.contains_key(IDLE)) {
            None => settings.session_idle_timeout,
            Some(value) => {
                let seconds =
                    value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                seconds.ok_or_else(|| wrong(format!("SESSION_TIMEOUT is no number of seconds: {value:?}")))?
            }
        };
        let mode = match (said.mode, variable("OPENENV_MODE")) {
            (Some(mode), _) => mode,
            (None, None) => Mode::default(),
            (None, Some(value)) => match value.to_lowercase().as_str() {
                "simulation" => Mode::Simulation,
                "production" => Mode::Production,
                _ => {
                    let words = format!("OPENENV_MODE is {value:?}: simulation or production are modes");
                    return Err(wrong(words));
                }
            },
        };
        let session_idle_timeout = Some(idle).filter(|idle| !idle.is_zero());
        Ok(Self { max_concurrent_envs, session_idle_timeout, mode })
    }
}

fn count(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: &str, said: Said, can: bool, variables: &[(&str, &str)]) -> Result<Limits, String> {
        let settings = Settings::new("env").with_block(block).unwrap();
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Limits::read(&settings, said, can, variable).map_err(|error| error.to_string())
    }

    #[test]
    fn the_block_comes_before_variables_and_these_before_the_author() {
        let said = Said { max_concurrent_envs: Some(3), mode: None };
        let most = |block, said, can, variables: &[_]| {
            read(block, said, can, variables).unwrap().max_concurrent_envs
        };
        assert_eq!(most("{}", Said::default(), true, &[]), 100);
        assert_eq!(most("{}", Said::default(), false, &[]), 1);
        assert_eq!(most("{}", said, true, &[]), 3);
        assert_eq!(most("{}", said, true, &[("MAX_CONCURRENT_ENVS", "4")]), 4);
        assert_eq!(most(r#"{"max_concurrent_envs": 5}"#, said, true, &[("MAX_CONCURRENT_ENVS", "4")]), 5);
    }

    #[test]
    fn idle_sessions_end_unless_the_limit_is_nought() {
        let idle = |block, variables: &[_]| {
            read(block, Said::default(), true, variables).unwrap().session_idle_timeout
        };
        assert_eq!(idle("{}", &[]), Some(Duration::from_secs(86_400)));
        assert_eq!(idle("{}", &[("SESSION_TIMEOUT", "0.5")]), Some(Duration::from_millis(500)));
        let block = r#"{"session_idle_timeout_seconds": 7}"#;
        assert_eq!(idle(block, &[("SESSION_TIMEOUT", "0.5")]), Some(Duration::from_secs(7)));
        assert_eq!(idle(r#"{"session_idle_timeout_seconds": 0}"#, &[]), None);
    }

    #[test]
    fn the_mode_is_the_authors_or_the_variables() {
        let mode = |mode, value| {
            let said = Said { mode, ..Said::default() };
            read("{}", said, true, &[("OPENENV_MODE", value)]).map(|limits| limits.mode)
        };
        assert_eq!(mode(None, ""), Ok(Mode::Simulation));
        assert_eq!(mode(None, "Production"), Ok(Mode::Production));
        assert_eq!(mode(Some(Mode::Simulation), "production"), Ok(Mode::Simulation));
        assert!(mode(None, "test").unwrap_err().contains("OPENENV_MODE is \"test\""));
    }

    #[test]
    fn what_cannot_be_is_told() {
        let said = |block, can, variables: &[_]| read(block, Said::default(), can, variables).unwrap_err();
        assert!(said("{}", true, &[("MAX_CONCURRENT_ENVS", "0")]).contains("MAX_CONCURRENT_ENVS must be"));
        assert!(said(r#"{"max_concurrent_envs": "x"}"#, true, &[]).contains("max_concurrent_envs must be"));
        assert!(said(r#"{"max_concurrent_envs": 2}"#, false, &[]).contains("set it to 1"));
        assert!(said("{}", true, &[("SESSION_TIMEOUT", "-1")]).contains("SESSION_TIMEOUT"));
    }
}
