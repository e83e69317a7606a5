//! Front addresses: parsed, resolved, and checked against each other.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use super::model::Listen;

/// A host from the config (`::1` and `[::1]` are the same) and a port.
pub(crate) fn host_port(host: &str, port: u16) -> Result<Listen, String> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let written = if bare.contains(':') { format!("[{bare}]:{port}") } else { format!("{bare}:{port}") };
    Ok(Listen { address: resolve(bare, port)?, written })
}

/// `127.0.0.1:8000`, `localhost:0`, `[::1]:8000`.
pub(crate) fn parse(text: &str) -> Result<Listen, String> {
    let shape = || format!("expected host:port, like 127.0.0.1:8000 or [::1]:8000, got the text {text:?}");
    let (host, port) = text.rsplit_once(':').ok_or_else(shape)?;
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if host.is_empty() || (bare.is_none() && host.contains(':')) {
        return Err(shape());
    }
    let port = port.parse().map_err(|_| shape())?;
    host_port(host, port)
}

/// The first IPv4 address of a name, else its first: `localhost` is 127.0.0.1 to most clients.
fn resolve(host: &str, port: u16) -> Result<SocketAddr, String> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let found = (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("the host {host:?} has no address: {error}"))?;
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| format!("the host {host:?} has no address"))
}

/// Whether both cannot be bound at once. `0.0.0.0` and `::` take the port on every address.
pub(crate) fn clash(a: SocketAddr, b: SocketAddr) -> bool {
    let everywhere = a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() != 0 && a.port() == b.port() && (a.ip() == b.ip() || everywhere)
}
