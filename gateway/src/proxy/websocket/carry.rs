//! Carries a WebSocket: between client and worker while there is one, then alone.

use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    mem::MaybeUninit,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::BytesMut;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf, split};

use super::{
    super::{budget::Held, forward, observe::Account, settle::Settlement, state::Shared},
    alone::{Alone, Progress},
    downstream::{Downstream, Heard},
    upstream::Upstream,
};
use crate::session::{Channel, Said, SessionId};

const CHUNK: usize = 16 * 1024;

/// How long a client may take to answer a close.
const GOODBYE: Duration = Duration::from_secs(10);

/// A WebSocket to carry: both ends have agreed.
pub(in super::super) struct Socket {
    pub(in super::super) channel: Channel,
    pub(in super::super) client: OnUpgrade,
    pub(in super::super) worker: OnUpgrade,
    pub(in super::super) settlement: Settlement,
    pub(in super::super) account: Rc<Account>,
    pub(in super::super) shared: std::sync::Arc<Shared>,
}

/// How the carrying ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// As it should: a close or an end was passed on.
    Passed,
    /// The worker has gone, or goes, and its session with it.
    WorkerGone,
}

impl Socket {
    /// Carries until both sides have ended, or the gateway's stop cuts it. The request is settled when its session ends.
    pub(in super::super) async fn run(self) {
        let cut = self.shared.stop.cut.clone();
        let account = self.account.clone();
        let ended = tokio::select! {
            biased;
            () = cut.cancelled() => Err(io::Error::other("the gateway stopped")),
            ended = self.carry() => ended,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "websocket cut");
        }
        drop(account);
    }

    async fn carry(self) -> io::Result<()> {
        let Self { channel, client, worker, settlement, account, shared } = self;
        let mut client = split(TokioIo::new(client.await.map_err(io::Error::other)?));
        let mut talk = Talk {
            channel,
            up: RefCell::new(Upstream::new(channel)),
            down: Downstream::new(Held::none(shared.budget.clone())),
            to_client: BytesMut::new(),
            settlement: RefCell::new(Some(settlement)),
        };
        let session = talk.session();
        // A worker that has gone in between is one that has said nothing.
        let end = match worker.await {
            Ok(worker) => talk.with_worker(&mut client, split(TokioIo::new(worker))).await?,
            Err(_) => End::WorkerGone,
        };
        let session = talk.session().or(session);
        let Talk { up, down, mut to_client, settlement, .. } = talk;
        match settlement.into_inner() {
            // It may have said goodbye, and not exited yet.
            Some(settlement) if end == End::WorkerGone => settlement.lost(),
            over => drop(over),
        }
        let Some(session) = session.filter(|_| end == End::WorkerGone) else { return Ok(()) };
        account.lost();
        let mut said = Vec::new();
        let alone = Alone::lost(channel, session, up.into_inner(), down.half_sent(), &mut said);
        drop(down);
        to_client.extend_from_slice(&said);
        speak(&mut client, alone, to_client).await
    }
}

/// What passes between a client and its worker.
struct Talk {
    channel: Channel,
    up: RefCell<Upstream>,
    down: Downstream,
    /// On its way to the client: kept here, so that what cuts the carrying short loses no byte of it.
    to_client: BytesMut,
    settlement: RefCell<Option<Settlement>>,
}

impl Talk {
    fn session(&self) -> Option<SessionId> {
        self.settlement.borrow().as_ref()?.session().cloned()
    }

    async fn with_worker<S>(
        &mut self,
        client: &mut (ReadHalf<S>, WriteHalf<S>),
        worker: (ReadHalf<S>, WriteHalf<S>),
    ) -> io::Result<End>
    where
        S: AsyncRead + AsyncWrite,
    {
        let known = self.settlement.borrow().as_ref().map(|settlement| settlement.worker().clone());
        let Some(process) = known else { return Ok(End::Passed) };
        let (mut from_worker, to_worker) = worker;
        let Self { channel, up, down, to_client, settlement } = self;
        let hear = |heard| hear(*channel, up, settlement, heard);
        let ended = {
            let upward = upward(&mut client.0, to_worker, up);
            let downward = downward(&mut from_worker, &mut client.1, down, to_client, &hear);
            tokio::select! {
                biased;
                // Also where its sessions are given up before it is told to end.
                () = process.exited().cancelled() => End::WorkerGone,
                ended = both(upward, downward) => match ended? {
                    Down::Leaving => return Ok(End::WorkerGone),
                    Down::Ended if forward::has_exited(&process).await => End::WorkerGone,
                    Down::Ended => End::Passed,
                    Down::Closed => return Ok(End::Passed),
                },
            }
        };
        if ended == End::WorkerGone {
            // What it said before it went is still there.
            while let Some(Ok(1..)) = read_now(&mut from_worker, |bytes| down.feed(bytes, &hear)).await {
                to_client.unsplit(down.take_ready());
            }
            if down.has_closed {
                client.1.write_all_buf(to_client).await?;
            }
        }
        if down.has_closed || ended == End::Passed {
            client.1.shutdown().await?;
            return Ok(End::Passed);
        }
        Ok(End::WorkerGone)
    }
}

/// Settles what the worker says.
fn hear(channel: Channel, up: &RefCell<Upstream>, settlement: &RefCell<Option<Settlement>>, heard: Heard) {
    match heard {
        Heard::Message(text) => {
            up.borrow_mut().answered();
            let said = text.and_then(|text| Said::in_message(channel, &text));
            if let (Some(said), Some(settlement)) = (said, settlement.borrow_mut().as_mut()) {
                settlement.said(&said);
            }
        }
        Heard::Pong => up.borrow_mut().ping = None,
        // Before the client hears it and asks for another session.
        Heard::Close => {
            if let Some(settlement) = settlement.borrow_mut().take() {
                settlement.finish(Instant::now());
            }
        }
    }
}

/// How the worker's side ended.
enum Down {
    /// With a close.
    Closed,
    /// Without one.
    Ended,
    /// It was told to end.
    Leaving,
}

/// Both ways, until the worker's side has ended.
async fn both(
    upward: impl Future<Output = io::Result<()>>,
    downward: impl Future<Output = io::Result<Down>>,
) -> io::Result<Down> {
    let mut downward = std::pin::pin!(downward);
    tokio::select! {
        biased;
        ended = &mut downward => ended,
        sent = upward => {
            sent?;
            // The client has ended: what is still to come goes to it, and no end of the worker's is a surprise.
            downward.await.map(|_| Down::Closed)
        }
    }
}

async fn upward<R, W>(from: &mut R, mut to: W, up: &RefCell<Upstream>) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        let mut bytes = BytesMut::new();
        let read = read(from, |chunk| {
            up.borrow_mut().feed(chunk);
            bytes.extend_from_slice(chunk);
        });
        if read.await? == 0 {
            return to.shutdown().await;
        }
        to.write_all_buf(&mut bytes).await?;
        to.flush().await?;
    }
}

async fn downward<R, W>(
    from: &mut R,
    to: &mut W,
    down: &mut Downstream,
    to_client: &mut BytesMut,
    hear: &impl Fn(Heard),
) -> io::Result<Down>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        // A reset is an end.
        let read = read(from, |bytes| down.feed(bytes, hear)).await.unwrap_or(0);
        to_client.unsplit(down.take_ready());
        to.write_all_buf(to_client).await?;
        to.flush().await?;
        match read {
            _ if down.has_left => return Ok(Down::Leaving),
            0 if down.has_closed => {
                to.shutdown().await?;
                return Ok(Down::Closed);
            }
            0 => return Ok(Down::Ended),
            _ => {}
        }
    }
}

/// Answers a client without a worker, until it closes; first sends what is there.
pub(super) async fn speak<R, W>(client: &mut (R, W), mut alone: Alone, mut out: BytesMut) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        client.1.write_all_buf(&mut out).await?;
        client.1.flush().await?;
        out = BytesMut::new();
        let progress = alone.progress();
        let mut said = Vec::new();
        let read = {
            let read = read(&mut client.0, |bytes| alone.feed(bytes, &mut said));
            match progress {
                Progress::Answering => read.await?,
                Progress::Closing => tokio::time::timeout(GOODBYE, read).await.unwrap_or(Ok(0))?,
                Progress::Over => 0,
            }
        };
        out.extend_from_slice(&said);
        if read == 0 {
            return client.1.shutdown().await;
        }
    }
}

/// Reads what there is, without a buffer that stays: a thousand idle sockets hold none. 0 at the end.
async fn read<R: AsyncRead + Unpin>(from: &mut R, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
    poll_fn(|cx| poll_read(from, &mut take, cx)).await
}

/// The same, if there is anything or the end now.
async fn read_now<R: AsyncRead + Unpin>(
    from: &mut R,
    mut take: impl FnMut(&[u8]),
) -> Option<io::Result<usize>> {
    poll_fn(|cx| {
        Poll::Ready(match poll_read(from, &mut take, cx) {
            Poll::Ready(read) => Some(read),
            Poll::Pending => None,
        })
    })
    .await
}

fn poll_read<R: AsyncRead + Unpin>(
    from: &mut R,
    take: &mut impl FnMut(&[u8]),
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut space = [MaybeUninit::uninit(); CHUNK];
    let mut buffer = ReadBuf::uninit(&mut space);
    ready!(Pin::new(from).poll_read(cx, &mut buffer))?;
    let bytes = buffer.filled();
    if !bytes.is_empty() {
        take(bytes);
    }
    Poll::Ready(Ok(bytes.len()))
}
