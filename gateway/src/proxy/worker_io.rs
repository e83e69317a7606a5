//! A connection to a worker that knows whether anything was written to it.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    sync::Semaphore,
};

use crate::workers::Address;

/// How many bytes a connection has taken from us, ever.
#[derive(Clone, Debug, Default)]
pub(super) struct Written(Arc<AtomicU64>);

impl Written {
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A worker's socket; counts what is written.
///
/// A worker may answer before it has read the whole request, and close. Its reply is there to be read, but hyper gives
/// a connection up at the first failed write. So a write into a closed connection is taken and dropped: what is read
/// next is the reply, or the end.
pub(super) struct WorkerIo {
    stream: Stream,
    written: Written,
    /// The worker takes no more.
    is_deaf: bool,
}

impl WorkerIo {
    /// Connects to a worker. Those that find its accept queue full wait in `queue`.
    pub(super) async fn connect(address: &Address, queue: &Arc<Semaphore>) -> io::Result<Self> {
        let stream = match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            Address::Unix(path) => match UnixStream::connect(path).await {
                Ok(stream) => Stream::Unix(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Stream::Unix(wait_in_queue(path, queue).await?)
                }
                Err(error) => return Err(error),
            },
        };
        Ok(Self { stream, written: Written::default(), is_deaf: false })
    }

    pub(super) fn written(&self) -> Written {
        self.written.clone()
    }

    /// Settles a try to write `offered` bytes.
    fn wrote(&mut self, result: Poll<io::Result<usize>>, offered: usize) -> Poll<io::Result<usize>> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        match &result {
            Poll::Ready(Ok(bytes)) => {
                self.written.0.fetch_add(*bytes as u64, Ordering::Relaxed);
            }
            Poll::Ready(Err(error)) if matches!(error.kind(), BrokenPipe | ConnectionReset) => {
                self.is_deaf = true;
                return Poll::Ready(Ok(offered));
            }
            Poll::Ready(Err(_)) | Poll::Pending => {}
        }
        result
    }
}

/// A full accept queue refuses a connect that does not block, and nothing tells when there is room again; one that
/// blocks waits, on a thread: so one at a time.
async fn wait_in_queue(path: &std::path::Path, queue: &Arc<Semaphore>) -> io::Result<UnixStream> {
    let turn = queue.clone().acquire_owned().await.map_err(io::Error::other)?;
    let path = path.to_owned();
    let connect = move || {
        let _turn = turn; // kept although the request that waits may be gone before
        std::os::unix::net::UnixStream::connect(path)
    };
    let stream = tokio::task::spawn_blocking(connect).await.map_err(io::Error::other)??;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

impl AsyncRead for WorkerIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for WorkerIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_deaf {
            return Poll::Ready(Ok(buf.len()));
        }
        let result = match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        };
        self.wrote(result, buf.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let offered = bufs.iter().map(|buf| buf.len()).sum();
        if self.is_deaf {
            return Poll::Ready(Ok(offered));
        }
        let result = match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        };
        self.wrote(result, offered)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(())) // neither kind of socket holds anything back
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
