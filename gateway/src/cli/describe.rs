//! Servers that describe themselves: asked before anything else runs, so that all that follows knows their sessions.

use std::{path::Path, sync::Arc};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::stop::Signals;
use crate::{
    config::{Description, Protocol, ServerConfig},
    workers,
};

/// What came of asking.
pub(super) enum Heard {
    /// Every server that was to be asked has answered; the configs are settled.
    All,
    /// One cannot be started as it is: why.
    Failed(String),
    /// The gateway was told to stop meanwhile.
    Stopped,
}

/// Asks the servers that are to describe themselves, at the same time, and settles their configs.
pub(super) fn settle(
    servers: &mut [ServerConfig],
    binary: &Path,
    signals: &Signals,
) -> std::io::Result<Heard> {
    if servers.iter().all(|server| server.settings.describe.is_none()) {
        return Ok(Heard::All);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let mut asking = std::pin::pin!(settle_all(servers, binary, &stop));
        tokio::select! {
            heard = &mut asking => Ok(heard.map_or_else(Heard::Failed, |()| Heard::All)),
            () = signals.terminated() => {
                stop.cancel();
                // What they say now is of no interest; that nothing of them is left is.
                let _ = asking.await;
                Ok(Heard::Stopped)
            }
        }
    })
}

/// Asks and settles, until `stop`.
///
/// # Errors
/// What is wrong with the first that cannot be started as it is.
pub(super) async fn settle_all(
    servers: &mut [ServerConfig],
    binary: &Path,
    stop: &CancellationToken,
) -> Result<(), String> {
    let mut asked = JoinSet::new();
    for (index, server) in servers.iter().enumerate() {
        if server.settings.describe.is_some() {
            let (server, binary, stop) = (Arc::new(server.clone()), binary.to_owned(), stop.clone());
            asked.spawn(async move { (index, workers::describe(&server, &binary, &stop).await) });
        }
    }
    let mut first = Ok(());
    while let Some(answer) = asked.join_next().await {
        let settled = match answer {
            Ok((index, Ok(told))) => take(&mut servers[index], &told),
            Ok((_, Err(error))) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if settled.is_err() {
            // The others end before this returns.
            stop.cancel();
        }
        first = first.and(settled);
    }
    first
}

/// Takes over what a server has said, and logs what became of it.
fn take(server: &mut ServerConfig, told: &Description) -> Result<(), String> {
    for overruled in settled(server, told)? {
        tracing::warn!(server = server.name, "{overruled}");
    }
    tracing::info!(server = server.name, "the server has described itself: {}", summary(server));
    Ok(())
}

/// Takes over what a server has said. Returns what the config overrules.
///
/// # Errors
/// What does not go together, in words.
pub(super) fn settled(server: &mut ServerConfig, told: &Description) -> Result<Vec<String>, String> {
    // The workers inherit the variable.
    let secret = std::env::var("GYM_SESSION_SECRET").ok();
    server.settle(told, secret).map_err(|error| error.to_string())
}

/// What holds for a server's sessions, in a line.
pub(super) fn summary(server: &ServerConfig) -> String {
    let settings = &server.settings;
    let mut parts = vec![format!("kind {}", server.kind)];
    parts.extend(settings.session_cookie.as_ref().map(|name| format!("session cookie {name}")));
    let protocol = settings.protocol.filter(|it| *it != Protocol::Both);
    parts.extend(protocol.map(|protocol| format!("protocol {protocol}")));
    for (routes, what) in
        [(&settings.session_start_routes, "started"), (&settings.session_end_routes, "ended")]
    {
        if !routes.is_empty() {
            parts.push(format!("sessions also {what} by {}", routes.join(", ")));
        }
    }
    if !settings.routes_sessions_to_owner {
        parts.push("every request balanced".into());
    }
    parts.join("; ")
}
