//! serde stops at the first error and pydantic does not: the value is read again with each error's place made good.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{Error, Fix, Seen, Step};
use super::input::{Input, Lax};
use crate::errors::{Invalid, Problem};

/// No more problems than this are looked for.
const MAX_PROBLEMS: usize = 32;

/// What to do otherwise at a place and below it.
#[derive(Debug, Default)]
pub(super) struct Fixes {
    here: Option<Fix>,
    below: Vec<(Step, Fixes)>,
}

impl Fixes {
    pub(super) fn here(&self) -> Option<Fix> {
        self.here
    }

    pub(super) fn below(&self, step: &Step) -> Option<&Self> {
        self.below.iter().find(|(other, _)| other == step).map(|(_, fixes)| fixes)
    }

    pub(super) fn below_key(&self, key: &str) -> Option<&Self> {
        let is_it = |step: &Step| matches!(step, Step::Key(other) if other == key);
        self.below.iter().find(|(step, _)| is_it(step)).map(|(_, fixes)| fixes)
    }

    pub(super) fn at_step(&self, step: &Step) -> Option<Fix> {
        self.below(step)?.here
    }

    pub(super) fn at_key(&self, key: &str) -> Option<Fix> {
        self.below_key(key)?.here
    }

    /// The `index`th of the fixes below: its key, if it is one to be made up.
    pub(super) fn made_up_key(&self, index: usize) -> Option<Option<&str>> {
        self.below.get(index).map(|(step, fixes)| match step {
            Step::Key(key) if fixes.here == Some(Fix::Placeholder) => Some(key.as_str()),
            _ => None,
        })
    }

    /// Whether there is something to do otherwise there, above it or below it.
    fn touches<'p>(&self, mut path: impl Iterator<Item = &'p Step>) -> bool {
        if self.here.is_some() {
            return true;
        }
        match path.next() {
            Some(step) => self.below(step).is_some_and(|fixes| fixes.touches(path)),
            None => !self.below.is_empty(),
        }
    }

    fn add<'p>(&mut self, mut path: impl Iterator<Item = &'p Step>, fix: Fix) {
        let Some(step) = path.next() else {
            self.here = Some(fix);
            return;
        };
        let index = self.below.iter().position(|(other, _)| other == step).unwrap_or_else(|| {
            self.below.push((step.clone(), Self::default()));
            self.below.len() - 1
        });
        self.below[index].1.add(path, fix);
    }
}

/// All that is wrong with `input` for a `T`, of which `first` was seen first.
#[cold]
pub(super) fn all<T: DeserializeOwned>(input: Input<'_>, first: Error, loc: &[&str]) -> Invalid {
    // Taken apart once, not in each reading.
    let value = match input.value() {
        Ok(value) => value,
        Err(error) => return Invalid::new(vec![problem(*error.0, loc)]),
    };
    let mut seen = vec![first.whole(&value)];
    let mut fixes = Fixes::default();
    while let Some(last) = seen.last().filter(|last| !last.path.is_empty() && seen.len() < MAX_PROBLEMS) {
        fixes.add(last.steps(), last.fix);
        let again = T::deserialize(Lax::with_fixes(Input::Value(&value), Some(&fixes)));
        let Err(error) = again else { break };
        let next = error.whole(&value);
        // What was made up is not the client's fault.
        if next.is_made_up || fixes.touches_value_error(&next) {
            break;
        }
        seen.push(next);
    }
    seen.sort_by(|one, other| one.ranks().cmp(other.ranks()));
    Invalid::new(seen.into_iter().map(|seen| problem(*seen, loc)).collect())
}

impl Fixes {
    fn touches_value_error(&self, seen: &Seen) -> bool {
        // Another error at the place of an earlier one would come for ever; a check of the author's over made-up values
        // says nothing.
        let is_same = self.fix_at(seen.steps()).is_some();
        is_same || (seen.kind == "value_error" && self.touches(seen.steps()))
    }

    fn fix_at<'p>(&self, mut path: impl Iterator<Item = &'p Step>) -> Option<Fix> {
        match path.next() {
            Some(step) => self.below(step)?.fix_at(path),
            None => self.here,
        }
    }
}

impl Seen {
    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.path.iter().rev().map(|(step, _)| step)
    }

    fn ranks(&self) -> impl Iterator<Item = usize> {
        self.path.iter().rev().map(|(_, rank)| *rank)
    }
}

impl Error {
    /// The end of its way up.
    fn whole(self, value: &Cow<'_, Value>) -> Box<Seen> {
        self.within(|| value.as_ref().clone(), |_| 0).0
    }
}

fn problem(seen: Seen, loc: &[&str]) -> Problem {
    let path = seen.path.into_iter().rev().map(|(step, _)| Value::from(step));
    Problem {
        kind: seen.kind,
        loc: loc.iter().map(|step| Value::from(*step)).chain(path).collect(),
        msg: seen.msg,
        input: seen.input.unwrap_or_default(),
        ctx: seen.ctx,
    }
}
