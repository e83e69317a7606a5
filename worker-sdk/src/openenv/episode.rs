//! What goes into an environment's methods, and what comes out of them.

use std::ops::{Deref, DerefMut};

use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{Empty, Failure, Result};

/// The parameters of a reset. `P` are the author's own, [`Environment::Params`](super::Environment::Params).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reset<P = Empty> {
    /// Which part of the dataset.
    pub split: Option<String>,
    /// Which row of it, as it was sent: [`row`](Self::row) checks it.
    pub index: Option<i64>,
    /// Makes an episode reproducible. Over a WebSocket it may be negative, as in OpenEnv.
    pub seed: Option<i64>,
    /// What the client calls the episode.
    pub episode_id: Option<String>,
    /// A task as the Task API gave it, for environments that take it back whole.
    pub task_spec: Option<Value>,
    /// The author's own.
    pub params: P,
}

impl<P> Reset<P> {
    /// The split that is asked for, or this one.
    pub fn split_or<'a>(&'a self, default: &'a str) -> &'a str {
        self.split.as_deref().unwrap_or(default)
    }

    /// The row that is asked for in a split of that size: `index`; without one the row that the seed picks, so that
    /// episodes are reproducible; without both, the first.
    ///
    /// ```
    /// # use gym_worker_sdk::Empty;
    /// # use gym_worker_sdk::openenv::Reset;
    /// let reset = Reset::<Empty> { seed: Some(9), ..Reset::default() };
    /// assert_eq!(reset.row("test", 7).unwrap(), 2);
    /// let reset = Reset { index: Some(7), ..reset };
    /// assert_eq!(reset.row("test", 7).unwrap_err().to_string(), "index 7 out of range for split test");
    /// ```
    ///
    /// # Errors
    /// If no row has that index: it is negative, or past the end.
    pub fn row(&self, split: &str, size: u64) -> Result<u64> {
        let index = match (self.index, self.seed) {
            (Some(index), _) => i128::from(index),
            (None, Some(seed)) if size > 0 => i128::from(seed).rem_euclid(i128::from(size)),
            (None, _) => 0,
        };
        let row = u64::try_from(index).ok().filter(|row| *row < size);
        row.ok_or_else(|| Failure::fault(format_args!("index {index} out of range for split {split}")))
    }
}

/// What comes with a step's action. Over a WebSocket that is its metadata alone.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StepInfo {
    /// The action's `metadata`.
    pub metadata: Map<String, Value>,
    /// How long the client wants to wait, in seconds; nobody but the environment keeps to it.
    pub timeout_s: Option<f64>,
    /// What the client calls the request.
    pub request_id: Option<String>,
    /// Further keys of the request, beside the action.
    pub more: Map<String, Value>,
}

/// What is seen after a reset or a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed<O> {
    /// The observation itself.
    pub observation: O,
    /// The reward, if there is one yet.
    pub reward: Option<f64>,
    /// Whether the episode is over.
    pub done: bool,
    /// What else is said of it.
    pub metadata: Map<String, Value>,
}

impl<O> Observed<O> {
    /// Without a reward, and the episode goes on.
    pub fn new(observation: O) -> Self {
        Self { observation, reward: None, done: false, metadata: Map::new() }
    }

    /// With this reward.
    #[must_use]
    pub fn reward(mut self, reward: f64) -> Self {
        self.reward = Some(reward);
        self
    }

    /// Says whether the episode is over.
    #[must_use]
    pub fn done(mut self, done: bool) -> Self {
        self.done = done;
        self
    }

    /// Says something more of it.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }
}

/// An environment's state: OpenEnv's two fields, and the author's `S`, which it derefs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct State<S> {
    /// The episode, as the client or [`begin`](Self::begin) named it. None before the first reset.
    pub episode_id: Option<String>,
    /// How many steps the episode has had.
    pub step_count: u64,
    /// The author's own.
    #[serde(flatten)]
    pub own: S,
}

impl<S> State<S> {
    /// The state in which an episode begins. Its ID is a new one if there is none, or an empty one.
    pub fn begin(episode_id: Option<String>, own: S) -> Self {
        let given = episode_id.filter(|id| !id.is_empty());
        let episode_id = given.unwrap_or_else(|| Uuid::new_v4().to_string());
        Self { episode_id: Some(episode_id), step_count: 0, own }
    }
}

impl<S> Deref for State<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.own
    }
}

impl<S> DerefMut for State<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_picks_a_row_and_an_index_names_one() {
        let row = |index, seed, size| {
            let reset = Reset::<Empty> { index, seed, ..Reset::default() };
            reset.row("s", size).map_err(|error| error.to_string())
        };
        for (index, seed, is) in [
            (None, None, 0),
            (None, Some(9), 2),
            (None, Some(-1), 6),
            (None, Some(i64::MIN), 6),
            (Some(6), Some(9), 6),
        ] {
            assert_eq!(row(index, seed, 7), Ok(is), "{index:?} {seed:?}");
        }
        assert_eq!(row(None, Some(i64::MAX), u64::MAX), Ok(i64::MAX.unsigned_abs()));
        for (index, size) in [(7, 7), (-1, 7), (0, 0)] {
            let words = format!("index {index} out of range for split s");
            assert_eq!(row(Some(index), None, size), Err(words));
        }
        assert_eq!(row(None, Some(3), 0), Err("index 0 out of range for split s".to_owned()));
    }

    #[test]
    fn an_episode_has_an_id() {
        assert_eq!(State::begin(Some("e".into()), 1).episode_id.unwrap(), "e");
        let (one, two) = (State::begin(None, 1), State::begin(Some(String::new()), 1));
        assert_eq!(one.episode_id.as_deref().map(str::len), Some(36));
        assert_ne!(one.episode_id, two.episode_id);
    }
}
