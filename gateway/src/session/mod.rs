//! The rule: which session a request names, who owns it, and what a request or a reply changes.
//!
//! Pure: no sockets, no processes, no runtime; time comes in as an argument. A request passes through it so:
//!
//! 1. [`Rule::route`] and [`Rule::name`] read it: the session that it names, or a [`Refusal`]. Or, faster among many
//!    sessions, [`Rule::name_expecting`] with [`SessionTable::expect`].
//! 2. [`SessionTable::dispatch`] finds or chooses the owner, claims the session and hands out a [`Ticket`].
//! 3. [`Rule::prepare`] puts a minted cookie into what the worker gets.
//! 4. No byte could be sent: [`SessionTable::withdraw`], and again from 2. Otherwise [`Rule::read_reply`],
//!    [`SessionTable::reply`] and [`Rule::apply`] before the head goes to the client, [`SessionTable::episode_over`]
//!    before the last byte where a [`StepWatch`] says so, [`SessionTable::said`] where a [`SaidWatch`] or a WebSocket's
//!    message does, and [`SessionTable::finish`] in any case.
//!
//! Locks: a session is guarded by its shard of the table. Wheels, losses and the register of workers are only
//! ever taken inside a shard's lock, never the other way round, and no two shards are held at once.

mod cookies;
mod counts;
mod expiry;
mod header;
mod id;
mod learned;
mod losses;
mod named;
mod naming;
mod openenv;
mod owners;
mod prefetch;
mod record;
mod refusal;
mod reply;
mod route;
mod rule;
mod said;
mod settle;
mod step_watch;
mod sweep;
mod table;
mod ticket;

#[cfg(test)]
mod tests;

pub use counts::{Counts, SessionFilter, SessionInfo, WorkerCounts};
pub use id::{MAX_HEADER_ID_BYTES, MAX_ID_BYTES, Millis, SessionId};
pub use learned::Learned;
pub use named::{By, Named};
pub use openenv::{Channel, Said, SaidWatch, capacity_answer, capacity_frame, is_goodbye, lost_frame};
pub use record::SessionState;
pub use refusal::Refusal;
pub use reply::{HeadEffects, Reply, Says};
pub use route::{Route, RouteClass};
pub use rule::Rule;
pub use step_watch::StepWatch;
pub use table::SessionTable;
pub use ticket::{Dispatch, Ticket};
