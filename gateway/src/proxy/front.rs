//! The front addresses: one service owns them all, and opens and closes them while it runs.

use std::{net::TcpListener as StdTcpListener, sync::Arc, time::Duration};

use async_trait::async_trait;
use nix::sys::socket::{setsockopt, sockopt};
use pingora::{
    server::{ListenFds, ShutdownWatch},
    services::Service,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};

use super::{
    core::{Accepted, CoreHandle},
    state::{ServerState, Shared},
};
use crate::config::ServerConfig;

/// How long the acceptor rests when the process has no file descriptor left: only another's end can free one.
const OUT_OF_FILES: Duration = Duration::from_millis(100);

/// A bound front address and the server behind it.
#[derive(Debug)]
pub struct Address {
    /// What [`bind`] gave: not `SO_REUSEPORT`, so that a second gateway on the same port is an error.
    pub listener: StdTcpListener,
    /// The server.
    pub server: Arc<ServerState>,
}

/// Binds a server's front address, and begins to queue its clients.
///
/// # Errors
/// The operating system's; the message names the server and the address.
pub fn bind(server: &ServerConfig) -> std::io::Result<StdTcpListener> {
    let listen = &server.listen;
    let listener = StdTcpListener::bind(listen.address).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                ": another process listens there; stop it or choose another port"
            }
            std::io::ErrorKind::PermissionDenied => ": ports below 1024 need root",
            _ => "",
        };
        let what = format!("server {}: cannot listen on {}: {error}{hint}", server.name, listen.written);
        std::io::Error::new(error.kind(), what)
    })?;
    listener.set_nonblocking(true)?;
    notice_the_vanished(&listener)?;
    Ok(listener)
}

/// Ends connections whose client went without a word (its machine, the network between) within two minutes: a body
/// that stops half-way would hold its memory, and a silent tunnel its session, for ever. Accepted sockets inherit it.
fn notice_the_vanished(listener: &StdTcpListener) -> std::io::Result<()> {
    setsockopt(listener, sockopt::KeepAlive, &true)?;
    setsockopt(listener, sockopt::TcpKeepIdle, &60)?;
    setsockopt(listener, sockopt::TcpKeepInterval, &15)?;
    setsockopt(listener, sockopt::TcpKeepCount, &4)?;
    Ok(())
}

/// The service that owns all front addresses.
#[derive(Debug)]
pub struct Front {
    addresses: mpsc::UnboundedReceiver<Address>,
    opener: Opener,
    cores: Vec<CoreHandle>,
    shared: Arc<Shared>,
}

/// Opens front addresses while the gateway runs. Each is closed when its server's `closed` is cancelled.
#[derive(Clone, Debug)]
pub struct Opener(mpsc::UnboundedSender<Address>);

impl Opener {
    /// Begins to accept at this address.
    pub fn open(&self, address: Address) {
        // Without a front the gateway is stopping, and the address closes with what is dropped here.
        let _ = self.0.send(address);
    }
}

impl Front {
    /// Starts `threads` cores for these addresses.
    ///
    /// # Errors
    /// If a thread or its runtime cannot be made.
    pub fn new(addresses: Vec<Address>, threads: usize, shared: Arc<Shared>) -> std::io::Result<Self> {
        let cores = (0..threads.max(1))
            .map(|number| CoreHandle::start(number, shared.clone()))
            .collect::<Result<_, _>>()?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let opener = Opener(sender);
        addresses.into_iter().for_each(|address| opener.open(address));
        Ok(Self { addresses: receiver, opener, cores, shared })
    }

    /// Opens more addresses, now or when the front runs.
    pub fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

#[async_trait]
impl Service for Front {
    async fn start_service(&mut self, _fds: Option<ListenFds>, _shutdown: ShutdownWatch, _listeners: usize) {
        let mut acceptors = JoinSet::new();
        let begun = self.shared.stop.begun.clone();
        loop {
            tokio::select! {
                biased;
                () = begun.cancelled() => break,
                Some(address) = self.addresses.recv() => {
                    acceptors.spawn(accept(address, self.cores.clone(), self.shared.clone()));
                }
                Some(ended) = acceptors.join_next() => tell(ended),
            }
        }
        self.addresses.close();
        while let Some(ended) = acceptors.join_next().await {
            tell(ended);
        }
    }

    fn name(&self) -> &'static str {
        "front"
    }

    fn threads(&self) -> Option<usize> {
        Some(1)
    }
}

fn tell(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an acceptor ended");
    }
}

/// Accepts until the stop begins or the server is gone, then closes the address.
async fn accept(Address { listener, server }: Address, cores: Vec<CoreHandle>, shared: Arc<Shared>) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            return tracing::error!(server = server.name, %error, "cannot accept connections");
        }
    };
    loop {
        let next = async {
            let place = shared.places.take(&server.name).await;
            listener.accept().await.map(|accepted| (accepted, place))
        };
        let accepted = tokio::select! {
            biased;
            () = shared.stop.begun.cancelled() => return,
            () = server.closed.cancelled() => return,
            accepted = next => accepted,
        };
        match accepted.and_then(|((stream, peer), place)| Ok((plain(stream)?, peer, place))) {
            Ok((stream, peer, place)) => {
                let core = cores.iter().min_by_key(|core| core.load());
                let accepted = Accepted { stream, peer, server: server.clone(), place };
                let dealt = core.is_some_and(|core| core.deal(accepted));
                if !dealt {
                    tracing::error!(server = server.name, "a core is gone; its connection is closed");
                }
            }
            Err(error) if is_shortage(&error) => {
                tracing::error!(server = server.name, %error, "cannot accept; raise the limit of open files");
                tokio::time::sleep(OUT_OF_FILES).await;
            }
            // The client left while it stood in the queue.
            Err(error) => tracing::debug!(server = server.name, %error, "accept"),
        }
    }
}

/// A socket that belongs to no runtime yet.
fn plain(stream: TcpStream) -> std::io::Result<std::net::TcpStream> {
    stream.set_nodelay(true)?;
    stream.into_std()
}

fn is_shortage(error: &std::io::Error) -> bool {
    use nix::errno::Errno;
    matches!(
        error.raw_os_error().map(Errno::from_raw),
        Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM)
    )
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::getsockopt;

    use super::*;

    #[test]
    fn accepted_sockets_inherit_the_watch_for_the_vanished() {
        let listener = StdTcpListener::bind("127.0.0.1:0").unwrap();
        notice_the_vanished(&listener).unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert!(getsockopt(&accepted, sockopt::KeepAlive).unwrap());
        let times = (
            getsockopt(&accepted, sockopt::TcpKeepIdle).unwrap(),
            getsockopt(&accepted, sockopt::TcpKeepInterval).unwrap(),
            getsockopt(&accepted, sockopt::TcpKeepCount).unwrap(),
        );
        assert_eq!(times, (60, 15, 4));
    }
}
