//! What a step needs as its answer.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::client::Reply;

/// The answer that a step needs.
#[derive(Clone, Debug)]
pub(super) enum Want {
    /// A seed that succeeds.
    Seeded,
    /// A seed that finds the session of the one before, whose reply had this `observation`.
    SeededAgain(Option<Value>),
    /// A close that succeeds.
    Closed,
    /// A refusal, with strict 409.
    Conflict,
    /// A seed or close that succeeds or is refused: the server keeps no state.
    SucceedsOrConflict,
    /// A verdict; of a server that keeps state, not the one of a lost session.
    Verdict {
        /// Whether the server keeps state.
        keeps_state: bool,
    },
    /// The masked sample.
    Masked,
    /// Nothing in particular.
    Anything,
}

/// The field that says which session it was.
const SESSION: &str = "resources_session_id";

/// What the document has in the reply to a seed.
const SEEDED: [&str; 4] = [SESSION, "resources_tools", "sandbox_access", "observation"];

impl Want {
    pub(super) fn describe(&self, strict: bool) -> String {
        let done = if strict { "200" } else { "2xx" };
        let refusal = if strict { "409" } else { "a refusal: any 4xx or 5xx" };
        match self {
            Self::Seeded => format!("{done} with this {SESSION}, and a cookie"),
            Self::SeededAgain(None) => format!("{done} with this {SESSION} and no observation, and a cookie"),
            Self::SeededAgain(Some(_)) => {
                format!("{done} with this {SESSION} and the same observation, and a cookie")
            }
            Self::Closed => format!("{done} with this {SESSION}"),
            Self::Conflict => refusal.into(),
            Self::SucceedsOrConflict => format!("{done} with this {SESSION}, or {refusal}"),
            Self::Verdict { .. } => format!("{done} with a reward"),
            Self::Masked if strict => {
                "200 with mask_sample true, failure_kind session_lost and reward 0".into()
            }
            Self::Masked => format!("{done} with mask_sample true"),
            Self::Anything => "anything".into(),
        }
    }

    /// What is wrong with the reply, if anything.
    pub(super) fn judge(&self, reply: &Reply, session: &str, strict: bool) -> Result<(), String> {
        match self {
            Self::Seeded => seeded(reply, session, strict).map(drop),
            Self::SeededAgain(before) => {
                let now = seeded(reply, session, strict)?;
                let same = now.get("observation") == before.as_ref();
                same.then_some(())
                    .ok_or_else(|| "the observation is another one: the state was made anew".into())
            }
            Self::Closed => named(reply, session, strict, &[SESSION]).map(drop),
            Self::Conflict => refused(reply, strict),
            Self::SucceedsOrConflict if reply.status < 400 => {
                named(reply, session, strict, &SEEDED).map(drop)
            }
            Self::SucceedsOrConflict => refused(reply, strict),
            Self::Verdict { keeps_state } => verdict(reply, *keeps_state, strict),
            Self::Masked => masked(reply, strict),
            Self::Anything => Ok(()),
        }
    }
}

/// Why the contract cannot be checked at all.
pub(super) const NOT_SEED_VERIFY: &str = "there is no POST /seed_session: this is no server of the seed/verify protocol, \
    which alone has the contract. A Gymnasium server (POST /reset and /step) has another; else see whether the URL is right";

fn refused(reply: &Reply, strict: bool) -> Result<(), String> {
    match reply.status {
        409 => Ok(()),
        400.. if !strict => Ok(()),
        400.. => Err("it is refused with another status".into()),
        _ => Err("it is not refused".into()),
    }
}

fn seeded(reply: &Reply, session: &str, strict: bool) -> Result<Map<String, Value>, String> {
    if reply.has_no_route() {
        return Err(NOT_SEED_VERIFY.into());
    }
    let body = named(reply, session, strict, &SEEDED)?;
    if reply.cookies.is_empty() {
        return Err("it sets no cookie, without which an environment server gives the episode up".into());
    }
    Ok(body)
}

/// A success that names the session; its body.
fn named(reply: &Reply, session: &str, strict: bool, known: &[&str]) -> Result<Map<String, Value>, String> {
    let body = success(reply, strict)?;
    match body.get(SESSION) {
        Some(Value::String(id)) if id == session => {}
        Some(_) => return Err("it names another session".into()),
        None => return Err(format!("it has no {SESSION}")),
    }
    match body.keys().find(|key| strict && !known.contains(&key.as_str())) {
        Some(key) => Err(format!("it has a field {key}, which clients refuse")),
        None => Ok(body),
    }
}

fn verdict(reply: &Reply, keeps_state: bool, strict: bool) -> Result<(), String> {
    let body = success(reply, strict)?;
    if !body.get("reward").is_some_and(Value::is_number) {
        return Err("it has no reward".into());
    }
    if keeps_state && body.get("failure_kind").is_some_and(|kind| kind == "session_lost") {
        return Err("the session is open, and yet the verify with its cookie does not find it".into());
    }
    Ok(())
}

fn masked(reply: &Reply, strict: bool) -> Result<(), String> {
    let body = success(reply, strict)?;
    let mut wrong = String::new();
    if body.get("mask_sample") != Some(&Value::Bool(true)) {
        wrong.push_str("the sample is not masked: its reward counts, though the session is gone");
    }
    if strict && body.get("failure_kind").is_none_or(|kind| kind != "session_lost") {
        put(&mut wrong, "failure_kind is not session_lost");
    }
    if strict && body.get("reward").and_then(Value::as_f64) != Some(0.0) {
        put(&mut wrong, "the reward is not 0");
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn put(wrong: &mut String, more: &str) {
    let between = if wrong.is_empty() { "" } else { "; " };
    // Writing to a String cannot fail.
    let _ = write!(wrong, "{between}{more}");
}

/// A success with a JSON object.
fn success(reply: &Reply, strict: bool) -> Result<Map<String, Value>, String> {
    match reply.status {
        200 => {}
        201..=299 if !strict => {}
        201..=299 => return Err("it succeeds with another status".into()),
        _ => return Err("it does not succeed".into()),
    }
    serde_json::from_slice(&reply.body).map_err(|error| format!("its body is no JSON object: {error}"))
}
