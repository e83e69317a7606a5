//! What `check` prints: the configuration as the gateway understands it.

use std::{
    fmt::{self, Write},
    time::Duration,
};

use super::{
    model::{Config, GatewaySettings, Launch, ServerConfig, ServerSettings},
    process,
};

/// A readable summary: each server with its kind, front address, workers, how they are started, and every setting
/// that differs from its default; then what is left to Gym. The session secret is not shown.
pub fn describe(config: &Config) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_config(&mut out, config);
    out
}

fn write_config(out: &mut String, config: &Config) -> fmt::Result {
    let count = config.servers.len();
    let admin =
        config.gateway.admin.map_or("no admin address".into(), |admin| format!("admin address {admin}"));
    writeln!(out, "{count} server{}, {admin}", if count == 1 { "" } else { "s" })?;
    differing(out, "  ", &gateway_rows(&config.gateway), &gateway_rows(&GatewaySettings::default()))?;
    for server in &config.servers {
        write_server(out, server)?;
    }
    if !config.left_to_gym.is_empty() {
        writeln!(out, "\nleft to Gym (no port, or composed by Gym): {}", config.left_to_gym.join(", "))?;
    }
    Ok(())
}

fn write_server(out: &mut String, server: &ServerConfig) -> fmt::Result {
    let workers = server.num_workers;
    let (name, kind) = (&server.name, server.kind.key());
    let plural = if workers == 1 { "" } else { "s" };
    writeln!(out, "\n{name} ({kind}) on {}, {workers} worker{plural}", server.listen.written)?;
    if let Some(file) = &server.file {
        writeln!(out, "  from      {}", file.display())?;
    }
    let env = match &server.launch {
        Launch::NemoGym { python, directory, entrypoint, env, .. } => {
            writeln!(out, "  starts    {} {}", python.display(), entrypoint.display())?;
            writeln!(out, "  in        {}", directory.display())?;
            env
        }
        Launch::Command { argv, directory, env, .. } => {
            writeln!(out, "  starts    {}", argv.join(" "))?;
            writeln!(out, "  in        {}", directory.display())?;
            env
        }
    };
    // Names alone: values may be secrets.
    let names: Vec<_> =
        env.keys().chain(server.settings.process.variables_in_files.keys()).cloned().collect();
    if !names.is_empty() {
        writeln!(out, "  with      {}", names.join(", "))?;
    }
    differing(out, "  ", &server_rows(&server.settings), &server_rows(&ServerSettings::of(server.kind)))
}

type Row = (&'static str, String);

fn differing(out: &mut String, indent: &str, rows: &[Row], defaults: &[Row]) -> fmt::Result {
    for ((key, value), (_, default)) in rows.iter().zip(defaults).filter(|(row, default)| row != default) {
        writeln!(out, "{indent}{key}: {value} (default: {default})")?;
    }
    Ok(())
}

fn seconds(duration: Duration) -> String {
    duration.as_secs_f64().to_string()
}

fn gateway_rows(settings: &GatewaySettings) -> Vec<Row> {
    vec![
        ("threads", settings.threads.to_string()),
        ("shutdown_timeout_seconds", seconds(settings.shutdown_timeout)),
        ("worker_stop_timeout_seconds", seconds(settings.worker_stop_timeout)),
        ("max_buffered_bytes", settings.max_buffered_bytes.to_string()),
        ("access_log", settings.access_log.to_string()),
    ]
}

fn server_rows(settings: &ServerSettings) -> Vec<Row> {
    let reason = match settings.multiple_workers_unsupported_reason.as_deref() {
        None => "what the server says".into(),
        Some("") => "none".into(),
        Some(reason) => reason.to_owned(),
    };
    let secret = if settings.session_secret.is_some() { "given" } else { "the cookie's name" };
    let describe = settings.describe.is_some();
    let mut rows = vec![
        ("describe", describe.to_string()),
        ("session_cookie", settings.session_cookie.clone().unwrap_or_else(|| "by the kind".into())),
        ("session_secret", secret.into()),
        ("protocol", settings.protocol.unwrap_or_default().to_string()),
        ("session_start_routes", format!("[{}]", settings.session_start_routes.join(", "))),
        ("session_end_routes", format!("[{}]", settings.session_end_routes.join(", "))),
        ("routes_sessions_to_owner", settings.routes_sessions_to_owner.to_string()),
        ("multiple_workers_unsupported_reason", reason),
        ("session_close_retry_window_seconds", seconds(settings.session_close_retry_window)),
        ("session_idle_timeout_seconds", seconds(settings.session_idle_timeout)),
        ("lost_session_retention_seconds", seconds(settings.lost_session_retention)),
        ("max_lost_sessions", settings.max_lost_sessions.to_string()),
        (
            "max_sessions_per_worker",
            settings.max_sessions_per_worker.map_or("no limit".into(), |n| n.to_string()),
        ),
        ("max_naming_body_bytes", settings.max_naming_body_bytes.to_string()),
        ("queue_timeout_seconds", seconds(settings.queue_timeout)),
        ("start_timeout_seconds", seconds(settings.start_timeout)),
        ("worker_timeout_seconds", settings.worker_timeout.map_or("no limit".into(), seconds)),
        ("worker_idle_timeout_seconds", seconds(settings.worker_idle_timeout)),
        ("client_idle_timeout_seconds", seconds(settings.client_idle_timeout)),
        ("restart_backoff_seconds", seconds(settings.restart_backoff)),
        ("restart_backoff_max_seconds", seconds(settings.restart_backoff_max)),
        ("max_start_failures", settings.max_start_failures.to_string()),
        ("failed_retry_seconds", seconds(settings.failed_retry)),
        ("drain_timeout_seconds", settings.drain_timeout.map_or("0".into(), seconds)),
        ("max_surge", settings.max_surge.to_string()),
    ];
    rows.extend(settings.limits.rows());
    rows.extend(settings.elastic.rows());
    rows.extend(process::rows(&settings.process));
    rows
}
