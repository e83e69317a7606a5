//! The admin address: metrics, health, status, sessions, a page; and the client that asks it.

pub mod client;
mod collect;
mod http;
mod metrics;
mod page;
mod snapshot;
mod text;

#[cfg(test)]
mod tests;

pub use self::{
    http::router,
    metrics::{METRICS, MetricDoc, MetricKind, RequestMetrics, metrics_markdown},
    snapshot::{
        FailureSnapshot, GatewaySnapshot, ServerSnapshot, SessionCounts, SessionQuery, SessionSnapshot,
        SessionState, Snapshot, WorkerSnapshot, WorkerState,
    },
};
