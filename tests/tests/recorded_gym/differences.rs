//! Where the Rust servers answer otherwise than the real ones, and why.
//!
//! A difference that is not here fails the replay, and so does one that is here and does not occur.

mod blackjack;
mod counter;
mod mcp;
mod shared;
mod verify;
mod weather;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    compare::Found,
    player::Played,
    recording::{Scenario, Step},
};

/// A difference that is meant.
#[derive(Debug)]
struct Difference {
    /// The recordings in each of which it occurs.
    recordings: &'static [&'static str],
    /// The steps.
    steps: Steps,
    /// Where in the reply: what [`Found::what`] begins with.
    what: &'static [&'static str],
    /// Why.
    reason: &'static str,
}

/// Which steps.
#[derive(Debug)]
enum Steps {
    /// Scenarios and their steps; each of them differs. No steps: all, and at least one differs.
    Named(&'static [(&'static str, &'static [&'static str])]),
    /// The differences of which this is true; at least one occurs.
    Where(fn(&Case<'_>, &Found) -> bool),
}

/// A step, and how it went.
#[derive(Clone, Copy, Debug)]
struct Case<'a> {
    step: &'a Step,
    played: &'a Played,
}

impl Case<'_> {
    /// The route that is asked for.
    fn route(&self) -> &str {
        self.step.request.route()
    }

    /// The reply that came, as JSON; null if it is none.
    fn reply(&self) -> Value {
        serde_json::from_slice(&self.played.answer.body).unwrap_or_default()
    }
}

/// A scenario and, if it is named, a step.
type Place = Option<(&'static str, Option<&'static str>)>;

/// The table. Of several entries that cover a difference the first counts.
const DIFFERENCES: &[&[Difference]] = &[
    counter::DIFFERENCES,
    verify::DIFFERENCES,
    mcp::DIFFERENCES,
    weather::DIFFERENCES,
    blackjack::DIFFERENCES,
    shared::DIFFERENCES,
];

/// The differences of one recording, and which of them occurred.
#[derive(Debug)]
pub(crate) struct Differences {
    entries: Vec<&'static Difference>,
    /// What is to occur and has not yet: the entry, the scenario and step if they are named, and what.
    missing: BTreeSet<(usize, Place, &'static str)>,
}

impl Differences {
    /// Those that name the recording.
    pub(crate) fn of(recording: &str) -> Self {
        Self::from(DIFFERENCES, recording)
    }

    fn from(tables: &'static [&'static [Difference]], recording: &str) -> Self {
        let entries: Vec<_> =
            tables.iter().copied().flatten().filter(|entry| entry.recordings.contains(&recording)).collect();
        let mut missing = BTreeSet::new();
        for (i, entry) in entries.iter().enumerate() {
            for place in entry.steps.places() {
                missing.extend(entry.what.iter().map(|what| (i, place, *what)));
            }
        }
        Self { entries, missing }
    }

    /// Why this is different, if it is meant to be.
    pub(crate) fn reason(
        &mut self,
        scenario: &Scenario,
        step: &Step,
        played: &Played,
        found: &Found,
    ) -> Option<&'static str> {
        let case = Case { step, played };
        let (scenario_name, step_name) = (scenario.scenario.as_str(), step.step.as_str());
        for (i, entry) in self.entries.iter().enumerate() {
            let place = entry.steps.places().into_iter().find(|place| match (place, &entry.steps) {
                (Some((scenario, step)), _) => {
                    *scenario == scenario_name && step.is_none_or(|step| step == step_name)
                }
                (None, Steps::Where(is)) => is(&case, found),
                (None, Steps::Named(_)) => false,
            });
            let what = entry.what.iter().find(|what| covers(what, &found.what));
            if let (Some(place), Some(what)) = (place, what) {
                self.missing.remove(&(i, place, what));
                return Some(entry.reason);
            }
        }
        None
    }

    /// What is listed and did not occur.
    pub(crate) fn stale(&self) -> Vec<String> {
        let line =
            |(i, place, what): &(usize, _, &str)| format!("{what} at {place:?}: {}", self.entries[*i].reason);
        self.missing.iter().map(line).collect()
    }
}

/// Whether `body/detail` covers `body/detail/0/msg`, say: whole words only.
fn covers(what: &str, found: &str) -> bool {
    found.strip_prefix(what).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ' ']))
}

impl Steps {
    fn places(&self) -> Vec<Place> {
        match self {
            Self::Where(_) => vec![None],
            Self::Named(scenarios) => {
                scenarios.iter().flat_map(|(scenario, steps)| named(scenario, steps)).collect()
            }
        }
    }
}

fn named(scenario: &'static str, steps: &'static [&'static str]) -> Vec<Place> {
    if steps.is_empty() {
        return vec![Some((scenario, None))];
    }
    steps.iter().map(|step| Some((scenario, Some(*step)))).collect()
}

/// Asserts that the scenarios and steps that the table names are in the recording.
pub(crate) fn assert_names_exist(recording: &str, names: &BTreeSet<(&String, &String)>) {
    for entry in Differences::of(recording).entries {
        for (scenario, step) in entry.steps.places().into_iter().flatten() {
            let is = |(a, b): &(&String, &String)| *a == scenario && step.is_none_or(|step| *b == step);
            assert!(names.iter().any(is), "{recording} has no {scenario} / {step:?}: {}", entry.reason);
        }
    }
}

#[cfg(test)]
mod tests;
