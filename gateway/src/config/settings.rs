//! The scalar settings: the gateway's own, and each server's.

use std::{net::SocketAddr, time::Duration};

use super::{
    Protocol, elastic,
    interpolate::reread,
    limits, listen,
    model::{GatewaySettings, Kind, LeftOpen, ServerSettings},
    process,
    section::{Section, Zero},
    yaml::Value,
};

/// Reads the `gateway` block, but for `servers`.
pub(crate) fn gateway(section: &Section<'_>) -> GatewaySettings {
    let default = GatewaySettings::default();
    if let Some(choice) = section.text("on_gateway_death") {
        match choice.as_str() {
            "kill" => {}
            "keep" => section.complain(
                "on_gateway_death",
                "this version cannot keep workers for the next gateway yet: leave the key out, workers are killed",
            ),
            other => section.complain("on_gateway_death", format!("expected kill, got the text {other:?}")),
        }
    }
    GatewaySettings {
        admin: admin(section).unwrap_or(default.admin),
        threads: section.whole("threads", 1..=1024).map_or(default.threads, |n| n as usize),
        shutdown_timeout: section
            .seconds("shutdown_timeout_seconds", Zero::Allowed)
            .unwrap_or(default.shutdown_timeout),
        worker_stop_timeout: section
            .seconds("worker_stop_timeout_seconds", Zero::Allowed)
            .unwrap_or(default.worker_stop_timeout),
        max_buffered_bytes: bytes(section, "max_buffered_bytes").unwrap_or(default.max_buffered_bytes),
        access_log: section.flag("access_log").unwrap_or(default.access_log),
    }
}

/// `off` is a truth value to YAML.
fn admin(section: &Section<'_>) -> Option<Option<SocketAddr>> {
    let node = reread(section.node("admin")?);
    let text = match node.value {
        Value::Bool(false) => return Some(None),
        Value::Text(text) => text,
        _ => {
            section.complain(
                "admin",
                format!("expected host:port, like 127.0.0.1:9090, or off, got {}", node.seen()),
            );
            return None;
        }
    };
    match listen::parse(&text) {
        Ok(listen) => Some(Some(listen.address)),
        Err(why) => {
            section.complain("admin", why);
            None
        }
    }
}

/// Reads a server's settings. The close-retry window stands elsewhere for NeMo Gym servers, so it is given.
pub(crate) fn server(section: &Section<'_>, kind: Kind, close_retry: Option<Duration>) -> ServerSettings {
    let default = ServerSettings::of(kind);
    let duration = |key, zero, default| section.seconds(key, zero).unwrap_or(default);
    let settings = ServerSettings {
        describe: describe(section),
        session_cookie: cookie_name(section),
        session_secret: section.text("session_secret"),
        protocol: protocol(section),
        session_start_routes: routes(section, "session_start_routes"),
        session_end_routes: routes(section, "session_end_routes"),
        routes_sessions_to_owner: section.flag("routes_sessions_to_owner").unwrap_or(true),
        multiple_workers_unsupported_reason: section.any_text("multiple_workers_unsupported_reason"),
        session_close_retry_window: close_retry.unwrap_or(default.session_close_retry_window),
        session_idle_timeout: duration(
            "session_idle_timeout_seconds",
            Zero::Refused,
            default.session_idle_timeout,
        ),
        lost_session_retention: duration(
            "lost_session_retention_seconds",
            Zero::Refused,
            default.lost_session_retention,
        ),
        max_lost_sessions: section
            .whole("max_lost_sessions", 1..=1 << 40)
            .unwrap_or(default.max_lost_sessions),
        max_sessions_per_worker: section
            .whole("max_sessions_per_worker", 1..=1 << 32)
            .and_then(|n| usize::try_from(n).ok()),
        max_naming_body_bytes: bytes(section, "max_naming_body_bytes")
            .unwrap_or(default.max_naming_body_bytes),
        queue_timeout: duration("queue_timeout_seconds", Zero::Allowed, default.queue_timeout),
        start_timeout: duration("start_timeout_seconds", Zero::Refused, default.start_timeout),
        worker_timeout: section.seconds("worker_timeout_seconds", Zero::Refused),
        worker_idle_timeout: duration(
            "worker_idle_timeout_seconds",
            Zero::Allowed,
            default.worker_idle_timeout,
        ),
        client_idle_timeout: duration(
            "client_idle_timeout_seconds",
            Zero::Refused,
            default.client_idle_timeout,
        ),
        restart_backoff: duration("restart_backoff_seconds", Zero::Refused, default.restart_backoff),
        restart_backoff_max: duration(
            "restart_backoff_max_seconds",
            Zero::Refused,
            default.restart_backoff_max,
        ),
        max_start_failures: section
            .whole("max_start_failures", 0..=u64::from(u32::MAX))
            .and_then(|n| u32::try_from(n).ok())
            .unwrap_or(default.max_start_failures),
        failed_retry: duration("failed_retry_seconds", Zero::Refused, default.failed_retry),
        drain_timeout: section
            .seconds("drain_timeout_seconds", Zero::Allowed)
            .map_or(default.drain_timeout, |limit| (!limit.is_zero()).then_some(limit)),
        max_surge: section.whole("max_surge", 1..=1024).map_or(default.max_surge, |n| n as usize),
        limits: limits::read(section),
        elastic: elastic::read(section),
        process: process::read(section),
    };
    if settings.restart_backoff > settings.restart_backoff_max {
        let (first, longest) =
            (settings.restart_backoff.as_secs_f64(), settings.restart_backoff_max.as_secs_f64());
        let key = if section.has("restart_backoff_max_seconds") {
            "restart_backoff_max_seconds"
        } else {
            "restart_backoff_seconds"
        };
        section.complain(key, format!("the first wait, {first} s, is longer than the longest, {longest} s"));
    }
    settings
}

fn describe(section: &Section<'_>) -> Option<LeftOpen> {
    let asked = section.flag("describe")?;
    if asked && !section.has("command") {
        section.complain(
            "describe",
            "stands without a `command`, and only a command can be asked: leave it out",
        );
    }
    asked.then(|| LeftOpen {
        kind: false,
        session_start_routes: !section.has("session_start_routes"),
        session_end_routes: !section.has("session_end_routes"),
        routes_sessions_to_owner: !section.has("routes_sessions_to_owner"),
    })
}

fn protocol(section: &Section<'_>) -> Option<Protocol> {
    let said = section.text("protocol")?;
    said.parse().map_err(|why| section.complain("protocol", why)).ok()
}

fn bytes(section: &Section<'_>, key: &str) -> Option<usize> {
    section.whole(key, 1..=1 << 40).and_then(|bytes| usize::try_from(bytes).ok())
}

/// Whether a cookie may have this name: RFC 6265 makes it a token.
pub(crate) fn is_cookie_name(name: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(token)
}

fn cookie_name(section: &Section<'_>) -> Option<String> {
    let name = section.text("session_cookie")?;
    if is_cookie_name(&name) {
        return Some(name);
    }
    let what = format!("{name:?} cannot be a cookie's name: letters, digits and !#$%&'*+-.^_`|~ only");
    section.complain("session_cookie", what);
    None
}

fn routes(section: &Section<'_>, key: &str) -> Vec<String> {
    let routes = section.texts(key).unwrap_or_default();
    for route in routes.iter().filter(|route| !is_route(route)) {
        section.complain(key, format!("expected paths that begin with `/`, without a query, got {route:?}"));
    }
    routes
}

/// Whether this is a path without a query.
pub(crate) fn is_route(route: &str) -> bool {
    route.starts_with('/') && !route.contains(['?', '#', ' '])
}
