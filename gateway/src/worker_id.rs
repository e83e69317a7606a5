//! The name of one worker process.

use std::fmt;

/// One worker process of a server: its slot, and which of the slot's processes it is.
///
/// Written `slot.generation` in logs, never in metric labels (those carry the slot alone).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct WorkerId {
    /// Place among the server's workers, from 0.
    pub slot: u16,
    /// Counts the processes that the slot has had, from 1.
    pub generation: u32,
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}
