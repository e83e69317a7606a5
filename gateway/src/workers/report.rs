//! What is told about workers: their states, how they ended, why they did not start.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;

use super::{PhaseTimes, Replacements, SlotState, Transitions};
use crate::{keeper::Exit, worker_id::WorkerId};

/// Lines of output that are kept for reports.
const KEPT_LINES: usize = 50;
/// Characters of a line that are kept.
const KEPT_CHARACTERS: usize = 1000;
/// Lines of output in a report of a failed start.
const REPORTED_LINES: usize = 20;

/// A slot, as it is at one moment.
#[derive(Clone, Debug)]
pub struct SlotStatus {
    /// Its number, from 0.
    pub slot: u16,
    /// The process that it goes by: counts from 1; 0 before the first. The newest, but for one that is to take over.
    pub generation: u32,
    /// Its state.
    pub state: SlotState,
    /// The process ID of a running worker.
    pub pid: Option<i32>,
    /// Where a ready worker listens.
    pub address: Option<String>,
    /// Processes started after the first one.
    pub restarts: u32,
    /// When the newest process was started: seconds since 1970.
    pub started_unix: u64,
    /// How often it came into each state.
    pub transitions: Transitions,
    /// Processes that the kernel killed for want of memory.
    pub oom_kills: u32,
    /// Processes in a row that did not become ready, or died before a minute of health.
    pub failures_in_a_row: u32,
    /// How the process before ended, or why it did not start.
    pub last_exit: Option<String>,
    /// The last failure, which a later worker's health does not wipe out.
    pub last_failure: Option<LastFailure>,
    /// The last lines of the newest process's output.
    pub output: Vec<String>,
    /// The drain that its worker is in.
    pub drain: Option<DrainStatus>,
    /// The limit that its worker is over, for which it is to be replaced.
    pub over_limit: Option<String>,
    /// How often its workers were replaced for a limit.
    pub replacements: Replacements,
    /// Its other living processes, by generation: the one that is to take over, and older ones that drain.
    pub others: Vec<OtherStatus>,
}

/// A slot's living process that is not the one which the slot goes by.
#[derive(Clone, Debug)]
pub struct OtherStatus {
    /// Which of the slot's processes.
    pub generation: u32,
    /// Its state: `starting`, or `draining`.
    pub state: SlotState,
    /// Its process ID, while it runs.
    pub pid: Option<i32>,
    /// Where it listens.
    pub address: Option<String>,
    /// When it was started: seconds since 1970.
    pub started_unix: u64,
    /// The drain that it is in.
    pub drain: Option<DrainStatus>,
}

/// How far a drain is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainStatus {
    /// Why it drains.
    pub reason: String,
    /// For how long it has.
    pub since: Duration,
    /// How long it may still take before what is left is lost; `None`: for ever.
    pub left: Option<Duration>,
}

/// What drains have cost since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainTotals {
    /// Drains that were over at their deadline, with something left.
    pub cut: u64,
    /// Sessions that were lost then.
    pub lost: u64,
}

/// The end of a worker that was ready.
#[derive(Clone, Debug)]
pub struct ExitReport {
    /// How the process ended.
    pub exit: Exit,
    /// How long it was ready.
    pub ready_for: Duration,
    /// The gateway had asked it to.
    pub asked_for: bool,
    /// It had answered nothing for so long that it was killed.
    pub hung: Option<Duration>,
    /// The last lines of its output, as far as they have come.
    pub output: Vec<String>,
}

impl fmt::Display for ExitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {:.1} s", self.exit, self.ready_for.as_secs_f64())?;
        match self.hung {
            Some(quiet) => write!(f, ": it hung, and answered nothing for {:.1} s", quiet.as_secs_f64()),
            None => Ok(()),
        }
    }
}

/// A slot's last failure.
#[derive(Clone, Debug)]
pub struct LastFailure {
    /// When it was seen: seconds since 1970.
    pub at_unix: u64,
    /// What it was.
    pub what: Failed,
}

impl LastFailure {
    /// Whose failure it was.
    pub fn worker(&self) -> WorkerId {
        match &self.what {
            Failed::Start(failure) => failure.worker,
            Failed::Death { worker, .. } => *worker,
        }
    }
}

/// What failed.
#[derive(Clone, Debug)]
pub enum Failed {
    /// A worker did not become ready.
    Start(Box<StartFailure>),
    /// A ready worker died unasked.
    Death {
        /// Which worker.
        worker: WorkerId,
        /// How it ended.
        report: ExitReport,
        /// What to do about it.
        advice: &'static str,
    },
}

/// How far a start came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its keeper, its address or its process could not be made.
    Spawn,
    /// Its command could not be run.
    Exec,
    /// It ran, and listened nowhere.
    Listen,
    /// It listened, and did not answer as a ready worker does.
    Probe,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spawn => "spawn",
            Self::Exec => "exec",
            Self::Listen => "listen",
            Self::Probe => "probe",
        })
    }
}

/// Why a worker did not become ready.
#[derive(Clone, Debug)]
pub struct StartFailure {
    /// The server's name.
    pub server: String,
    /// Which worker.
    pub worker: WorkerId,
    /// How far it came.
    pub phase: Phase,
    /// How long each phase took, the last one up to the failure.
    pub spent: PhaseTimes,
    /// How its process ended, if that was the failure.
    pub exit: Option<Exit>,
    /// What was seen.
    pub seen: String,
    /// The command and its folder.
    pub command: String,
    /// The last lines of its output.
    pub output: Vec<String>,
    /// What to do about it.
    pub advice: String,
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, worker, spent, seen, command, .. } = self;
        let phase = match self.phase {
            Phase::Spawn => "could not be started",
            Phase::Exec => "could not run its command",
            Phase::Listen => "did not listen",
            Phase::Probe => "listened, but did not become ready",
        };
        write!(f, "server {server}: worker {worker} {phase}: {seen} (after {spent})")?;
        if !command.is_empty() {
            write!(f, "\n  command: {command}")?;
        }
        if self.output.is_empty() {
            write!(f, "\n  it wrote nothing")?;
        } else {
            write!(f, "\n  its last output:")?;
        }
        for line in &self.output {
            write!(f, "\n    | {line}")?;
        }
        write!(f, "\n  what to do: {}", self.advice)
    }
}

impl std::error::Error for StartFailure {}

/// Why a slot's worker was not replaced. What it has serves on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotReplaced {
    /// The new worker did not start.
    #[error("{0}")]
    Failed(Box<StartFailure>),
    /// The slot was drained meanwhile.
    #[error("the slot was drained")]
    Drained,
    /// It was called off, or another replacement took its place.
    #[error("the replacement was called off")]
    CalledOff,
    /// The gateway stops.
    #[error("the gateway stops")]
    Stopped,
    /// The server has no such slot.
    #[error("there is no slot {0}")]
    NoSlot(u16),
}

/// The last lines of a process's output.
#[derive(Debug, Default)]
pub(crate) struct OutputRing(Mutex<VecDeque<String>>);

impl OutputRing {
    pub(crate) fn push(&self, line: &str) {
        let kept = match line.char_indices().nth(KEPT_CHARACTERS) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => line.to_owned(),
        };
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(kept);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// As many as a report of a failed start shows.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.split_off(lines.len().saturating_sub(REPORTED_LINES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_keeps_the_last_lines_and_cuts_long_ones() {
        let ring = OutputRing::default();
        (0..200).for_each(|i| ring.push(&i.to_string()));
        ring.push(&"€".repeat(5000));
        assert_eq!(ring.lines().len(), KEPT_LINES);
        assert_eq!(ring.lines()[0], "151");
        assert_eq!(ring.last_lines().len(), REPORTED_LINES);
        assert_eq!(ring.last_lines()[19].chars().count(), KEPT_CHARACTERS + 3);
    }
}
