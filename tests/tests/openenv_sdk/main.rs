//! OpenEnv environments in Rust before OpenEnv's own programs: the recorded cases, its clients, its guide.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

mod cases;
mod differences;
mod server;
mod sessions;
mod walkthrough;
