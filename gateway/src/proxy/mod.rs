//! The data plane: hyper on pingora's chassis.
//!
//! Reads requests, asks [`crate::session`] where they belong, picks from [`crate::workers`], forwards, settles.
//! One request is one async function (`exchange`); what it changed is settled by a guard (`settle`).

mod body;
mod budget;
mod client_io;
mod clock;
mod connections;
mod core;
mod dispatch;
mod exchange;
mod forward;
mod front;
mod headers;
mod last_words;
mod observe;
mod pick;
mod places;
mod pool;
mod refusal;
mod reply;
mod settle;
mod state;
mod tunnel;
mod worker_io;

pub use budget::Budget;
pub use clock::Clock;
pub use front::{Address, Front, bind};
pub use observe::Observer;
pub use places::Places;
pub use refusal::{CODES, CodeDoc, Refusal};
pub use state::{Count, Counted, ServerState, Shared, Stop};
