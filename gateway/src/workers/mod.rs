//! Slots, generations, readiness, restart. Knows no sessions.
//!
//! A [`Supervisor`] keeps each of a server's slots filled. A process's task starts it through a keeper, probes it until it
//! answers, puts it into the [`WorkerSet`] that the proxy reads, lets it drain when it is told to, and sees its exit; a
//! slot's task starts the next one. [`Supervisor::replace`] is the rolling way to another process, for whatever reason,
//! such as a limit that a worker is over.

mod address;
mod advice;
mod ask;
mod backoff;
mod capture;
mod cgroup;
mod conditions;
mod describe;
mod elastic;
mod hang;
mod launch;
mod limiter;
mod limits;
mod listener;
mod log_file;
mod memory;
mod probe;
mod process;
mod progress;
mod report;
mod roll;
mod rolls;
mod room;
mod run_dir;
mod scaler;
mod set;
mod shared;
mod slot;
mod slots;
mod spawner;
mod state;
mod supervisor;
mod surge;
#[cfg(test)]
pub(crate) mod testing;

pub use address::Address;
pub use ask::{Asked, Refused, Unasked, ask};
pub use describe::{Undescribed, describe};
pub use limits::Replacements;
pub use memory::Resident;
pub use progress::PhaseTimes;
pub use report::{
    DrainStatus, DrainTotals, ExitReport, Failed, LastFailure, NotReplaced, OtherStatus, Phase, SlotStatus,
    StartFailure,
};
pub use roll::{RollState, RollStatus};
pub use rolls::{NotRolling, RollTotals};
pub use room::Turn;
pub use scaler::ScaleTotals;
pub use set::{Entry, InFlight, Worker, WorkerSet};
pub use slots::Resized;
pub use state::{SlotState, Transitions};
pub use supervisor::{Held, Reconfigured, Supervisor, WorkerEvents};
