//! Where workers listen.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use tokio::net::TcpSocket;

/// Where a worker listens; belongs to one generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket, in a folder that only the gateway's user may enter.
    Unix(PathBuf),
    /// A port of the loopback interface.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}

/// Where one worker was told to listen: a socket, a port, or whichever of the two it chooses. Dropped when the process
/// is gone, which removes the socket.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) socket: Option<PathBuf>,
    pub(crate) port: Option<ReservedPort>,
}

/// A free loopback port, kept from everyone who does not ask for the very same: bound, not listening.
///
/// Linux lets the worker bind it too, for both set `SO_REUSEADDR` and only one listens.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    pub(crate) address: SocketAddr,
    _held: TcpSocket,
}

impl ReservedPort {
    pub(crate) fn new() -> io::Result<Self> {
        let held = TcpSocket::new_v4()?;
        held.set_reuseaddr(true)?;
        held.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        Ok(Self { address: held.local_addr()?, _held: held })
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.socket.as_deref().map(std::fs::remove_file)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove the socket at {self}: {error}");
        }
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.socket, &self.port) {
            (Some(socket), Some(port)) => write!(f, "{} or {}", socket.display(), port.address),
            (Some(socket), None) => write!(f, "{}", socket.display()),
            (None, Some(port)) => write!(f, "{}", port.address),
            (None, None) => f.write_str("nowhere"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_can_be_listened_on_with_reuse_and_is_given_out_once() {
        let ports: Vec<_> = (0..50).map(|_| ReservedPort::new().unwrap()).collect();
        let mut numbers: Vec<_> = ports.iter().map(|port| port.address.port()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 50);
        // The standard library's listener sets SO_REUSEADDR, as nearly all servers do.
        let listener = std::net::TcpListener::bind(ports[0].address).unwrap();
        drop(listener);
    }
}
