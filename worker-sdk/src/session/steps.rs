//! The steps that were taken, by their names: a late copy of one is not another step.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::store::Locked;

/// How many steps of a session are known. An agent takes one at a time, and its late copies are of the newest.
const MOST: usize = 256;

/// The named steps of the close-retry window, newest last. They outlive a start: a copy may come after it.
#[derive(Debug, Default)]
// A pointer in every session, most of which name no step.
#[allow(clippy::box_collection)]
pub(super) struct Steps(Option<Box<VecDeque<Taken>>>);

#[derive(Debug)]
struct Taken {
    /// A digest of its name.
    name: u64,
    /// The session's life that it was taken in.
    life: u32,
    /// Its reply is a success. One that failed may be taken again in the same life.
    is_done: bool,
    /// Milliseconds since the store was made.
    at: u64,
}

impl<S: Send + 'static> Locked<S> {
    /// Whether a step of that name must not be taken (again): it was, or belongs to an earlier life.
    pub(crate) fn took_step(&mut self, name: &str) -> bool {
        let (life, since) = (self.record.life(), self.since());
        let Some(taken) = &mut self.inner.steps.0 else { return false };
        taken.retain(|step| step.at >= since);
        let name = digest(name);
        taken.iter().any(|step| step.name == name && (step.is_done || step.life != life))
    }

    /// Notes that a step of that name begins.
    pub(crate) fn begins_step(&mut self, name: &str) {
        let (name, life, at) = (digest(name), self.record.life(), self.store.now());
        let taken = self.inner.steps.0.get_or_insert_default();
        taken.retain(|step| step.name != name);
        if taken.len() == MOST {
            taken.pop_front();
        }
        taken.push_back(Taken { name, life, is_done: false, at });
    }

    /// Notes that it has succeeded.
    pub(crate) fn ends_step(&mut self, name: &str) {
        let (name, now) = (digest(name), self.store.now());
        let taken = self.inner.steps.0.iter_mut().flat_map(|taken| taken.iter_mut());
        for step in taken.filter(|step| step.name == name) {
            (step.is_done, step.at) = (true, now);
        }
    }

    /// The beginning of the close-retry window.
    fn since(&self) -> u64 {
        let window = u64::try_from(self.store.limits.window.as_millis()).unwrap_or(u64::MAX);
        self.store.now().saturating_sub(window)
    }
}

fn digest(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
