//! Asks a worker whether it is ready.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};

use super::Address;

/// Asked in this order; a path that the worker does not have (404, 405) is followed by the next.
const PATHS: [&str; 4] = ["/readyz", "/healthz", "/health", "/"];

/// How long one request may take.
const ONE_TRY: Duration = Duration::from_secs(2);

/// The most that is read of a reply.
const MAX_BODY: usize = 64 * 1024;

/// What a worker said to a probe.
#[derive(Debug)]
pub(crate) enum Probed {
    /// Nobody listens.
    NotListening,
    /// It listens; what it said instead of being ready.
    NotReady(String),
    /// It is ready: the headers of its reply.
    Ready(HeaderMap),
}

/// Connects to where a worker should be.
pub(crate) async fn is_listening(address: &Address) -> bool {
    match address {
        Address::Unix(path) => UnixStream::connect(path).await.is_ok(),
        Address::Tcp(address) => matches!(timeout(ONE_TRY, TcpStream::connect(address)).await, Ok(Ok(_))),
    }
}

/// Asks the worker at `address` once, path after path.
pub(crate) async fn probe(address: &Address) -> Probed {
    let last = PATHS[PATHS.len() - 1];
    for path in PATHS {
        let (status, headers) = match timeout(ONE_TRY, get(address, path)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(Failed::Connect)) => return Probed::NotListening,
            Ok(Err(Failed::Reply(error))) => return Probed::NotReady(format!("GET {path} failed: {error}")),
            Err(_) => {
                let limit = ONE_TRY.as_secs();
                return Probed::NotReady(format!("GET {path} was not answered within {limit} s"));
            }
        };
        if status.is_success() || status.is_redirection() || (path == last && status.as_u16() < 500) {
            return Probed::Ready(headers);
        }
        if !matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
            return Probed::NotReady(format!("GET {path} was answered with {status}"));
        }
    }
    Probed::NotReady("no path was answered".into())
}

/// Whether a worker gives any reply at all, however long that takes.
pub(crate) async fn answers(address: &Address) -> bool {
    get(address, PATHS[1]).await.is_ok()
}

enum Failed {
    Connect,
    Reply(hyper::Error),
}

async fn get(address: &Address, path: &str) -> Result<(StatusCode, HeaderMap), Failed> {
    let connect = |_: io::Error| Failed::Connect;
    match address {
        Address::Unix(socket) => exchange(UnixStream::connect(socket).await.map_err(connect)?, path).await,
        Address::Tcp(address) => exchange(TcpStream::connect(address).await.map_err(connect)?, path).await,
    }
    .map_err(Failed::Reply)
}

async fn exchange<S>(stream: S, path: &str) -> hyper::Result<(StatusCode, HeaderMap)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = http::Uri::builder().path_and_query(path).build().unwrap_or_default();
    request.headers_mut().insert(header::HOST, header::HeaderValue::from_static("localhost"));
    request.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    let reply = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        // Read, so that the worker does not log a client that left; whether all of it comes is no matter.
        let _ = Limited::new(body, MAX_BODY).collect().await;
        Ok((head.status, head.headers))
    };
    tokio::select! {
        biased;
        reply = reply => reply,
        Err(error) = connection => Err(error),
    }
}

#[cfg(test)]
mod tests;
