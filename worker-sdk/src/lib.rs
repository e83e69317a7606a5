#![doc = include_str!("../README.md")]
// Without one of them, what only it needs.
#![cfg_attr(not(all(feature = "mcp", feature = "openenv")), allow(dead_code))]

pub mod body;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod errors;
mod failure_kinds;
pub mod gymnasium;
mod http;
#[cfg_attr(not(feature = "mcp"), path = "no_mcp.rs")]
mod mcp;
pub mod metrics;
#[cfg(feature = "openenv")]
pub mod openenv;
pub mod ors;
mod repr;
pub mod resources;
mod schema;
pub mod serve;
pub mod session;
pub mod tasks;
#[cfg(feature = "openenv")]
pub mod tools;

pub use body::{Body, Bounded, Object};
pub use errors::Failure;
pub use gym_wire::message::{NeMoGymResponse, Verdict, VerifyRequest};
pub use gymnasium::{GymnasiumApp, GymnasiumServer, Reset, ResetInfo, Step};
pub use ors::{OrsApp, OrsEnvironment};
pub use resources::{Empty, ResourcesApp, ResourcesServer, SeedError, SeedInfo, Seeded};
pub use serve::{ServeError, Settings, serve};
pub use session::{Released, Session, SessionState, Start, StateGuard};

/// What a handler returns: its result, or the reply that says why there is none.
pub type Result<T, E = Failure> = std::result::Result<T, E>;
