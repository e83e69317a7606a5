//! The metrics: one table, from which they are registered, collected and documented.

use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};

/// What a metric is to Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Goes up only.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts in buckets.
    Histogram,
}

impl MetricKind {
    /// The word that Prometheus has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric's row in the table.
#[derive(Clone, Copy, Debug)]
pub struct MetricDoc {
    /// Its name, with the unit at the end, as Prometheus' conventions have it.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// Its labels, in the order in which values are given.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub help: &'static str,
}

use MetricKind::{Counter, Gauge, Histogram as Buckets};

const fn doc(
    name: &'static str,
    kind: MetricKind,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricDoc {
    MetricDoc { name, kind, labels, help }
}

const SERVER: &[&str] = &["server"];
const SLOT: &[&str] = &["server", "slot"];

#[rustfmt::skip]
mod docs {
    use super::*;
    pub(crate) const BUILD_INFO: MetricDoc = doc("gym_gateway_build_info", Gauge, &["version"], "The gateway's version; always 1.");
    pub(crate) const BUFFERED: MetricDoc = doc("gym_gateway_buffered_bytes", Gauge, &[], "Bytes of request bodies, and of parts of WebSocket frames, held in memory.");
    pub(crate) const CONNECTIONS: MetricDoc = doc("gym_gateway_client_connections", Gauge, SERVER, "Connections of clients.");
    pub(crate) const WAITING: MetricDoc = doc("gym_gateway_requests_waiting", Gauge, SERVER, "Requests that wait for a ready worker, or for room at one.");
    pub(crate) const IN_FLIGHT: MetricDoc = doc("gym_gateway_requests_in_flight", Gauge, SLOT, "Requests that the slot's workers have and that are not done.");
    pub(crate) const QUEUED: MetricDoc = doc("gym_gateway_requests_queued", Gauge, SLOT, "Requests that wait for room at the slot's workers, which own their sessions.");
    pub(crate) const REQUESTS: MetricDoc = doc("gym_gateway_requests_total", Counter, &["server", "slot", "route", "status"], "Requests answered, by route class and status code; the slot is empty if no worker had it, the status 499 if the client left before the reply.");
    pub(crate) const DURATION: MetricDoc = doc("gym_gateway_request_duration_seconds", Buckets, &["server", "route"], "From a request's head to its reply's last byte.");
    pub(crate) const REFUSALS: MetricDoc = doc("gym_gateway_refusals_total", Counter, &["server", "code"], "Replies of the gateway's own, by the code in their body.");
    pub(crate) const SESSIONS: MetricDoc = doc("gym_gateway_sessions", Gauge, &["server", "slot", "state"], "Sessions that the slot's workers own: claimed, open or ended.");
    pub(crate) const LOST: MetricDoc = doc("gym_gateway_sessions_lost_total", Counter, SERVER, "Sessions lost: by their owner's exit, or expired.");
    pub(crate) const EXPIRED: MetricDoc = doc("gym_gateway_sessions_expired_total", Counter, SERVER, "Of the lost sessions, those that were open and idle for too long.");
    pub(crate) const DRAINING: MetricDoc = doc("gym_gateway_workers_draining", Gauge, SERVER, "Workers that keep their sessions and get no new ones.");
    pub(crate) const DRAINS_CUT: MetricDoc = doc("gym_gateway_drains_cut_total", Counter, SERVER, "Drains that took drain_timeout_seconds, with something left.");
    pub(crate) const LOST_TO_DRAINS: MetricDoc = doc("gym_gateway_sessions_lost_to_drains_total", Counter, SERVER, "Of the lost sessions, those that were left at the end of a drain's time.");
    pub(crate) const ROLLS: MetricDoc = doc("gym_gateway_rolling_restarts_total", Counter, &["server", "result"], "Rolling restarts that are over: done, failed (a new worker did not start, or died soon), called_off.");
    pub(crate) const SCALED: MetricDoc = doc("gym_gateway_workers_scaled_total", Counter, &["server", "direction"], "Workers that were started (grown) or let drain (shrunk) between min_workers and max_workers.");
    pub(crate) const RELOADS: MetricDoc = doc("gym_gateway_reloads_total", Counter, &["result"], "Reloads of the config: applied, failed (in part), refused (nothing changed).");
    pub(crate) const UP: MetricDoc = doc("gym_gateway_worker_up", Gauge, SLOT, "1 while the slot's worker is ready, else 0.");
    pub(crate) const GENERATION: MetricDoc = doc("gym_gateway_worker_generation", Gauge, SLOT, "Which of the slot's processes it goes by, counted from 1.");
    pub(crate) const RESTARTS: MetricDoc = doc("gym_gateway_worker_restarts_total", Counter, SLOT, "Processes started after the slot's first one.");
    pub(crate) const OOM_KILLS: MetricDoc = doc("gym_gateway_worker_oom_kills_total", Counter, SLOT, "Processes of the slot that the kernel killed because the memory of their cgroup (`cgroup.memory_max`) had run out.");
    pub(crate) const TRANSITIONS: MetricDoc = doc("gym_gateway_worker_transitions_total", Counter, &["server", "slot", "to"], "How often the slot came into a state: starting, ready, draining, exited (asked to), died (unasked, or not ready in time), backoff, failed, stopped, drained.");
    pub(crate) const REPLACEMENTS: MetricDoc = doc("gym_gateway_worker_replacements_total", Counter, &["server", "slot", "reason"], "Workers that were replaced for a limit: max_requests, max_sessions, max_lifetime, max_memory, hang.");
    pub(crate) const MEMORY: MetricDoc = doc("gym_gateway_worker_resident_memory_bytes", Gauge, SLOT, "Resident memory of the process trees of the slot's workers, while they run.");
    pub(crate) const STARTED: MetricDoc = doc("gym_gateway_worker_start_time_seconds", Gauge, SLOT, "When the process that the slot goes by was started, in seconds since 1970.");
}
pub(crate) use docs::*;

/// Every metric on `/metrics`.
pub const METRICS: &[MetricDoc] = &[
    BUILD_INFO,
    BUFFERED,
    CONNECTIONS,
    WAITING,
    IN_FLIGHT,
    QUEUED,
    REQUESTS,
    DURATION,
    REFUSALS,
    SESSIONS,
    LOST,
    EXPIRED,
    DRAINING,
    DRAINS_CUT,
    LOST_TO_DRAINS,
    ROLLS,
    SCALED,
    RELOADS,
    UP,
    GENERATION,
    RESTARTS,
    OOM_KILLS,
    TRANSITIONS,
    REPLACEMENTS,
    MEMORY,
    STARTED,
];

/// The table as the README has it.
pub fn metrics_markdown() -> String {
    let mut out = String::from("| metric | type | labels | what it tells |\n|---|---|---|---|\n");
    for doc in METRICS {
        let labels: Vec<_> = doc.labels.iter().map(|label| format!("`{label}`")).collect();
        out.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            doc.name,
            doc.kind.as_str(),
            labels.join(", "),
            doc.help
        ));
    }
    out
}

/// From a millisecond to an hour: a verify may take long.
const BUCKETS: [f64; 20] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
    600.0, 1800.0, 3600.0,
];

/// What is counted as requests pass. Handles are cheap to clone and to be kept, one for each core and set of labels:
/// looking one up takes a lock.
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    requests: IntCounterVec,
    duration: HistogramVec,
    refusals: IntCounterVec,
    reloads: IntCounterVec,
}

impl RequestMetrics {
    /// Makes the metrics and registers them.
    ///
    /// # Errors
    /// `registry` has metrics of these names already.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let opts = |doc: MetricDoc| Opts::new(doc.name, doc.help);
        let duration = HistogramOpts::new(DURATION.name, DURATION.help).buckets(BUCKETS.to_vec());
        let metrics = Self {
            requests: IntCounterVec::new(opts(REQUESTS), REQUESTS.labels)?,
            duration: HistogramVec::new(duration, DURATION.labels)?,
            refusals: IntCounterVec::new(opts(REFUSALS), REFUSALS.labels)?,
            reloads: IntCounterVec::new(opts(RELOADS), RELOADS.labels)?,
        };
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.duration.clone()))?;
        registry.register(Box::new(metrics.refusals.clone()))?;
        registry.register(Box::new(metrics.reloads.clone()))?;
        Ok(metrics)
    }

    /// The counter of requests with these labels; no slot if no worker had them.
    pub fn requests(&self, server: &str, slot: Option<u16>, route: &str, status: u16) -> IntCounter {
        let slot = slot.map(|slot| slot.to_string()).unwrap_or_default();
        self.requests.with_label_values(&[server, slot.as_str(), route, status.to_string().as_str()])
    }

    /// The histogram of durations with these labels.
    pub fn duration(&self, server: &str, route: &str) -> Histogram {
        self.duration.with_label_values(&[server, route])
    }

    /// Counts one reload of the config.
    pub fn reloaded(&self, result: &str) {
        self.reloads.with_label_values(&[result]).inc();
    }

    /// Counts one reply of the gateway's own.
    pub fn refused(&self, server: &str, code: &str) {
        self.refusals.with_label_values(&[server, code]).inc();
    }
}
