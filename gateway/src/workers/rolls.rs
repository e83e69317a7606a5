//! A server's rolling restarts: the newest, and how the others ended.

use std::sync::Arc;

use super::{RollState, RollStatus, roll::RollHandle};
use crate::config::StartedAs;

/// Why a rolling restart was not begun.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotRolling {
    /// The server has no such slot.
    #[error("there is no slot {0}")]
    NoSlot(u16),
    /// One is under way.
    #[error(
        "a rolling restart is under way ({}): {} of {} slots are done",
        .0.reason, .0.replaced.len(), .0.slots.len()
    )]
    UnderWay(Box<RollStatus>),
}

/// The rolling restarts: the newest, and how the others ended.
#[derive(Default)]
pub(crate) struct Rolls {
    newest: Option<RollHandle>,
    begun: u64,
    ended: RollTotals,
}

/// How many rolling restarts ended in what way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RollTotals {
    /// Every slot has a new worker.
    pub done: u64,
    /// A new worker did not start.
    pub failed: u64,
    /// Called off.
    pub called_off: u64,
}

impl RollTotals {
    fn count(&mut self, state: RollState) {
        match state {
            RollState::Rolling => {}
            RollState::Done => self.done += 1,
            RollState::Failed => self.failed += 1,
            RollState::CalledOff => self.called_off += 1,
        }
    }
}

impl Rolls {
    pub(crate) fn next_number(&self) -> u64 {
        self.begun + 1
    }

    /// Notes one that begins, in the place of the one before.
    pub(crate) fn begin(&mut self, roll: RollHandle) {
        self.begun += 1;
        if let Some(before) = self.newest.replace(roll) {
            let ended = before.status.borrow().state;
            // One that was called off a moment ago may not have noticed.
            self.ended.count(if ended == RollState::Rolling { RollState::CalledOff } else { ended });
        }
    }

    pub(crate) fn newest(&self) -> Option<RollStatus> {
        self.newest.as_ref().map(|roll| roll.status.borrow().clone())
    }

    pub(crate) fn ended(&self) -> RollTotals {
        let mut totals = self.ended;
        if let Some(newest) = self.newest() {
            totals.count(newest.state);
        }
        totals
    }

    /// What the one that is under way starts workers as, if not as before.
    pub(crate) fn leads_to(&self) -> Option<Arc<StartedAs>> {
        self.under_way().and(self.newest.as_ref()).and_then(|roll| roll.started_as.clone())
    }

    pub(crate) fn under_way(&self) -> Option<RollStatus> {
        self.newest().filter(|status| status.state == RollState::Rolling)
    }

    pub(crate) fn call_off(&self) {
        if let Some(newest) = &self.newest {
            newest.cancel.cancel();
        }
    }
}
