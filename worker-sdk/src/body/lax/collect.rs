//! serde stops at the first error and pydantic does not: the value is read again with each error's place made good.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{Error, Fix, Guess, Seen, Step};
use super::input::{Input, Lax};
use crate::errors::{Invalid, Problem};

/// No more problems than this are looked for.
const MAX_PROBLEMS: usize = 32;

/// Nor more once their `input`s are about as many bytes: a body of megabytes is not repeated for each field that it lacks.
const MAX_INPUT: usize = 1 << 20;

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
    pub(super) fn made_up_key(&self, index: usize) -> Option<Option<(&str, Guess)>> {
        self.below.get(index).map(|(step, fixes)| match (step, fixes.here) {
            (Step::Key(key), Some(Fix::Placeholder(guess))) => Some((key.as_str(), guess)),
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
            // A key does not tell on its value.
            None => self.below.iter().any(|(step, _)| *step != Step::TheKey),
        }
    }

    /// Whether what was made up is wrong, and not what the client sent.
    fn have_caused(&self, seen: &Seen) -> bool {
        let is_same = self.fix_at(seen.steps()).is_some();
        // A field that is missing or too many is so whatever else the object has.
        let is_field = matches!(seen.kind, "missing" | "extra_forbidden");
        seen.is_made_up || is_same || (!is_field && self.touches(seen.steps()))
    }

    fn fix_at<'p>(&self, mut path: impl Iterator<Item = &'p Step>) -> Option<Fix> {
        match path.next() {
            Some(step) => self.below(step)?.fix_at(path),
            None => self.here,
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
    let Ok(value) = input.value() else { return Invalid::unreadable() };
    let mut seen = vec![first.whole(&value)];
    let mut fixes = Fixes::default();
    let mut repeated = 0_usize;
    while let Some(last) = seen.last().filter(|last| !last.path.is_empty() && seen.len() < MAX_PROBLEMS) {
        repeated = repeated.saturating_add(last.input.as_ref().map_or(0, weight));
        if repeated > MAX_INPUT {
            break;
        }
        match next::<T>(&value, &mut fixes, last) {
            Some(next) => seen.push(next),
            None => break,
        }
    }
    seen.sort_by(|one, other| one.ranks().cmp(other.ranks()));
    Invalid::new(seen.into_iter().map(|seen| problem(*seen, loc)).collect())
}

/// About how many bytes of JSON it is.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len(),
        Value::Array(array) => array.iter().map(|value| 2 + weight(value)).sum(),
        Value::Object(object) => object.iter().map(|(key, value)| 6 + key.len() + weight(value)).sum(),
    }
}

/// Reads on after `last`. `None`: there is nothing more, or no way on.
fn next<T: DeserializeOwned>(value: &Value, fixes: &mut Fixes, last: &Seen) -> Option<Box<Seen>> {
    let mut fix = Some(last.fix);
    while let Some(trying) = fix {
        fixes.add(last.steps(), trying);
        let next = T::deserialize(Lax::with_fixes(Input::Value(value), Some(fixes))).err()?.whole(value);
        if !fixes.have_caused(&next) {
            return Some(next);
        }
        fix = trying.next();
    }
    None
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
    fn whole(self, value: &Value) -> Box<Seen> {
        self.within(|| value.clone(), |_| 0).0
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
