//! Asks a running gateway: what the commands `status` and `sessions` print, and what the others are made of.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    control::INVALID_CONFIG,
    show,
    snapshot::{GatewaySnapshot, ServerSnapshot, SessionSnapshot},
    text::{duration, table},
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
    /// The gateway's files hold no valid config; nothing has changed.
    #[error("the gateway at {admin} refuses its config; {detail}")]
    InvalidConfig {
        /// The address that was asked.
        admin: String,
        /// What is wrong.
        detail: String,
    },
    /// What was asked for did not come about.
    #[error("{0}")]
    Failed(String),
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
pub(super) struct Status {
    gateway: GatewaySnapshot,
    pub(super) servers: Vec<ServerSnapshot>,
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
    out.extend(status.servers.iter().map(|one| show::server(one, now)));
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
    let rows: Vec<_> = sessions.iter().map(show::session).collect();
    let mut out = table(&["server", "id", "state", "worker", "fenced", "in flight", "idle"], &rows);
    if sessions.len() == query.limit {
        out.push_str(&format!("\n(the first {}; --limit shows more)", query.limit));
    }
    Ok(out)
}

/// The status as it is now, for those who wait for something.
pub(super) fn look(admin: &str) -> Result<Status, ClientError> {
    read(admin, &ask(admin, "/status", &[])?)
}

fn ask(admin: &str, path: &str, query: &[(&str, &str)]) -> Result<String, ClientError> {
    let request = agent(TIMEOUT).get(format!("http://{admin}{path}")).query_pairs(query.iter().copied());
    answer(admin, request.call())
}

/// Has something done, which may take so long.
pub(super) fn order(
    admin: &str,
    path: &str,
    order: &Value,
    patience: Option<Duration>,
) -> Result<String, ClientError> {
    let config = agent(TIMEOUT).post(format!("http://{admin}{path}")).content_type("application/json");
    let request = config.config().timeout_global(patience).build();
    answer(admin, request.send(order.to_string()))
}

fn agent(patience: Duration) -> ureq::Agent {
    // A proxy from the environment has no business between a command and its own machine.
    let config = ureq::Agent::config_builder().timeout_global(Some(patience));
    config.http_status_as_error(false).proxy(None).build().new_agent()
}

fn answer(
    admin: &str,
    answer: Result<http::Response<ureq::Body>, ureq::Error>,
) -> Result<String, ClientError> {
    let no_answer =
        |source: ureq::Error| ClientError::NoAnswer { admin: admin.into(), source: Box::new(source) };
    let mut answer = answer.map_err(no_answer)?;
    let status = answer.status().as_u16();
    let body = answer.body_mut().with_config().limit(LARGEST_ANSWER).read_to_string().map_err(no_answer)?;
    if status == 200 {
        return Ok(body);
    }
    let refusal = serde_json::from_str::<Value>(&body).unwrap_or_default();
    let detail = refusal["detail"].as_str().map_or(body, str::to_owned);
    let admin = admin.into();
    Err(match refusal["code"].as_str() {
        Some(INVALID_CONFIG) => ClientError::InvalidConfig { admin, detail },
        _ => ClientError::Refused { admin, status, detail },
    })
}

pub(super) fn read<T: DeserializeOwned>(admin: &str, answer: &str) -> Result<T, ClientError> {
    serde_json::from_str(answer).map_err(|source| ClientError::Strange { admin: admin.into(), source })
}

pub(super) fn pretty(admin: &str, answer: &str) -> Result<String, ClientError> {
    let value: Value = read(admin, answer)?;
    Ok(format!("{value:#}"))
}
