//! How servers, workers and sessions are shown to people.

use super::{
    snapshot::{
        DrainSnapshot, FailureSnapshot, OtherSnapshot, RollSnapshot, ServerSnapshot, SessionCounts,
        SessionSnapshot, WorkerSnapshot, WorkerState,
    },
    text::{duration, size, table},
};

/// A server: a line, what holds for its sessions, its workers as a table, and what there is to say of some of them.
pub(super) fn server(server: &ServerSnapshot, now: u64) -> String {
    let removed = if server.removed { ", removed from the config" } else { "" };
    let head = format!(
        "{} ({}) on {}{removed}: {} of {} workers ready, {} waiting, {} connections, {} sessions lost",
        server.name,
        server.kind,
        server.address,
        server.ready(),
        server.workers.len(),
        server.waiting,
        server.client_connections,
        server.sessions_lost,
    );
    let headings =
        ["slot", "gen", "state", "pid", "claimed", "open", "ended", "in flight", "memory", "restarts"];
    let rows: Vec<_> = server.workers.iter().flat_map(rows_of).collect();
    [
        Some(head),
        sessions_of(server),
        elastic_of(server),
        Some(table(&headings, &rows)),
        server.roll.as_ref().map(|one| roll(one, now)),
    ]
    .into_iter()
    .flatten()
    .chain(server.workers.iter().flat_map(drains_of))
    .chain(server.workers.iter().filter_map(over_limit))
    .chain(server.workers.iter().filter_map(|one| last_failure(one, now)))
    .collect::<Vec<_>>()
    .join("\n")
}

/// A slot's last failure: a line below the table, where it is not squeezed; and what to try, if it was not overcome.
fn last_failure(worker: &WorkerSnapshot, now: u64) -> Option<String> {
    let FailureSnapshot { generation, at_unix, phase, reason, advice, .. } = worker.last_failure.as_ref()?;
    let (slot, ago) = (worker.slot, duration(now.saturating_sub(*at_unix) as f64));
    let reason = reason.lines().next().unwrap_or_default();
    let mut line =
        format!("slot {slot}, last failure: generation {generation}, {ago} ago, {phase}: {reason}");
    if worker.failures_in_a_row > 0 && worker.state != WorkerState::Ready {
        line.push_str(&format!("\n  {} in a row; what to do: {advice}", worker.failures_in_a_row));
    }
    Some(line)
}

/// What holds for a server's sessions, as far as there is anything to say.
fn sessions_of(server: &ServerSnapshot) -> Option<String> {
    if !server.routes_sessions_to_owner {
        return Some("routes_sessions_to_owner is false: every request is balanced".into());
    }
    let mut parts: Vec<_> =
        server.session_cookie.iter().map(|name| format!("session cookie {name}")).collect();
    parts.extend(server.protocol.iter().map(|name| format!("protocol {name}")));
    for (routes, what) in [(&server.session_start_routes, "started"), (&server.session_end_routes, "ended")] {
        if !routes.is_empty() {
            parts.push(format!("sessions also {what} by {}", routes.join(", ")));
        }
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The worker that the slot goes by, and its others below.
fn rows_of(worker: &WorkerSnapshot) -> Vec<Vec<String>> {
    let slot = worker.slot.to_string();
    let restarts = worker.restarts.to_string();
    let own = row(
        [&slot, &restarts],
        worker.generation,
        worker.state,
        worker.pid,
        worker.sessions,
        (worker.in_flight, worker.memory_bytes),
    );
    let others = worker.others.iter().map(|other| {
        let OtherSnapshot { generation, state, pid, sessions, in_flight, memory_bytes, .. } = *other;
        row(["", ""], generation, state, pid, sessions, (in_flight, memory_bytes))
    });
    [own].into_iter().chain(others).collect()
}

fn row(
    [slot, restarts]: [&str; 2],
    generation: u32,
    state: WorkerState,
    pid: Option<i32>,
    sessions: SessionCounts,
    (in_flight, memory): (u64, Option<u64>),
) -> Vec<String> {
    let dash = || "-".to_owned();
    vec![
        slot.to_owned(),
        generation.to_string(),
        state.to_string(),
        pid.map_or_else(dash, |pid| pid.to_string()),
        sessions.claimed.to_string(),
        sessions.open.to_string(),
        sessions.ended.to_string(),
        in_flight.to_string(),
        memory.map_or_else(dash, size),
        restarts.to_owned(),
    ]
}

/// Why workers drain, and until when: lines below the table.
fn drains_of(worker: &WorkerSnapshot) -> Vec<String> {
    let own = worker.drain.as_ref().map(|drain| (worker.generation, drain));
    let others = worker.others.iter().filter_map(|other| Some((other.generation, other.drain.as_ref()?)));
    let line = |(generation, drain): (u32, &DrainSnapshot)| {
        let DrainSnapshot { reason, since_seconds, left_seconds } = drain;
        let left =
            left_seconds.map_or("without a limit".into(), |left| format!("at most {} more", duration(left)));
        let since = duration(*since_seconds);
        format!("slot {}, generation {generation} drains for {since}, {left}: {reason}", worker.slot)
    };
    own.into_iter().chain(others).map(line).collect()
}

/// Between what its number of workers may change.
fn elastic_of(server: &ServerSnapshot) -> Option<String> {
    let (min, max) = server.workers_range?;
    let count = |word: &str| server.scaled.get(word).copied().unwrap_or_default();
    let target = server.target_sessions_per_worker;
    let target = target.map_or(String::new(), |target| format!(", {target} sessions each"));
    let (grown, shrunk) = (count("grown"), count("shrunk"));
    Some(format!("{min} to {max} workers as needed{target}; so far {grown} more, {shrunk} less"))
}

/// The limit that a worker is over: it is there still, since its successor is not.
fn over_limit(worker: &WorkerSnapshot) -> Option<String> {
    let why = worker.over_limit.as_ref()?;
    Some(format!("slot {}, generation {} is to be replaced: {why}", worker.slot, worker.generation))
}

/// How far a rolling restart is, or how it ended.
pub(super) fn roll(roll: &RollSnapshot, now: u64) -> String {
    let RollSnapshot { reason, state, slots, replaced, skipped, failure, started_unix, ended_unix, .. } =
        roll;
    let ago = |unix: u64| duration(now.saturating_sub(unix) as f64);
    let when = match ended_unix {
        None => format!("begun {} ago", ago(*started_unix)),
        Some(ended) => format!("{} {} ago", state.replace('_', " "), ago(*ended)),
    };
    let mut line = format!(
        "rolling restart ({reason}) {when}: {} of {} slots have a new worker",
        replaced.len(),
        slots.len()
    );
    if !skipped.is_empty() {
        line.push_str(&format!(", {} drained by hand", skipped.len()));
    }
    if let Some(why) = failure.as_ref().and_then(|why| why.lines().next()) {
        line.push_str(&format!("; {why}"));
    }
    line
}

/// A session's row.
pub(super) fn session(session: &SessionSnapshot) -> Vec<String> {
    vec![
        session.server.clone(),
        session.id.clone(),
        session.state.as_str().into(),
        format!("{}.{}", session.slot, session.generation),
        if session.fenced { "yes" } else { "no" }.into(),
        session.in_flight.to_string(),
        duration(session.idle_seconds),
    ]
}
