//! The seed that a check starts from, and the sessions that are derived from it.

use serde_json::{Map, Value};

/// The longest `resources_session_id` of a [`Seed`]: a gateway takes 256 bytes, and a suffix is put behind it.
pub const MAX_SESSION_ID_BYTES: usize = 200;

/// An episode seed: the body of `POST /seed_session` as an environment server sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct Seed {
    resources_session_id: String,
    rollout_id: String,
    attempt: u64,
    body: Map<String, Value>,
}

/// Why a value is no [`Seed`].
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// Not JSON at all.
    #[error("the seed is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Fields are missing or wrong; every one of them, in words.
    #[error(
        "the seed is no episode seed: {}. One is {{\"resources_session_id\": \"s\", \"episode_id\": {{\"rollout_id\": \
         \"r\", \"attempt\": 0}}, \"task_id\": {{\"taskset\": \"t\", \"task_id\": \"0\"}}, \"task_data\": {{}}}}",
        .0.join("; ")
    )]
    Fields(Vec<String>),
}

impl Seed {
    /// Takes a body that has `resources_session_id`, `episode_id`, `task_id` and `task_data`; other fields are sent as
    /// they are.
    ///
    /// # Errors
    /// [`SeedError::Fields`] if one of those is missing or of another type.
    pub fn new(body: Value) -> Result<Self, SeedError> {
        let mut problems = Vec::new();
        let text = |path: &str, problems: &mut Vec<String>| match body.pointer(path).and_then(Value::as_str) {
            Some(text) if !text.is_empty() => text.to_owned(),
            _ => {
                let field = path.trim_start_matches('/').replace('/', ".");
                problems.push(format!("{field} must be a text that is not empty"));
                String::new()
            }
        };
        let resources_session_id = text("/resources_session_id", &mut problems);
        if resources_session_id.len() > MAX_SESSION_ID_BYTES {
            problems.push(format!("resources_session_id is longer than {MAX_SESSION_ID_BYTES} bytes"));
        }
        let rollout_id = text("/episode_id/rollout_id", &mut problems);
        let attempt = body.pointer("/episode_id/attempt").map_or(Some(0), Value::as_u64);
        if attempt.is_none() {
            problems.push("episode_id.attempt must be a number from 0".into());
        }
        text("/task_id/taskset", &mut problems);
        text("/task_id/task_id", &mut problems);
        if !body.get("task_data").is_some_and(Value::is_object) {
            problems.push("task_data must be an object".into());
        }
        match (body, attempt) {
            (Value::Object(body), Some(attempt)) if problems.is_empty() => {
                Ok(Self { resources_session_id, rollout_id, attempt, body })
            }
            _ => Err(SeedError::Fields(problems)),
        }
    }

    /// As [`Seed::new`], from JSON text.
    ///
    /// # Errors
    /// [`SeedError`] if it is not JSON, or no episode seed.
    pub fn from_json(json: &[u8]) -> Result<Self, SeedError> {
        Self::new(serde_json::from_slice(json)?)
    }

    /// The session of one scenario. Numbered so that no rollout ID ends in `-a1`, which NeMo Gym reserves.
    pub(super) fn session(&self, run: &str, scenario: usize) -> Session {
        let suffix = format!("-{run}s{scenario}");
        Session {
            id: format!("{}{suffix}", self.resources_session_id),
            rollout_id: format!("{}{suffix}", self.rollout_id),
            attempt: self.attempt,
            body: self.body.clone(),
        }
    }
}

/// One scenario's session and episode.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: String,
    rollout_id: String,
    attempt: u64,
    body: Map<String, Value>,
}

impl Session {
    /// The episode that it belongs to.
    pub(super) fn episode(&self) -> Value {
        episode(&self.rollout_id, self.attempt)
    }

    /// An episode of another rollout.
    pub(super) fn other_rollout(&self) -> Value {
        episode(&format!("{}-other", self.rollout_id), self.attempt)
    }

    /// Another attempt at the same rollout, which is another episode.
    pub(super) fn other_attempt(&self) -> Value {
        episode(&self.rollout_id, self.attempt.saturating_add(1))
    }

    /// The body of a seed for that episode.
    pub(super) fn seed(&self, episode: &Value) -> Value {
        let mut body = self.body.clone();
        body.insert("resources_session_id".into(), self.id.as_str().into());
        body.insert("episode_id".into(), episode.clone());
        Value::Object(body)
    }

    /// The body of a close for that episode.
    pub(super) fn close(&self, episode: &Value) -> Value {
        serde_json::json!({"resources_session_id": self.id, "episode_id": episode})
    }

    /// The body of a verify, made this session's.
    pub(super) fn verify(&self, body: &Value) -> Value {
        let mut body = body.clone();
        if let Some(id) = body.get_mut("resources_session_id") {
            *id = self.id.as_str().into();
        }
        if let Some(of) = body.get_mut("episode_id") {
            *of = self.episode();
        }
        body
    }
}

fn episode(rollout_id: &str, attempt: u64) -> Value {
    serde_json::json!({"rollout_id": rollout_id, "attempt": attempt})
}
