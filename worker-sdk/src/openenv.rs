//! OpenEnv's environment server: one environment for each session, stepped over a WebSocket.
//!
//! An environment is a type with [`Environment`]; [`EnvironmentApp`] serves it. Clients are OpenEnv's own, `EnvClient`,
//! `MCPToolClient` and `GenericEnvClient`, and none of them can tell it from a Python server.
//!
//! | route | |
//! |---|---|
//! | `/ws` (WebSocket) | a session of its own: `reset`, `step`, `state`, `mcp`, `close`; with `?session_id=` that of an existing one |
//! | `POST /mcp` | the tools by JSON-RPC: `tools/list`, `tools/call`; `openenv/session/create`, `openenv/session/close`; with `params.session_id` in a session, without on an environment made for the one call |
//! | `/mcp` (WebSocket) | the same in a session of its own |
//! | `POST /reset`, `POST /step`, `GET /state` | on an environment made for the one call; not in production mode |
//! | `GET /metadata`, `/schema`, `/health` | what it is, what its JSON looks like, whether it is there |
//! | the Task API | see [`tasks`](crate::tasks); 501 for an environment without tasks |
//! | `GET /openapi.json`, `GET /docs` | this, for programs and for people |
//!
//! # A session's life
//!
//! Each session has an environment of its own, which nobody else can reach; what one client asks of it is done one by one,
//! in the order in which it came. An operation that has begun runs to its end, also if its client has left.
//!
//! | what happens | then |
//! |---|---|
//! | a WebSocket connects | its session begins, and ends with it, however it ends |
//! | `openenv/session/create` | a session begins that no WebSocket holds |
//! | `/ws?session_id=` | one WebSocket at a time is attached to it; the session stays when that leaves |
//! | `openenv/session/close` | it ends; if a WebSocket is attached, when that leaves (`closing`) |
//! | nobody uses it for `session_idle_timeout_seconds` | it ends, unless a WebSocket is there or an operation runs |
//! | `max_concurrent_envs` are open | a further one is refused, `CAPACITY_REACHED`; a place is free once its environment is closed |
//! | SIGTERM | operations that run finish and are answered, WebSockets are closed with 1012, environments are closed |
//!
//! # Errors
//!
//! What a reset, a step, a state or a tool returns as an error, or panics with, is `EXECUTION_ERROR` with its words on a
//! WebSocket, -32603 over JSON-RPC and a bare `500 Internal Server Error` over HTTP, with the words in the log. The session
//! goes on, and its environment is as the error left it.
//!
//! # Where the methods run
//!
//! On the runtime's own threads, each operation as a task. A method that computes for long or blocks its thread would hold
//! up the other sessions, and the pings that keep connections open: say [`Environment::BLOCKS`], and all of an
//! environment's methods run on the pool for blocking code, its constructor and its close among them. The Task API's calls are
//! no sessions' and stay where they are.

mod app;
mod docs;
mod environment;
mod episode;
mod frames;
mod front;
mod live;
mod mcp;
mod openapi;
mod registry;
mod requests;
mod routes;
mod rpc;
mod schemas;
mod seat;
mod sessions;
mod settings;
mod socket;
mod talk;
mod tasks;
mod wire;

pub use app::EnvironmentApp;
pub use environment::{Environment, MadeEnvironment, Metadata};
pub use episode::{Observed, Reset, State, StepInfo};
pub use settings::Mode;
