//! The admin address: status, sessions, metrics; and what must be true when a test ends.

use serde_json::Value;

use http::Method;

use super::{Answer, Call, Gateway, setup::SERVER};

/// Names of the metrics that the tests look at.
pub mod metric {
    /// Requests that were dispatched and have not ended.
    pub const IN_FLIGHT: &str = "gym_gateway_requests_in_flight";
    /// Requests that wait for a worker.
    pub const WAITING: &str = "gym_gateway_requests_waiting";
    /// Bytes of request bodies held in memory.
    pub const BUFFERED: &str = "gym_gateway_buffered_bytes";
    /// Sessions by state.
    pub const SESSIONS: &str = "gym_gateway_sessions";
    /// Refusals by code.
    pub const REFUSALS: &str = "gym_gateway_refusals_total";
    /// Requests by route class and status.
    pub const REQUESTS: &str = "gym_gateway_requests_total";
    /// How often a slot came into a state.
    pub const TRANSITIONS: &str = "gym_gateway_worker_transitions_total";
    /// Restarts.
    pub const RESTARTS: &str = "gym_gateway_worker_restarts_total";
}

/// One line of `/metrics`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The metric's name.
    pub name: String,
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// Its value.
    pub value: f64,
}

/// A scrape.
#[derive(Clone, Debug)]
pub struct Metrics(pub Vec<Sample>);

impl Metrics {
    /// The sum of all samples of that name with at least these labels; 0 if there is none.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &Sample, (key, value): &(&str, &str)| {
            sample.labels.iter().any(|(have, is)| have == key && is == value)
        };
        let matching =
            self.0.iter().filter(|sample| sample.name == name && labels.iter().all(|pair| has(sample, pair)));
        matching.map(|sample| sample.value).sum()
    }

    /// Whether there is such a metric at all.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|sample| sample.name == name)
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        Self(lines.map(|line| parse_sample(line).unwrap_or_else(|| panic!("no sample: {line}"))).collect())
    }
}

/// Label values in the tests hold neither commas nor quotes.
fn parse_sample(line: &str) -> Option<Sample> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}')?),
        None => (series, ""),
    };
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        Some((key.to_owned(), value.trim_matches('"').to_owned()))
    };
    let labels = labels.split(',').filter(|label| !label.is_empty()).map(pair).collect::<Option<_>>()?;
    Some(Sample { name: name.into(), labels, value: value.parse().ok()? })
}

/// A GET on the admin address.
pub async fn get(gateway: &Gateway, target: &str) -> Answer {
    Call::new(gateway.admin(), Method::GET, target).send().await
}

/// `/status`.
pub async fn status(gateway: &Gateway) -> Value {
    get(gateway, "/status").await.assert(200).json()
}

/// The workers in a status, by slot.
pub fn workers(status: &Value) -> Vec<Value> {
    let servers = &status["servers"];
    let server = match servers {
        Value::Array(servers) => {
            servers.iter().find(|server| server["name"] == SERVER).cloned().unwrap_or_default()
        }
        servers => servers[SERVER].clone(),
    };
    server["workers"].as_array().cloned().unwrap_or_else(|| panic!("no workers in {status}"))
}

/// Waits until a slot is as the test wants it.
pub async fn slot_until(gateway: &Gateway, slot: u16, what: &str, content: impl Fn(&Value) -> bool) -> Value {
    let what = format!("slot {slot}: {what}");
    super::poll(&what, async || {
        let found = workers(&status(gateway).await).into_iter().find(|worker| worker["slot"] == slot);
        found.filter(|worker| content(worker))
    })
    .await
}

/// Waits until a slot goes by a worker of that generation, in that state.
pub async fn slot_becomes(gateway: &Gateway, slot: u16, generation: u32, state: &str) -> Value {
    let what = format!("generation {generation} {state}");
    slot_until(gateway, slot, &what, |worker| worker["generation"] == generation && worker["state"] == state)
        .await
}

/// `/metrics`.
pub async fn metrics(gateway: &Gateway) -> Metrics {
    let answer = get(gateway, "/metrics").await.assert(200);
    Metrics::parse(std::str::from_utf8(&answer.body).expect("text"))
}

/// Waits for a scrape with which the test is content.
pub async fn metrics_until(gateway: &Gateway, what: &str, content: impl Fn(&Metrics) -> bool) -> Metrics {
    let mut last = None;
    let wait = async {
        loop {
            let metrics = metrics(gateway).await;
            if content(&metrics) {
                return metrics;
            }
            last = Some(metrics);
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    match tokio::time::timeout(super::DEADLINE, wait).await {
        Ok(metrics) => metrics,
        Err(_) => panic!("metrics never showed {what}: {last:?}"),
    }
}

/// How many sessions are in that state.
pub async fn sessions(gateway: &Gateway, state: &str) -> f64 {
    metrics(gateway).await.sum(metric::SESSIONS, &[("state", state)])
}

/// Waits until so many sessions are in that state.
pub async fn sessions_become(gateway: &Gateway, state: &str, count: f64) {
    let what = format!("{count} sessions {state}");
    metrics_until(gateway, &what, |metrics| metrics.sum(metric::SESSIONS, &[("state", state)]) == count)
        .await;
}

/// Waits until nothing is in flight, waits, or is held in memory: no leak.
pub async fn quiet(gateway: &Gateway) {
    let names = [metric::IN_FLIGHT, metric::WAITING, metric::BUFFERED];
    let metrics = metrics_until(gateway, "nothing in flight, waiting or buffered", |metrics| {
        names.iter().all(|name| metrics.sum(name, &[]) == 0.0)
    })
    .await;
    for name in names {
        assert!(metrics.has(name), "there is no metric {name}");
    }
}
