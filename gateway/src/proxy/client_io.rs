//! A client's connection, closed so that the client can still read what it was told.
//!
//! When the gateway answers before it has read a whole request (a 413, a worker's early reply), closing the
//! socket at once makes the kernel send a reset, which throws away a reply that the client has not read yet;
//! NeMo Gym's client would send the request again for ever. So the end of such a connection is read and
//! dropped until the client closes, for a bounded time.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

/// The longest that a connection is read after its last reply.
const LINGER: Duration = Duration::from_secs(30);

/// Set when a reply goes out although the request's body was not read to its end.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread(Arc<AtomicBool>);

impl Unread {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A client's socket; see the module.
pub(super) struct ClientIo {
    stream: TcpStream,
    unread: Unread,
    lingering: Option<Pin<Box<Sleep>>>,
}

impl ClientIo {
    pub(super) fn new(stream: TcpStream, unread: Unread) -> Self {
        Self { stream, unread, lingering: None }
    }

    /// Reads and drops what comes until the client closes or `LINGER` is over.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let deadline = self.lingering.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        if deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut space = [std::mem::MaybeUninit::uninit(); 16 * 1024];
        // Bounded, so that a client that sends without end cannot keep its core to itself.
        for _ in 0..64 {
            let mut buffer = ReadBuf::uninit(&mut space);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                // The client closed, or reset: either way it has read all that it will.
                Ok(()) | Err(_) => return Poll::Ready(Ok(())),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl AsyncRead for ClientIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for ClientIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if !self.unread.is_set() {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(cx)
    }
}
