//! Does a resources server keep the contract of episode sessions? Drives any server by its URL, Python or Rust.
//!
//! An environment server names its session itself (`resources_session_id`), seeds and closes it, and may lose any
//! reply on the way. So a seed and a close may come twice, a close may come without a cookie, and a seed may arrive
//! after its close. [`check_resources_session_contract`] sends all of that and reports what was answered:
//!
//! ```no_run
//! use gym_worker_sdk::conformance::{Options, Seed, check_resources_session_contract};
//!
//! # async fn check() -> Result<(), Box<dyn std::error::Error>> {
//! let seed = Seed::new(serde_json::json!({
//!     "resources_session_id": "check",
//!     "episode_id": {"rollout_id": "check", "attempt": 0},
//!     "task_id": {"taskset": "examples", "task_id": "0"},
//!     "task_data": {"initial_count": 3},
//! }))?;
//! let options = Options::new().keeps_state(true).strict(true);
//! let report = check_resources_session_contract("http://127.0.0.1:8000", &seed, &options).await;
//! assert!(report.is_ok(), "{report}");
//! # Ok(())
//! # }
//! ```
//!
//! It needs a Tokio runtime, and speaks plain HTTP.

mod client;
mod held;
mod options;
mod report;
mod scenarios;
mod scene;
mod seed;
mod want;

pub use held::Held;
pub use options::Options;
pub use report::{Report, Step, Verdict};
pub use seed::{MAX_SESSION_ID_BYTES, Seed, SeedError};

/// Seeds, verifies and closes sessions of the resources server at `url`, and reports which steps broke the contract.
///
/// Each scenario has a session and an episode of its own: the seed's `resources_session_id` and `rollout_id` with a
/// random suffix, so that a server can be checked again and again. Sessions that a step leaves open are closed.
///
/// A step that needs a refusal takes any 4xx or 5xx, and with [`Options::strict`] only the status that NeMo Gym's
/// documentation names. A server that does not keep state ([`Options::keeps_state`]) may take a seed or a close that
/// one with state has to refuse: it has nothing that such a request could bring back or take away.
///
/// Never fails: a server that is not there, or does not answer in time, is in the report.
pub async fn check_resources_session_contract(url: &str, seed: &Seed, options: &Options) -> Report {
    scenarios::run(url, seed, options).await
}

#[cfg(test)]
mod tests;
