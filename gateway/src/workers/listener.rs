//! Who listens on a port.

use std::{collections::HashSet, io, net::SocketAddr, path::Path};

use nix::unistd::Pid;
use procfs::net::{TcpNetEntry, TcpState};

use crate::keeper;

/// Whether a process of the tree below `keeper` listens where a connection to `address` arrives. Reads `/proc`; blocks.
///
/// A port could be taken by a stranger between its reservation and the worker's start; sessions must not go there.
///
/// # Errors
/// The system's, if `/proc` cannot be read.
pub(crate) fn is_own(address: SocketAddr, keeper: i32) -> io::Result<bool> {
    let sockets: HashSet<u64> = listeners(address)?;
    let tree = keeper::tree_of(Pid::from_raw(keeper))?;
    Ok(tree.into_iter().any(|pid| holds(pid, &sockets)))
}

/// The inodes of the sockets that may take a connection to `address`.
fn listeners(address: SocketAddr) -> io::Result<HashSet<u64>> {
    let mut entries = procfs::net::tcp().map_err(io::Error::other)?;
    // A kernel without IPv6 has no such table.
    entries.extend(procfs::net::tcp6().unwrap_or_default());
    let takes = |entry: &TcpNetEntry| {
        let ip = entry.local_address.ip().to_canonical();
        entry.state == TcpState::Listen
            && entry.local_address.port() == address.port()
            && (ip == address.ip() || ip.is_unspecified())
    };
    Ok(entries.into_iter().filter(takes).map(|entry| entry.inode).collect())
}

fn holds(pid: Pid, sockets: &HashSet<u64>) -> bool {
    // One that ended meanwhile, or may not be looked into, is not known to hold anything.
    let Ok(fds) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    fds.flatten()
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .any(|link| inode(&link).is_some_and(|inode| sockets.contains(&inode)))
}

/// From `socket:[INODE]`.
fn inode(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_belongs_to_the_tree_of_its_process() {
        let me = nix::unistd::getpid().as_raw();
        for bound in ["127.0.0.1:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(bound).unwrap();
            let address = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
            assert!(is_own(address, me).unwrap(), "{bound}");
            assert!(is_own(address, nix::unistd::getppid().as_raw()).unwrap());
            let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
            assert!(!is_own(address, stranger.id().cast_signed()).unwrap());
            stranger.kill().unwrap();
            stranger.wait().unwrap();
            drop(listener);
            assert!(!is_own(address, me).unwrap());
        }
    }

    #[test]
    fn a_listener_elsewhere_is_not_the_one() {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
        assert!(!is_own(address, nix::unistd::getpid().as_raw()).unwrap());
    }
}
