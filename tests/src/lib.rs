//! End-to-end tests of the gateway's binary: a harness that runs it, and a stub worker whose faults a test scripts.
//!
//! A test starts a [`harness::Gateway`] in front of stub workers, talks to it over [`harness::Raw`] sockets or a
//! [`harness::Http1`] / [`harness::Http2`] client, and awaits what the workers saw through [`harness::Workers`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test support: a broken assumption is to fail the test where it stands"
)]

pub mod harness;
pub mod stub;
