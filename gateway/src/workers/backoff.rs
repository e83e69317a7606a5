//! How long a slot waits before its next process.

use std::time::Duration;

/// A worker that was ready for so long starts the count anew.
pub(crate) const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// What a slot does after the end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next start comes at once.
    Now,
    /// The next start comes after this wait.
    Wait(Duration),
    /// There were too many failures in a row; one more is tried after this time.
    GiveUp(Duration),
}

/// When a slot is started again. Waits double from `first` to `longest`, each cut by up to half at random, so that
/// slots that died together do not start together for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackoffTimes {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
    /// So many failures in a row are too many; 0: never.
    pub(crate) max_failures: u32,
    /// How often it is tried after that.
    pub(crate) retry: Duration,
}

/// A slot's failures in a row.
#[derive(Debug)]
pub(crate) struct Backoff {
    times: BackoffTimes,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(times: BackoffTimes) -> Self {
        Self { times, failures: 0 }
    }

    /// Goes by these from now on.
    pub(crate) fn set_times(&mut self, times: BackoffTimes) {
        self.times = times;
    }

    /// Processes in a row that did not become ready, or not for long.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// What follows a process that was ready for so long (`None`: never).
    pub(crate) fn next(&mut self, ready_for: Option<Duration>) -> Next {
        if ready_for.is_some_and(|ready| ready >= HEALTHY_AFTER) {
            self.failures = 0;
            return Next::Now;
        }
        let BackoffTimes { first, longest, max_failures, retry } = self.times;
        let doubled = first.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1);
        if max_failures > 0 && self.failures >= max_failures {
            return Next::GiveUp(retry);
        }
        Next::Wait(doubled.min(longest).mul_f64(0.5 + fastrand::f64() / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const TIMES: BackoffTimes =
        BackoffTimes { first: SECOND, longest: Duration::from_secs(10), max_failures: 0, retry: SECOND };

    fn between(next: Next, low: u32, high: u32) {
        let Next::Wait(wait) = next else { panic!("{next:?}") };
        assert!(wait >= SECOND * low / 2 && wait <= SECOND * high / 2, "{wait:?}");
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut backoff = Backoff::new(TIMES);
        for (low, high) in [(1, 2), (2, 4), (4, 8), (8, 16), (10, 20), (10, 20)] {
            between(backoff.next(None), low, high);
        }
        for _ in 0..100 {
            between(backoff.next(Some(SECOND)), 10, 20);
        }
        assert_eq!(backoff.failures(), 106);
    }

    #[test]
    fn a_minute_of_health_starts_anew_at_once() {
        let mut backoff = Backoff::new(TIMES);
        (0..5).for_each(|_| _ = backoff.next(None));
        assert_eq!(backoff.next(Some(HEALTHY_AFTER)), Next::Now);
        between(backoff.next(None), 1, 2);
    }

    #[test]
    fn too_many_failures_are_given_up_on_until_a_minute_of_health() {
        let retry = 300 * SECOND;
        let mut backoff = Backoff::new(BackoffTimes { max_failures: 3, retry, ..TIMES });
        between(backoff.next(None), 1, 2);
        between(backoff.next(Some(HEALTHY_AFTER / 2)), 2, 4);
        for ready_for in [None, Some(SECOND), None] {
            assert_eq!(backoff.next(ready_for), Next::GiveUp(retry));
        }
        assert_eq!(backoff.next(Some(HEALTHY_AFTER)), Next::Now);
        between(backoff.next(None), 1, 2);
    }

    #[test]
    fn slots_do_not_wait_alike() {
        let wait = |_| match Backoff::new(TIMES).next(None) {
            Next::Wait(wait) => wait,
            other => panic!("{other:?}"),
        };
        let waits: std::collections::HashSet<_> = (0..20).map(wait).collect();
        assert!(waits.len() > 1);
    }
}
