//! RL environment servers in Rust that Gym Gateway can run as workers.
//!
//! A server is an [`axum::Router`]: [`Session`] gives its handlers the session that a request belongs to, [`Body`]
//! reads JSON and refuses bad input as FastAPI does, and [`serve()`] listens where the gateway says.
//! `examples/counter.rs` is a whole server.

pub mod body;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod errors;
pub mod metrics;
pub mod serve;
pub mod session;

pub use body::{Body, Object};
pub use serve::{ServeError, serve};
pub use session::{Session, SessionCookie};
