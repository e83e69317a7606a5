//! WebSockets whose frames are read, and whose loss is said over the socket itself.
//!
//! Bytes pass as they came; frames are read as they pass (`frames`, `messages`): what the client has asked (`upstream`),
//! what the worker says of sessions (`downstream`). When the worker has gone, the gateway answers alone (`alone`).
//! `carry` moves the bytes, `own` accepts WebSockets that get no worker.

mod alone;
mod carry;
mod downstream;
mod frames;
mod messages;
mod own;
mod upstream;

pub(super) use carry::Socket;
pub(super) use own::OwnWords;
