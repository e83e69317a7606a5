//! Slots, generations, readiness, restart. Knows no sessions.
//!
//! A [`Supervisor`] keeps each of a server's slots filled. A slot's task starts a process through a keeper, probes it
//! until it answers, puts it into the [`WorkerSet`] that the proxy reads, sees its exit, and starts the next one.

mod address;
mod advice;
mod ask;
mod backoff;
mod capture;
mod cgroup;
mod conditions;
mod describe;
mod launch;
mod listener;
mod log_file;
mod memory;
mod probe;
mod process;
mod progress;
mod report;
mod run_dir;
mod set;
mod slot;
mod spawner;
mod state;
mod supervisor;
#[cfg(test)]
pub(crate) mod testing;

pub use address::Address;
pub use ask::{Asked, Refused, Unasked, ask};
pub use describe::{Undescribed, describe};
pub use memory::resident_by_group;
pub use progress::PhaseTimes;
pub use report::{ExitReport, Failed, LastFailure, Phase, SlotStatus, StartFailure};
pub use set::{InFlight, Worker, WorkerSet};
pub use state::{SlotState, Transitions};
pub use supervisor::{Supervisor, WorkerEvents};
