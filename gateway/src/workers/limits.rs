//! Which worker is over which of its limits. Knows no clock and no system: it is told what a worker uses.

use std::{collections::BTreeMap, time::Duration};

use crate::config::WorkerLimits;

/// By how much of itself a lifetime may be shorter, so that workers that started together do not end together.
const LIFETIME_JITTER: f64 = 0.2;

/// Why a worker that lives is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// `max_requests`.
    Requests,
    /// `max_sessions`.
    Sessions,
    /// `max_lifetime_seconds`.
    Lifetime,
    /// `max_memory_bytes`.
    Memory,
    /// `hang_timeout_seconds`.
    Hang,
}

impl Cause {
    /// All causes.
    pub(crate) const ALL: [Self; 5] =
        [Self::Requests, Self::Sessions, Self::Lifetime, Self::Memory, Self::Hang];

    /// The word for it, in metrics and `/status`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "max_requests",
            Self::Sessions => "max_sessions",
            Self::Lifetime => "max_lifetime",
            Self::Memory => "max_memory",
            Self::Hang => "hang",
        }
    }
}

/// How often a slot's workers were replaced, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replacements([u64; Cause::ALL.len()]);

impl Replacements {
    pub(crate) fn count(&mut self, cause: Cause) {
        self.0[cause as usize] += 1;
    }

    /// Every cause with its count.
    pub fn by_cause(&self) -> BTreeMap<String, u64> {
        Cause::ALL.iter().zip(self.0).map(|(cause, count)| (cause.as_str().into(), count)).collect()
    }
}

/// What a worker has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub(crate) requests: u64,
    pub(crate) sessions: u64,
    pub(crate) age: Duration,
    /// Bytes; `None`: not looked at, or not to be read.
    pub(crate) memory: Option<u64>,
}

/// One worker's gauge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gauge {
    /// What is left of a lifetime, 0.8 to 1.
    lifetime: f64,
    /// Looks in a row that saw it above its memory.
    over_memory: u32,
    /// How old it was when it was first over a limit.
    over_at: Option<Duration>,
}

impl Gauge {
    /// `random` is from 0 to 1.
    pub(crate) fn new(random: f64) -> Self {
        Self { lifetime: 1.0 - LIFETIME_JITTER * random, over_memory: 0, over_at: None }
    }

    /// How old the worker was when it was first over a limit.
    pub(crate) fn over_at(&self) -> Option<Duration> {
        self.over_at
    }

    /// Looks at what a worker has used: the limit that it is over, in words.
    pub(crate) fn look(&mut self, limits: &WorkerLimits, used: &Used) -> Option<(Cause, String)> {
        let over = self.over(limits, used);
        // One that is under it again, by a reload maybe, begins anew.
        self.over_at = over.as_ref().map(|_| self.over_at.unwrap_or(used.age));
        over
    }

    fn over(&mut self, limits: &WorkerLimits, used: &Used) -> Option<(Cause, String)> {
        let Used { requests, sessions, age, memory } = *used;
        if let Some(limit) = limits.max_requests.filter(|limit| requests >= *limit) {
            return Some((
                Cause::Requests,
                format!("it has answered {requests} requests (max_requests: {limit})"),
            ));
        }
        if let Some(limit) = limits.max_sessions.filter(|limit| sessions >= *limit) {
            return Some((
                Cause::Sessions,
                format!("it has had {sessions} sessions (max_sessions: {limit})"),
            ));
        }
        if let Some(limit) = limits.max_lifetime.filter(|limit| age >= limit.mul_f64(self.lifetime)) {
            let (age, limit) = (age.as_secs_f64(), limit.as_secs_f64());
            let share = self.lifetime * 100.0;
            let text = format!(
                "it has been ready for {age:.0} s ({share:.0} % of max_lifetime_seconds: {limit}, at random)"
            );
            return Some((Cause::Lifetime, text));
        }
        self.look_at_memory(limits, memory)
    }

    fn look_at_memory(&mut self, limits: &WorkerLimits, memory: Option<u64>) -> Option<(Cause, String)> {
        let Some(limit) = limits.max_memory_bytes else {
            self.over_memory = 0;
            return None;
        };
        // A look that saw nothing says nothing.
        let bytes = memory?;
        self.over_memory = if bytes > limit { self.over_memory.saturating_add(1) } else { 0 };
        let samples = limits.max_memory_samples;
        (self.over_memory >= samples).then(|| {
            let times = if samples == 1 { String::new() } else { format!(", {samples} times in a row") };
            (Cause::Memory, format!("it takes {bytes} bytes of memory (max_memory_bytes: {limit}{times})"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> WorkerLimits {
        WorkerLimits {
            max_requests: Some(100),
            max_sessions: Some(10),
            max_lifetime: Some(Duration::from_secs(1000)),
            max_memory_bytes: Some(1 << 30),
            ..WorkerLimits::default()
        }
    }

    fn cause(gauge: &mut Gauge, limits: &WorkerLimits, used: Used) -> Option<Cause> {
        gauge.look(limits, &used).map(|(cause, _)| cause)
    }

    #[test]
    fn each_limit_is_its_own() {
        let age = Duration::from_secs;
        let rows = [
            (Used::default(), None),
            (Used { requests: 99, sessions: 9, age: age(899), memory: None }, None),
            (Used { requests: 100, ..Used::default() }, Some(Cause::Requests)),
            (Used { sessions: 10, ..Used::default() }, Some(Cause::Sessions)),
            (Used { age: age(900), ..Used::default() }, Some(Cause::Lifetime)),
        ];
        for (used, over) in rows {
            assert_eq!(cause(&mut Gauge::new(0.5), &limits(), used), over, "{used:?}");
            assert_eq!(cause(&mut Gauge::new(0.5), &WorkerLimits::default(), used), None, "{used:?}");
        }
    }

    #[test]
    fn lifetimes_differ_by_a_fifth_and_are_never_longer_than_said() {
        for (random, seconds) in [(0.0, 1000), (0.5, 900), (1.0, 800)] {
            let mut gauge = Gauge::new(random);
            for (age, over) in [(seconds - 1, None), (seconds, Some(Cause::Lifetime))] {
                let used = Used { age: Duration::from_secs(age), ..Used::default() };
                assert_eq!(cause(&mut gauge, &limits(), used), over, "{random} {age}");
            }
        }
    }

    #[test]
    fn memory_counts_only_when_it_stays() {
        let mut gauge = Gauge::new(0.0);
        let mut look = |memory| cause(&mut gauge, &limits(), Used { memory, ..Used::default() });
        let (over, under) = (Some((1 << 30) + 1), Some(1 << 30));
        let seen = [over, over, under, over, over, None, over].map(&mut look);
        assert_eq!(seen, [None, None, None, None, None, None, Some(Cause::Memory)]);
        assert_eq!(look(over), Some(Cause::Memory), "it stays over until somebody acts");
        assert_eq!(look(under), None);
    }

    #[test]
    fn the_text_names_the_key_and_its_value() {
        let used = Used { memory: Some(2 << 30), ..Used::default() };
        let limits = WorkerLimits { max_memory_samples: 1, ..limits() };
        let (_, text) = Gauge::new(0.0).look(&limits, &used).unwrap();
        assert_eq!(text, "it takes 2147483648 bytes of memory (max_memory_bytes: 1073741824)");
    }

    #[test]
    fn every_cause_is_counted_under_its_own_name() {
        let mut replacements = Replacements::default();
        for (times, cause) in (1..).zip(Cause::ALL) {
            (0..times).for_each(|_| replacements.count(cause));
        }
        for (times, cause) in (1..).zip(Cause::ALL) {
            assert_eq!(replacements.by_cause()[cause.as_str()], times);
        }
    }
}
