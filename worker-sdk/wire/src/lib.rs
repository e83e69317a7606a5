//! What Python RL environments put on the wire, read and written byte for byte: Starlette's signed session cookies,
//! NeMo Gym's signed session tokens, the messages of its protocols, error bodies.
//!
//! No I/O and no clock: callers pass the time. Keys are derived once, when a key type is made, so that checking one
//! signature costs three SHA-1 blocks.

pub mod cookie;
pub mod error;
pub mod message;
pub mod token;

mod b64;
mod signature;
