//! A slot's states, and how often it came into each.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A slot's state, or that of one of its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotState {
    /// Its process runs, and has not answered a probe yet.
    #[default]
    Starting,
    /// Its worker takes requests.
    Ready,
    /// Its worker gets no new sessions, and ends when those that it has are over; or the gateway stops.
    Draining,
    /// Its worker ended as it was asked to.
    Exited,
    /// Its process ended unasked, or did not become ready.
    Died,
    /// It has no process; another is started after a wait.
    Backoff,
    /// It failed `max_start_failures` times in a row; it is tried again every `failed_retry_seconds`.
    Failed,
    /// It has no process, and gets none any more.
    Stopped,
    /// It was drained: it has no process, and gets one when it is restarted.
    Drained,
}

impl SlotState {
    /// All states.
    pub const ALL: [Self; 9] = [
        Self::Starting,
        Self::Ready,
        Self::Draining,
        Self::Exited,
        Self::Died,
        Self::Backoff,
        Self::Failed,
        Self::Stopped,
        Self::Drained,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
            Self::Exited => "exited",
            Self::Died => "died",
            Self::Backoff => "backoff",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Drained => "drained",
        }
    }
}

impl fmt::Display for SlotState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How often a slot came into each of its states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transitions([u64; SlotState::ALL.len()]);

impl Transitions {
    pub(crate) fn count(&mut self, to: SlotState) {
        self.0[to as usize] += 1;
    }

    /// Every state with its count, those never reached among them.
    pub fn iter(&self) -> impl Iterator<Item = (SlotState, u64)> + '_ {
        SlotState::ALL.into_iter().zip(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_is_counted_under_its_own_name() {
        let mut transitions = Transitions::default();
        for (times, state) in (1..).zip(SlotState::ALL) {
            (0..times).for_each(|_| transitions.count(state));
        }
        for ((state, count), times) in transitions.iter().zip(1..) {
            assert_eq!(count, times, "{state}");
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }
}
