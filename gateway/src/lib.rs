//! Gym Gateway: one front address for N worker processes of an RL environment server, where every session has one owner.
//!
//! Dependencies run downwards only: `cli` → `admin`, `proxy` → `workers`, `session` → `config`; `workers` → `keeper`.

pub mod admin;
pub mod cli;
pub mod config;
pub mod keeper;
pub mod proxy;
pub mod rlimit;
pub mod session;
pub mod systemd;
pub mod worker_id;
pub mod workers;
