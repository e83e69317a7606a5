//! One core: a single-threaded runtime with its own client and worker connections.

use std::{
    cell::Cell,
    convert::Infallible,
    future::{Future, poll_fn},
    net::{SocketAddr, TcpStream as StdTcpStream},
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use http::{Request, Response, Version, header::EXPECT};
use hyper::{body::Incoming, service::service_fn, upgrade::OnUpgrade};
use hyper_util::{rt::TokioIo, server::conn::auto};
use tokio::{net::TcpStream, sync::mpsc, time::MissedTickBehavior};

use super::{
    Refusal,
    body::RequestBody,
    client_io::{ClientIo, Unread},
    connections::{Connections, Order, Requests},
    exchange::Exchange,
    headers::Peer,
    observe::{Account, CoreObserver},
    places::Place,
    pool::Pool,
    reply::ReplyBody,
    state::{ServerState, Shared},
};

/// How long clients have to take the answer to a request that the stop has cut.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How often idle connections are looked over.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A client's connection, dealt to a core.
pub(super) struct Accepted {
    pub(super) stream: StdTcpStream,
    pub(super) peer: SocketAddr,
    pub(super) server: Arc<ServerState>,
    /// Given back when the connection ends.
    pub(super) place: Place,
}

/// The acceptor's end of a core.
#[derive(Clone, Debug)]
pub(super) struct CoreHandle {
    sender: mpsc::UnboundedSender<Accepted>,
    connections: Arc<AtomicUsize>,
}

impl CoreHandle {
    /// Starts a core on a thread of its own.
    ///
    /// # Errors
    /// If the thread or its runtime cannot be made.
    pub(super) fn start(
        number: usize,
        shared: Arc<Shared>,
        servers: Vec<Arc<ServerState>>,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = connections.clone();
        let runtime_ready = std::sync::mpsc::channel();
        std::thread::Builder::new().name(format!("core-{number}")).spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
            match runtime {
                Ok(runtime) => {
                    let _ = runtime_ready.0.send(Ok(()));
                    let running = shared.stop.cores.token();
                    runtime.block_on(run(receiver, shared, servers, counter));
                    // Not dropped: that waits for threads which wait for a worker's full accept queue, maybe for ever.
                    runtime.shutdown_background();
                    drop(running);
                }
                Err(error) => {
                    let _ = runtime_ready.0.send(Err(error));
                }
            }
        })?;
        runtime_ready.1.recv().map_err(std::io::Error::other)??;
        Ok(Self { sender, connections })
    }

    /// Connections that the core has now.
    pub(super) fn load(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Hands a connection over; false if the core is gone.
    pub(super) fn deal(&self, accepted: Accepted) -> bool {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.sender.send(accepted).is_ok()
    }
}

/// What all connections of a core share.
pub(super) struct Core {
    pub(super) shared: Arc<Shared>,
    pub(super) pool: Pool,
    pub(super) observer: Rc<CoreObserver>,
    pub(super) connections: Rc<Connections>,
}

async fn run(
    mut accepted: mpsc::UnboundedReceiver<Accepted>,
    shared: Arc<Shared>,
    servers: Vec<Arc<ServerState>>,
    connections: Arc<AtomicUsize>,
) {
    let observer = Rc::new(CoreObserver::new(shared.observer.clone()));
    let core = Rc::new(Core { shared, pool: Pool::default(), observer, connections: Connections::new() });
    tokio::task::spawn_local(look_around(core.clone(), servers));
    tokio::task::spawn_local(end_with_the_stop(core.clone()));
    while let Some(accepted) = accepted.recv().await {
        let tracker = core.shared.stop.connections.clone();
        let (core, connections) = (core.clone(), connections.clone());
        tokio::task::spawn_local(tracker.track_future(async move {
            serve(core, accepted).await;
            connections.fetch_sub(1, Ordering::Relaxed);
        }));
    }
    // The acceptors are gone. What they dealt goes on until the stop is over. What is left then is cut, before the
    // workers are stopped, whose last words are no replies: requests without a reply get one of the gateway's own, and
    // the rest ends with this runtime.
    let stop = &core.shared.stop;
    tokio::select! {
        () = stop.connections.wait() => {}
        () = stop.cut.cancelled() => {
            core.connections.cut_all();
            let _ = tokio::time::timeout(LAST_WORDS, stop.connections.wait()).await;
        }
    }
}

async fn look_around(core: Rc<Core>, servers: Vec<Arc<ServerState>>) {
    let mut every = tokio::time::interval(LOOK_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        core.connections.close_idle();
        core.pool.prune(|server| {
            servers.get(server).map_or(Duration::ZERO, |s| s.config.settings.worker_idle_timeout)
        });
    }
}

async fn end_with_the_stop(core: Rc<Core>) {
    core.shared.stop.begun.cancelled().await;
    core.connections.end_all();
}

/// One client connection, and what its requests need of it.
struct Client {
    core: Rc<Core>,
    server: Arc<ServerState>,
    peer: Peer,
    unread: Unread,
    requests: Requests,
}

async fn serve(core: Rc<Core>, Accepted { stream, peer, server, place: _place }: Accepted) {
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%error, "a client's connection could not be used"),
    };
    let _connected = server.connections.enter();
    let entered = core.connections.enter(server.config.settings.client_idle_timeout);
    let unread = Unread::default();
    let io = ClientIo::new(stream, unread.clone());
    let client =
        Rc::new(Client { core, server, peer: Peer::new(peer), unread, requests: entered.requests() });
    let service = service_fn(move |request| handle(client.clone(), request));
    // Without timers: `Connections` closes what is idle.
    let builder = auto::Builder::new(Local);
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(io), service));
    let mut is_ending = false;
    let ended = poll_fn(|cx| {
        match entered.order(cx) {
            Order::Serve => {}
            Order::End | Order::Cut if is_ending => {}
            Order::End | Order::Cut => {
                is_ending = true;
                connection.as_mut().graceful_shutdown();
            }
            Order::Close => return Poll::Ready(Ok(())),
        }
        connection.as_mut().poll(cx)
    })
    .await;
    if let Err(error) = ended {
        // A client that left, an idle one that was closed, rubbish that hyper has answered: nothing to mend here.
        tracing::debug!(%error, "a client's connection ended");
    }
}

async fn handle(client: Rc<Client>, request: Request<Incoming>) -> Result<Response<ReplyBody>, Infallible> {
    let Client { core, server, peer, unread, requests } = &*client;
    let (mut parts, incoming) = request.into_parts();
    let route = server.rule.route(&parts.method, parts.uri.path());
    let account =
        Account::open(&core.observer, server, route.class, &parts.method, parts.uri.path(), requests.enter());
    let expects_continue = parts.headers.contains_key(EXPECT);
    let body = RequestBody::new(incoming, expects_continue, core.shared.budget.clone(), unread.clone());
    let upgrade = parts.extensions.remove::<OnUpgrade>();
    let is_http1 = parts.version < Version::HTTP_2;
    let now = Cell::new(account.started());
    let exchange = Exchange { core, server, route, body: &body, account: &account, now };
    let ended = {
        let mut run = pin!(exchange.run(parts, peer, upgrade));
        poll_fn(
            |cx| if requests.are_cut() { Poll::Ready(Err(Refusal::Stopping)) } else { run.as_mut().poll(cx) },
        )
        .await
    };
    let refusal = match ended {
        Ok(response) => return Ok(response),
        Err(refusal) => refusal,
    };
    let whole = !requests.are_cut() && body.discard().await;
    let (parts, own) = refusal.reply(server.config.kind, is_http1 && !whole).into_parts();
    account.refused(&refusal);
    Ok(Response::from_parts(parts, ReplyBody::own(own, account)))
}

/// Spawns on the core that asks.
#[derive(Clone, Copy, Debug)]
struct Local;

impl<F> hyper::rt::Executor<F> for Local
where
    F: Future<Output = ()> + 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
