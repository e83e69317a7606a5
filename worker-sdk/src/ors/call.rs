//! A tool's call, as the client is told of it.

use serde::Serialize;
use serde_json::{Map, Value};

use super::ToolOutput;
use crate::errors::Invalid;
use crate::repr::{of, repr};

/// Where pydantic explains its errors: the model reads it behind each.
const EXPLAINED: &str = "https://errors.pydantic.dev/2.14/v/";

/// What came of a call that did not fail.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Called {
    /// The tool ran.
    Success { ok: bool, output: ToolOutput },
    /// It did not run, or its output is void.
    Refused { ok: bool, error: String, reason: &'static str },
}

impl Called {
    pub(super) fn success(output: ToolOutput) -> Self {
        Self::Success { ok: true, output }
    }

    fn refused(reason: &'static str, error: String) -> Self {
        Self::Refused { ok: false, error, reason }
    }

    pub(super) fn not_found(name: &str) -> Self {
        Self::refused("not_found", format!("{} is not a valid tool", repr(name)))
    }

    pub(super) fn finished(name: &str) -> Self {
        let name = repr(name);
        let error = format!(
            "{name} was not run: the episode has finished (a tool returned finished=True), so no further tool calls are \
             accepted."
        );
        Self::refused("episode_finished", error)
    }

    pub(super) fn invalid(invalid: &Invalid) -> Self {
        let problems: Vec<_> = invalid
            .problems()
            .iter()
            .map(|problem| {
                let location: Vec<_> = problem.loc.iter().map(of).collect();
                let comma = if location.len() == 1 { "," } else { "" };
                let mut told = format!(
                    "{{'type': {}, 'loc': ({}{comma}), 'msg': {}, 'input': {}",
                    repr(problem.kind),
                    location.join(", "),
                    repr(&problem.msg),
                    of(&problem.input),
                );
                if let Some(ctx) = &problem.ctx {
                    told += &format!(", 'ctx': {}", context(ctx, &problem.msg));
                }
                told + &format!(", 'url': {}}}", repr(&format!("{EXPLAINED}{}", problem.kind)))
            })
            .collect();
        Self::refused("input_validation", format!("Tool input validation error: [{}]", problems.join(", ")))
    }
}

/// An author's own check is an exception there.
fn context(ctx: &Value, msg: &str) -> String {
    let is_own = ctx.as_object().is_some_and(|ctx| ctx.get("error") == Some(&Value::Object(Map::new())));
    match msg.strip_prefix("Value error, ").filter(|_| is_own) {
        Some(words) => format!("{{'error': ValueError({})}}", repr(words)),
        None => of(ctx),
    }
}
