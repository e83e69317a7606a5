//! Requests of a well-behaved client, over HTTP/1.1 or HTTP/2 (hyper), or as bytes for a [`super::Raw`] connection.

use std::{net::SocketAddr, path::Path};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

use super::{cookie, setup::COOKIE, soon};

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Call {
    address: SocketAddr,
    method: Method,
    target: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Call {
    /// A request without a body.
    pub fn new(address: SocketAddr, method: Method, target: &str) -> Self {
        Self { address, method, target: target.into(), headers: Vec::new(), body: Bytes::new() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header's name");
        self.headers.push((name, HeaderValue::from_bytes(value.as_ref()).expect("a header's value")));
        self
    }

    /// Adds the session's signed cookie.
    #[must_use]
    pub fn session(self, id: &str) -> Self {
        self.cookie_value(&cookie::value(COOKIE, id))
    }

    /// Adds the session cookie with any value.
    #[must_use]
    pub fn cookie_value(self, value: &str) -> Self {
        self.header("cookie", format!("{COOKIE}={value}"))
    }

    /// Scripts the worker's fault.
    #[must_use]
    pub fn fault(self, script: &str) -> Self {
        self.header("x-fault", script)
    }

    /// Marks the request, to know it again in the workers' reports.
    #[must_use]
    pub fn tag(self, tag: &str) -> Self {
        self.header("x-tag", tag)
    }

    /// Sets a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// The request for hyper.
    fn request(&self, authority: bool) -> Request<Full<Bytes>> {
        let target =
            if authority { format!("http://{}{}", self.address, self.target) } else { self.target.clone() };
        let mut request = Request::builder().method(self.method.clone()).uri(target);
        if !authority && !self.headers.iter().any(|(name, _)| name == http::header::HOST) {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(self.body.clone())).expect("a request")
    }

    /// The head as bytes, with the body's length.
    pub fn head_bytes(&self) -> Vec<u8> {
        let mut bytes =
            format!("{} {} HTTP/1.1\r\nhost: {}\r\n", self.method, self.target, self.address).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: ").as_bytes());
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        let framed = ["content-length", "transfer-encoding", "upgrade"];
        if !self.headers.iter().any(|(name, _)| framed.contains(&name.as_str())) {
            bytes.extend_from_slice(format!("content-length: {}\r\n", self.body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    /// The whole request as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        [self.head_bytes(), self.body.to_vec()].concat()
    }

    /// Sends it over an HTTP/1.1 connection of its own.
    pub async fn send(self) -> Answer {
        Http1::connect(self.address).await.send(&self).await
    }

    /// Sends it from a task of its own.
    pub fn spawn(self) -> tokio::task::JoinHandle<Answer> {
        tokio::spawn(self.send())
    }
}

/// A whole reply.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Trailers, if any.
    pub trailers: Option<HeaderMap>,
}

impl Answer {
    /// The body as JSON; `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The gateway's stable code.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// A header's text; empty if there is none.
    pub fn text(&self, name: &str) -> String {
        self.headers
            .get(name)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .unwrap_or_default()
    }

    /// The slot of the worker that answered.
    #[track_caller]
    pub fn slot(&self) -> u16 {
        self.text("x-slot").parse().unwrap_or_else(|_| panic!("no worker answered: {self:?}"))
    }

    /// The session that the reply's cookie names.
    pub fn session(&self) -> Option<String> {
        let lines = self.headers.get_all("set-cookie").iter();
        let mut values =
            lines.filter_map(|line| cookie::find(line.to_str().ok()?.split(';').next()?, COOKIE));
        let payload = cookie::read(COOKIE, &values.next_back()?)?;
        payload.get("session_id").and_then(Value::as_str).map(str::to_owned)
    }

    /// Asserts the status, and returns the answer for more.
    #[track_caller]
    pub fn assert(self, status: u16) -> Self {
        assert_eq!(self.status, status, "the reply was {:?}", String::from_utf8_lossy(&self.body));
        self
    }

    /// Asserts a refusal of the gateway's own: FastAPI's shape with a stable code.
    #[track_caller]
    pub fn assert_refused(&self, status: u16, code: &str) {
        let body = String::from_utf8_lossy(&self.body);
        assert_eq!((self.status, self.code().as_str()), (status, code), "the reply was {body:?}");
        assert!(
            self.json()["detail"].as_str().is_some_and(|detail| detail.len() > 10),
            "no detail in {body:?}"
        );
        assert_eq!(self.text("content-type"), "application/json");
    }
}

/// An HTTP/1.1 connection.
#[derive(Debug)]
pub struct Http1(http1::SendRequest<Full<Bytes>>);

impl Http1 {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> Self {
        Self::over(soon("connect", TcpStream::connect(address)).await.expect("connect")).await
    }

    /// Connects to a Unix socket. The address of a [`Call`] that is sent there is only its default `Host`.
    pub async fn connect_unix(path: &Path) -> Self {
        Self::over(soon("connect", UnixStream::connect(path)).await.expect("connect")).await
    }

    async fn over(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("handshake");
        tokio::spawn(connection.with_upgrades());
        Self(sender)
    }

    /// Sends a request and reads the whole reply.
    pub async fn send(&mut self, call: &Call) -> Answer {
        self.try_send(call)
            .await
            .unwrap_or_else(|error| panic!("no reply to {} {}: {error}", call.method, call.target))
    }

    /// The same; an error if the connection broke.
    pub async fn try_send(&mut self, call: &Call) -> Result<Answer, hyper::Error> {
        let what = format!("a reply to {} {}", call.method, call.target);
        soon(&what, async {
            self.0.ready().await?;
            read(self.0.send_request(call.request(false)).await?).await
        })
        .await
    }

    /// Sends a request and reads the reply's head alone.
    pub async fn open(&mut self, call: &Call) -> Response<Incoming> {
        soon("a reply's head", self.0.send_request(call.request(false))).await.expect("a reply's head")
    }
}

/// A cleartext HTTP/2 connection, by prior knowledge.
#[derive(Clone, Debug)]
pub struct Http2(http2::SendRequest<Full<Bytes>>);

impl Http2 {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = soon("connect", TcpStream::connect(address)).await.expect("connect");
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, connection) = soon("HTTP/2", handshake).await.expect("HTTP/2");
        tokio::spawn(connection);
        Self(sender)
    }

    /// Sends a request and reads the whole reply.
    pub async fn send(&mut self, call: &Call) -> Answer {
        self.try_send(call)
            .await
            .unwrap_or_else(|error| panic!("no reply to {} {}: {error}", call.method, call.target))
    }

    /// The same; an error if the stream broke.
    pub async fn try_send(&mut self, call: &Call) -> Result<Answer, hyper::Error> {
        soon("a reply over HTTP/2", async { read(self.0.send_request(call.request(true)).await?).await })
            .await
    }

    /// Sends a request and reads the reply's head alone.
    pub async fn open(&mut self, call: &Call) -> Response<Incoming> {
        soon("a reply's head", self.0.send_request(call.request(true))).await.expect("a reply's head")
    }
}

async fn read(response: Response<Incoming>) -> Result<Answer, hyper::Error> {
    let (head, body) = response.into_parts();
    let body = body.collect().await?;
    let trailers = body.trailers().cloned();
    Ok(Answer { status: head.status.as_u16(), headers: head.headers, body: body.to_bytes(), trailers })
}
