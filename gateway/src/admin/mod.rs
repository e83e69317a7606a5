//! The admin address: metrics, health, status, sessions, a page, and what can be done; and the client that asks it.

pub mod client;
mod collect;
mod control;
mod http;
mod metrics;
pub mod orders;
mod page;
mod show;
mod snapshot;
mod text;

#[cfg(test)]
mod tests;

pub use self::{
    control::{Control, Refused, Reloaded},
    http::router,
    metrics::{METRICS, MetricDoc, MetricKind, RequestMetrics, metrics_markdown},
    snapshot::{
        DrainSnapshot, FailureSnapshot, GatewaySnapshot, OtherSnapshot, RollSnapshot, ServerSnapshot,
        SessionCounts, SessionQuery, SessionSnapshot, SessionState, Snapshot, WorkerSnapshot, WorkerState,
    },
};
