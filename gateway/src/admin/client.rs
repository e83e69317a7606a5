//! The commands `status` and `sessions`: ask a running gateway, print a table or JSON.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    snapshot::{
        FailureSnapshot, GatewaySnapshot, ServerSnapshot, SessionSnapshot, WorkerSnapshot, WorkerState,
    },
    text::{duration, size, table},
};

/// How long the gateway may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer that is read: a million sessions fit.
const LARGEST_ANSWER: u64 = 1 << 30;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nothing answers there.
    #[error(
        "no gateway answers at {admin}: {source}; is it running, and is `admin` (run: --admin) this address? Name another with --admin HOST:PORT"
    )]
    NoAnswer {
        /// The address that was asked.
        admin: String,
        /// What went wrong.
        source: Box<ureq::Error>,
    },
    /// The gateway refused the question.
    #[error("the gateway at {admin} answered {status}: {detail}")]
    Refused {
        /// The address that was asked.
        admin: String,
        /// The status code.
        status: u16,
        /// Its reason.
        detail: String,
    },
    /// Something else answers there, or another version.
    #[error("what answers at {admin} is not a gateway of this version: {source}")]
    Strange {
        /// The address that was asked.
        admin: String,
        /// What could not be read.
        source: serde_json::Error,
    },
}

/// Which sessions to ask for.
#[derive(Clone, Debug)]
pub struct SessionsQuery {
    /// Only this server's.
    pub server: Option<String>,
    /// Only those in this state.
    pub state: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Whole IDs.
    pub full: bool,
}

#[derive(Deserialize)]
struct Status {
    gateway: GatewaySnapshot,
    servers: Vec<ServerSnapshot>,
}

/// Servers and workers of the gateway whose admin address is `admin`, as a table or JSON.
///
/// # Errors
/// Nothing answers, or not a gateway.
pub fn status(admin: &str, json: bool) -> Result<String, ClientError> {
    let answer = ask(admin, "/status", &[])?;
    if json {
        return pretty(admin, &answer);
    }
    let status: Status = read(admin, &answer)?;
    let gateway = &status.gateway;
    let stopping = if gateway.stopping { ", stopping" } else { "" };
    let up = duration(gateway.uptime_seconds);
    let mut out = vec![format!("gym-gateway {}, pid {}, up {up}{stopping}", gateway.version, gateway.pid)];
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    out.extend(status.servers.iter().map(|one| server(one, now)));
    Ok(out.join("\n\n"))
}

/// The sessions that `query` asks for, as a table or JSON.
///
/// # Errors
/// Nothing answers, or not a gateway; an unknown server or state.
pub fn sessions(admin: &str, query: &SessionsQuery, json: bool) -> Result<String, ClientError> {
    let (limit, full) = (query.limit.to_string(), query.full.to_string());
    let mut pairs = vec![("limit", limit.as_str()), ("full", full.as_str())];
    pairs.extend(query.server.as_deref().map(|server| ("server", server)));
    pairs.extend(query.state.as_deref().map(|state| ("state", state)));
    let answer = ask(admin, "/sessions", &pairs)?;
    if json {
        return pretty(admin, &answer);
    }
    let sessions: Vec<SessionSnapshot> = read(admin, &answer)?;
    let rows: Vec<_> = sessions.iter().map(session).collect();
    let mut out = table(&["server", "id", "state", "worker", "fenced", "in flight", "idle"], &rows);
    if sessions.len() == query.limit {
        out.push_str(&format!("\n(the first {}; --limit shows more)", query.limit));
    }
    Ok(out)
}

fn ask(admin: &str, path: &str, query: &[(&str, &str)]) -> Result<String, ClientError> {
    // A proxy from the environment has no business between a command and its own machine.
    let config =
        ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).http_status_as_error(false).proxy(None);
    let agent = config.build().new_agent();
    let no_answer =
        |source: ureq::Error| ClientError::NoAnswer { admin: admin.into(), source: Box::new(source) };
    let request = agent.get(format!("http://{admin}{path}")).query_pairs(query.iter().copied());
    let mut answer = request.call().map_err(no_answer)?;
    let status = answer.status().as_u16();
    let body = answer.body_mut().with_config().limit(LARGEST_ANSWER).read_to_string().map_err(no_answer)?;
    if status == 200 {
        return Ok(body);
    }
    let detail =
        serde_json::from_str::<Value>(&body).ok().and_then(|body| body["detail"].as_str().map(str::to_owned));
    Err(ClientError::Refused { admin: admin.into(), status, detail: detail.unwrap_or(body) })
}

fn read<T: DeserializeOwned>(admin: &str, answer: &str) -> Result<T, ClientError> {
    serde_json::from_str(answer).map_err(|source| ClientError::Strange { admin: admin.into(), source })
}

fn pretty(admin: &str, answer: &str) -> Result<String, ClientError> {
    let value: Value = read(admin, answer)?;
    Ok(format!("{value:#}"))
}

fn server(server: &ServerSnapshot, now: u64) -> String {
    let head = format!(
        "{} ({}) on {}: {} of {} workers ready, {} waiting, {} connections, {} sessions lost",
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
    let rows: Vec<_> = server.workers.iter().map(worker).collect();
    [Some(head), sessions_of(server), Some(table(&headings, &rows))]
        .into_iter()
        .flatten()
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

fn worker(worker: &WorkerSnapshot) -> Vec<String> {
    let dash = || "-".to_owned();
    vec![
        worker.slot.to_string(),
        worker.generation.to_string(),
        worker.state.to_string(),
        worker.pid.map_or_else(dash, |pid| pid.to_string()),
        worker.sessions.claimed.to_string(),
        worker.sessions.open.to_string(),
        worker.sessions.ended.to_string(),
        worker.in_flight.to_string(),
        worker.memory_bytes.map_or_else(dash, size),
        worker.restarts.to_string(),
    ]
}

fn session(session: &SessionSnapshot) -> Vec<String> {
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
