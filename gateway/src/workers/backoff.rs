//! How long a slot waits before its next process.

use std::time::Duration;

/// A worker that was ready for so long starts the count anew.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// Waits that double from `first` to `longest`, each cut by up to half at random, so that slots that died together do
/// not start together for ever.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    ends_in_a_row: u32,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, ends_in_a_row: 0 }
    }

    /// The wait after a process that was ready for so long (`None`: never). After a healthy one there is none.
    pub(crate) fn next(&mut self, ready_for: Option<Duration>) -> Duration {
        if ready_for.is_some_and(|ready| ready >= HEALTHY_AFTER) {
            self.ends_in_a_row = 0;
            return Duration::ZERO;
        }
        let doubled = self.first.saturating_mul(1_u32.checked_shl(self.ends_in_a_row).unwrap_or(u32::MAX));
        self.ends_in_a_row = (self.ends_in_a_row + 1).min(31);
        doubled.min(self.longest).mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn between(wait: Duration, low: u32, high: u32) {
        assert!(wait >= SECOND * low / 2 && wait <= SECOND * high / 2, "{wait:?}");
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut backoff = Backoff::new(SECOND, 10 * SECOND);
        for (low, high) in [(1, 2), (2, 4), (4, 8), (8, 16), (10, 20), (10, 20)] {
            between(backoff.next(None), low, high);
        }
        for _ in 0..100 {
            between(backoff.next(Some(SECOND)), 10, 20);
        }
    }

    #[test]
    fn a_minute_of_health_starts_anew_at_once() {
        let mut backoff = Backoff::new(SECOND, 10 * SECOND);
        (0..5).for_each(|_| _ = backoff.next(None));
        assert_eq!(backoff.next(Some(HEALTHY_AFTER)), Duration::ZERO);
        between(backoff.next(None), 1, 2);
    }

    #[test]
    fn slots_do_not_wait_alike() {
        let waits: std::collections::HashSet<_> =
            (0..20).map(|_| Backoff::new(SECOND, SECOND).next(None)).collect();
        assert!(waits.len() > 1);
    }
}
