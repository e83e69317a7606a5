//! The log: to stderr, for people or for machines.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use super::args::LogFormat;

/// What is logged unless `GYM_GATEWAY_LOG` says otherwise (pingora speaks of every service that it starts).
const DEFAULT_FILTER: &str = "info,pingora=warn,pingora_core=warn";

/// Starts the log. `GYM_GATEWAY_LOG` holds a filter of `tracing-subscriber`'s form, such as `debug`.
pub(super) fn start(format: LogFormat) {
    let filter = std::env::var("GYM_GATEWAY_LOG").unwrap_or_else(|_| DEFAULT_FILTER.into());
    let (filter, problem) = match filter.parse::<EnvFilter>() {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(DEFAULT_FILTER), Some(error)),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    if let Some(error) = problem {
        tracing::warn!(%error, "GYM_GATEWAY_LOG is not a filter; the default is used");
    }
}
