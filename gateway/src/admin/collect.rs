//! The metrics that are read from the snapshot at the moment of the scrape.

use std::collections::BTreeMap;

use prometheus::{
    Registry, TextEncoder,
    proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType},
};

use super::{
    metrics::{self, MetricDoc, MetricKind},
    snapshot::{ServerSnapshot, Snapshot, WorkerState},
};

/// Everything on `/metrics`, in Prometheus' text format.
///
/// # Errors
/// A metric that cannot be written, which would be a fault of the gateway.
pub(crate) fn text(snapshot: &dyn Snapshot, registry: &Registry) -> Result<String, prometheus::Error> {
    TextEncoder::new().encode_to_string(&families(snapshot, registry))
}

/// What was counted as requests passed, and what is read now, sorted by name.
pub(crate) fn families(snapshot: &dyn Snapshot, registry: &Registry) -> Vec<MetricFamily> {
    let mut families = registry.gather();
    families.extend(read(snapshot).into_iter().filter(|family| !family.get_metric().is_empty()));
    families.sort_by(|a, b| a.name().cmp(b.name()));
    families
}

/// One metric's values with their labels.
type Samples = Vec<(Vec<String>, f64)>;

fn read(snapshot: &dyn Snapshot) -> Vec<MetricFamily> {
    let gateway = snapshot.gateway();
    let servers = snapshot.measured_servers();
    let of_servers = |value: fn(&ServerSnapshot) -> u64| -> Samples {
        servers.iter().map(|server| (vec![server.name.clone()], value(server) as f64)).collect()
    };
    vec![
        family(metrics::BUILD_INFO, vec![(vec![gateway.version], 1.0)]),
        family(metrics::BUFFERED, vec![(vec![], gateway.buffered_bytes as f64)]),
        family(metrics::CONNECTIONS, of_servers(|server| server.client_connections)),
        family(metrics::WAITING, of_servers(|server| server.waiting)),
        family(metrics::LOST, of_servers(|server| server.sessions_lost)),
        family(metrics::EXPIRED, of_servers(|server| server.sessions_expired)),
        family(metrics::DRAINING, of_servers(ServerSnapshot::draining)),
        family(metrics::DRAINS_CUT, of_servers(|server| server.drains_cut)),
        family(metrics::LOST_TO_DRAINS, of_servers(|server| server.sessions_lost_to_drains)),
        family(metrics::ROLLS, of_words(&servers, |server| &server.rolls_ended)),
        family(metrics::SCALED, of_words(&servers, |server| &server.scaled)),
        family(
            metrics::IN_FLIGHT,
            of_workers(&servers, |worker| worker.sum(worker.in_flight, |other| other.in_flight)),
        ),
        family(
            metrics::QUEUED,
            of_workers(&servers, |worker| worker.sum(worker.queued, |other| other.queued)),
        ),
        family(metrics::UP, of_workers(&servers, |worker| u64::from(worker.state == WorkerState::Ready))),
        family(metrics::GENERATION, of_workers(&servers, |worker| u64::from(worker.generation))),
        family(metrics::RESTARTS, of_workers(&servers, |worker| worker.restarts)),
        family(metrics::OOM_KILLS, of_workers(&servers, |worker| worker.oom_kills)),
        family(metrics::STARTED, of_workers(&servers, |worker| worker.started_unix)),
        family(metrics::TRANSITIONS, by_word(&servers, |worker| &worker.transitions)),
        family(metrics::REPLACEMENTS, by_word(&servers, |worker| &worker.replacements)),
        family(metrics::MEMORY, memory(&servers)),
        family(metrics::SESSIONS, sessions(&servers)),
    ]
}

fn of_workers(servers: &[ServerSnapshot], value: fn(&super::WorkerSnapshot) -> u64) -> Samples {
    let of = |server: &ServerSnapshot| -> Samples {
        let labels = |slot: u16| vec![server.name.clone(), slot.to_string()];
        server.workers.iter().map(|worker| (labels(worker.slot), value(worker) as f64)).collect()
    };
    servers.iter().flat_map(of).collect()
}

fn by_word(
    servers: &[ServerSnapshot],
    counts: fn(&super::WorkerSnapshot) -> &BTreeMap<String, u64>,
) -> Samples {
    let mut samples = Samples::new();
    for server in servers {
        for worker in &server.workers {
            samples.extend(counts(worker).iter().map(|(word, count)| {
                (vec![server.name.clone(), worker.slot.to_string(), word.clone()], *count as f64)
            }));
        }
    }
    samples
}

fn of_words(servers: &[ServerSnapshot], counts: fn(&ServerSnapshot) -> &BTreeMap<String, u64>) -> Samples {
    let of = |server: &ServerSnapshot| -> Samples {
        let labels = |word: &String| vec![server.name.clone(), word.clone()];
        counts(server).iter().map(|(word, count)| (labels(word), *count as f64)).collect()
    };
    servers.iter().flat_map(of).collect()
}

/// Only of workers that run.
fn memory(servers: &[ServerSnapshot]) -> Samples {
    let mut samples = Samples::new();
    for server in servers {
        for worker in &server.workers {
            let labels = vec![server.name.clone(), worker.slot.to_string()];
            let all = worker.others.iter().map(|other| other.memory_bytes).chain([worker.memory_bytes]);
            let all: Vec<u64> = all.flatten().collect();
            if !all.is_empty() {
                samples.push((labels, all.iter().sum::<u64>() as f64));
            }
        }
    }
    samples
}

fn sessions(servers: &[ServerSnapshot]) -> Samples {
    let mut samples = Samples::new();
    for server in servers {
        for worker in &server.workers {
            let counts = worker.sessions;
            for (state, count) in [
                ("claimed", worker.sum(counts.claimed, |other| other.sessions.claimed)),
                ("open", worker.sum(counts.open, |other| other.sessions.open)),
                ("ended", worker.sum(counts.ended, |other| other.sessions.ended)),
            ] {
                samples
                    .push((vec![server.name.clone(), worker.slot.to_string(), state.into()], count as f64));
            }
        }
    }
    samples
}

fn family(doc: MetricDoc, samples: Samples) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(doc.name.into());
    family.set_help(doc.help.into());
    let counter = doc.kind == MetricKind::Counter;
    family.set_field_type(if counter { MetricType::COUNTER } else { MetricType::GAUGE });
    let metric = |(values, value): (Vec<String>, f64)| {
        let mut metric = Metric::from_label(doc.labels.iter().zip(values).map(label).collect());
        if counter {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        metric
    };
    family.set_metric(samples.into_iter().map(metric).collect());
    family
}

fn label((name, value): (&&str, String)) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name((*name).into());
    pair.set_value(value);
    pair
}
