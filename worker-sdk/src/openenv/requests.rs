//! What requests carry, read as OpenEnv's server reads it.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::{Reset, StepInfo};
use crate::body::{Bounded, from_value};
use crate::errors::{Invalid, Problem};

type Object = Map<String, Value>;

/// The keys of a reset that are not the author's own, in the order in which their problems are told.
const RESET: [&str; 5] = ["seed", "episode_id", "split", "index", "task_spec"];
/// The keys of a step's request that are not further ones.
const STEP: [&str; 3] = ["action", "timeout_s", "request_id"];

/// A string that is not too long.
struct Short(String);

impl<'de> Deserialize<'de> for Short {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const MOST: usize = 255;
        let text = String::deserialize(deserializer)?;
        match text.chars().count() <= MOST {
            true => Ok(Self(text)),
            false => Err(D::Error::custom(format_args!("String should have at most {MOST} characters"))),
        }
    }
}

/// A time that is one.
struct Positive(f64);

impl<'de> Deserialize<'de> for Positive {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        match number > 0.0 {
            true => Ok(Self(number)),
            false => Err(D::Error::custom("Input should be greater than 0")),
        }
    }
}

/// A reset over HTTP.
#[derive(Deserialize)]
struct Checked {
    seed: Option<Bounded<0, { i64::MAX }>>,
    episode_id: Option<Short>,
    split: Option<String>,
    index: Option<i64>,
    task_spec: Option<Value>,
}

/// A reset over a WebSocket, where OpenEnv checks neither the seed nor the ID's length.
#[derive(Deserialize)]
struct Unchecked {
    seed: Option<i64>,
    episode_id: Option<String>,
    split: Option<String>,
    index: Option<i64>,
    task_spec: Option<Value>,
}

impl From<Checked> for Unchecked {
    fn from(checked: Checked) -> Self {
        let Checked { seed, episode_id, split, index, task_spec } = checked;
        let (seed, episode_id) = (seed.map(Bounded::get), episode_id.map(|Short(id)| id));
        Self { seed, episode_id, split, index, task_spec }
    }
}

/// A reset's parameters, of the body of a request.
///
/// # Errors
/// All that does not fit.
pub(super) fn reset_of_body<P: DeserializeOwned>(mut body: Object) -> Result<Reset<P>, Invalid> {
    let known = taken(&mut body, &RESET);
    let known = from_value::<Checked>(Value::Object(known), &["body"]).map(Unchecked::from);
    reset(known, from_value(Value::Object(body), &["body"]))
}

/// A reset's parameters, of a message.
///
/// # Errors
/// All that does not fit.
pub(super) fn reset_of_message<P: DeserializeOwned>(mut data: Object) -> Result<Reset<P>, Invalid> {
    let known = taken(&mut data, &RESET);
    reset(from_value(Value::Object(known), &[]), from_value(Value::Object(data), &[]))
}

fn reset<P>(known: Result<Unchecked, Invalid>, params: Result<P, Invalid>) -> Result<Reset<P>, Invalid> {
    let (Unchecked { seed, episode_id, split, index, task_spec }, params) = both(known, params)?;
    Ok(Reset { split, index, seed, episode_id, task_spec, params })
}

/// The body of a step's request: the action, not yet read, and what comes with it.
///
/// # Errors
/// All that does not fit.
pub(super) fn step_of_body(mut body: Object) -> Result<(Object, StepInfo), Invalid> {
    #[derive(Deserialize)]
    struct Known {
        action: Object,
        timeout_s: Option<Positive>,
        request_id: Option<Short>,
    }
    // Whole, since what is missing is missing in it.
    let whole = Value::Object(body.clone());
    let known = from_value::<Known>(whole, &["body"])?;
    drop(taken(&mut body, &STEP));
    let info = StepInfo {
        timeout_s: known.timeout_s.map(|Positive(seconds)| seconds),
        request_id: known.request_id.map(|Short(id)| id),
        more: body,
        ..StepInfo::default()
    };
    Ok((known.action, info))
}

/// Takes the metadata out of an action; the rest is the author's.
///
/// # Errors
/// If it is no object.
pub(super) fn metadata_of(action: &mut Object) -> Result<Object, Invalid> {
    match action.shift_remove("metadata") {
        None => Ok(Object::new()),
        Some(Value::Object(metadata)) => Ok(metadata),
        Some(other) => {
            let msg = "Input should be a valid dictionary".to_owned();
            let loc = vec![json!("metadata")];
            Err(Problem { kind: "dict_type", loc, msg, input: other, ctx: None }.into())
        }
    }
}

/// Both, or all that is wrong with both.
pub(super) fn both<A, B>(a: Result<A, Invalid>, b: Result<B, Invalid>) -> Result<(A, B), Invalid> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(one), Ok(_)) | (Ok(_), Err(one)) => Err(one),
        (Err(first), Err(second)) => Err(first.and(second)),
    }
}

fn taken(object: &mut Object, keys: &[&str]) -> Object {
    keys.iter().filter_map(|key| object.shift_remove_entry(*key)).collect()
}

#[cfg(test)]
mod tests;
