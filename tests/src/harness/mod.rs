//! Runs the gateway's binary in front of stub workers, and looks at it from every side.

pub mod admin;
pub mod alone;
pub mod binary;
pub mod call;
pub mod conversation;
pub mod cookie;
pub mod gateway;
pub mod log;
pub mod peers;
pub mod processes;
pub mod raw;
pub mod setup;
pub mod websocket;
pub mod workers;

use std::time::Duration;

pub use admin::{Metrics, Sample};
pub use alone::Alone;
pub use call::{Answer, Call, Http1, Http2};
pub use gateway::Gateway;
pub use peers::Peers;
pub use raw::{Raw, RawAnswer};
pub use setup::{Kind, Setup};
pub use websocket::WebSocket;
pub use workers::Workers;

/// How long anything may take that is bound to happen; a test fails after it.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Awaits something that is bound to happen; panics with `what` if it does not within [`DEADLINE`].
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("not within {DEADLINE:?}: {what}"),
    }
}

/// Asks again and again until there is an answer; panics with `what` if there is none within [`DEADLINE`].
pub async fn poll<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let ask_on = async {
        loop {
            if let Some(value) = ask().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(what, ask_on).await
}
