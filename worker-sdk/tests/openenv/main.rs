//! OpenEnv's server from outside: over sockets, with environments that fail, panic, wait and block.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

mod blocking;
mod client;
mod errors;
mod lives;
mod modes;
mod probe;
mod process;
mod sharing;
mod sweeping;
