//! The worker's parent: a small process of its own, this same binary, with one thread.
//!
//! A keeper starts one worker in a process group of its own, takes its output, waits for it, and after its exit kills
//! whatever it left behind, before its process ID can be given to another. It talks with the gateway over a Unix
//! socket pair, and holds a lease on it: when the gateway's end closes, however the gateway died, it kills everything.
//! The other way round, a worker dies with its keeper (a parent-death signal, which is safe here because a keeper has
//! one thread only), and what it forked falls to the gateway, which kills it: see [`become_subreaper`].

mod cgroup;
mod conditions;
mod family;
mod handle;
mod limits;
mod lines;
mod outbox;
mod reaper;
mod run;
mod shim;
mod wire;
mod worker;

pub use cgroup::Cgroup;
pub use conditions::Conditions;
pub(crate) use family::tree_of;
pub use handle::{Ending, Keeper, own_binary};
pub use limits::{NofileLimit, original_nofile, raise_nofile_limit};
pub use reaper::{KnownChild, become_subreaper, reap_strangers, spawn_known};
pub use run::run_keeper;
pub use shim::exec_worker;
pub use wire::{Exit, Order, Report, StartSpec, Stream};
