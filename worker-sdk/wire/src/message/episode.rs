//! Which attempt at which task: the identities of `nemo_gym.episode_types`.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// One physical attempt at a rollout.
///
/// ```
/// use gym_wire::message::EpisodeId;
///
/// let second = EpisodeId::new("r1", 1)?;
/// assert_eq!(second.capture_key(), "r1-a1");
/// assert!(EpisodeId::new("r1-a1", 0).is_err(), "that key is taken");
/// # Ok::<(), gym_wire::message::InvalidId>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpisodeId {
    #[serde(deserialize_with = "rollout_id")]
    rollout_id: String,
    #[serde(default)]
    attempt: u64,
}

/// One task of a taskset.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskId {
    #[serde(deserialize_with = "non_empty")]
    taskset: String,
    #[serde(deserialize_with = "non_empty")]
    task_id: String,
}

/// Why a string identifies nothing. The words are pydantic's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// It is empty.
    #[error("String should have at least 1 character")]
    Empty,
    /// It has a character that no rollout ID has.
    #[error("String should match pattern '^[A-Za-z0-9][A-Za-z0-9._-]*$'")]
    Characters,
    /// It ends as the capture key of a later attempt does.
    #[error("rollout_id must not end with the reserved attempt suffix '-a<N>'")]
    AttemptSuffix,
}

impl EpisodeId {
    /// Puts an identity together. `attempt` counts from 0.
    ///
    /// # Errors
    /// If `rollout_id` is not `[A-Za-z0-9][A-Za-z0-9._-]*`, or ends in `-a` and a number that has no leading zero.
    pub fn new(rollout_id: impl Into<String>, attempt: u64) -> Result<Self, InvalidId> {
        let rollout_id = rollout_id.into();
        check_rollout_id(&rollout_id)?;
        Ok(Self { rollout_id, attempt })
    }

    /// The rollout.
    pub fn rollout_id(&self) -> &str {
        &self.rollout_id
    }

    /// Which attempt at it, from 0.
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// The key that stands in paths such as `/ng-rollout/<key>/`: unlike for every attempt.
    pub fn capture_key(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for EpisodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.attempt {
            0 => f.write_str(&self.rollout_id),
            attempt => write!(f, "{}-a{attempt}", self.rollout_id),
        }
    }
}

impl TaskId {
    /// Puts an identity together.
    ///
    /// # Errors
    /// If either part is empty.
    pub fn new(taskset: impl Into<String>, task_id: impl Into<String>) -> Result<Self, InvalidId> {
        let (taskset, task_id) = (taskset.into(), task_id.into());
        if taskset.is_empty() || task_id.is_empty() {
            return Err(InvalidId::Empty);
        }
        Ok(Self { taskset, task_id })
    }

    /// The taskset's name.
    pub fn taskset(&self) -> &str {
        &self.taskset
    }

    /// The task's ID within it.
    pub fn task_id(&self) -> &str {
        &self.task_id
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.taskset, self.task_id)
    }
}

fn check_rollout_id(text: &str) -> Result<(), InvalidId> {
    let (first, rest) = text.as_bytes().split_first().ok_or(InvalidId::Empty)?;
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    if !first.is_ascii_alphanumeric() || !rest.iter().all(allowed) {
        return Err(InvalidId::Characters);
    }
    let before_number = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &text[before_number.len()..];
    // `-a01` is taken, as Gym takes it; so is `-a`.
    if before_number.ends_with("-a") && !number.is_empty() && !number.starts_with('0') {
        return Err(InvalidId::AttemptSuffix);
    }
    Ok(())
}

fn rollout_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    check_rollout_id(&text).map_err(D::Error::custom)?;
    Ok(text)
}

/// A string of at least one character.
pub(super) fn non_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() { Err(D::Error::custom(InvalidId::Empty)) } else { Ok(text) }
}
