//! A server on a port, and clients over HTTP and WebSocket.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

/// A test fails that waits longer for what is bound to happen.
const DEADLINE: Duration = Duration::from_secs(20);

/// What is bound to happen.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("it does not happen: {what}"))
}

pub(crate) struct Server {
    address: SocketAddr,
    http: reqwest::Client,
}

impl Server {
    pub(crate) async fn start(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(tokio::spawn(async move { axum::serve(listener, router).await }));
        Self { address, http: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, String) {
        let reply = self.http.get(format!("http://{}{path}", self.address)).send().await.unwrap();
        (reply.status(), reply.text().await.unwrap())
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (StatusCode, String) {
        let request = self.http.post(format!("http://{}{path}", self.address)).json(body);
        let reply = request.send().await.unwrap();
        (reply.status(), reply.text().await.unwrap())
    }

    /// The result of a request of JSON-RPC, or its error.
    pub(crate) async fn rpc(&self, method: &str, params: Value) -> Result<Value, Value> {
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let (status, text) = self.post("/mcp", &request).await;
        assert_eq!(status, 200, "{text}");
        let mut reply: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(reply["id"], 7);
        match reply["error"].take() {
            Value::Null => Ok(reply["result"].take()),
            error => Err(error),
        }
    }

    /// A new session's ID.
    pub(crate) async fn create(&self) -> String {
        let created = self.rpc("openenv/session/create", json!({})).await.unwrap();
        created["session_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn connect(&self, path: &str) -> Socket {
        open(TcpStream::connect(self.address).await.unwrap(), path).await.unwrap()
    }

    /// The status of a WebSocket's refusal.
    pub(crate) async fn refused(&self, path: &str) -> String {
        open(TcpStream::connect(self.address).await.unwrap(), path).await.err().unwrap()
    }
}

/// A connected WebSocket.
pub(crate) struct Socket<S = TcpStream>(pub(crate) WebSocketStream<S>);

/// The handshake; the reply's first line if it is refused.
pub(crate) async fn open<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    path: &str,
) -> Result<Socket<S>, String> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    if !head.starts_with("HTTP/1.1 101 ") {
        return Err(head.lines().next().unwrap().to_owned());
    }
    assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    Ok(Socket(WebSocketStream::from_raw_socket(stream, Role::Client, None).await))
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    pub(crate) async fn send(&mut self, message: &Value) {
        self.0.send(Message::Text(message.to_string().into())).await.unwrap();
    }

    /// The next frame, or the code with which it was closed.
    pub(crate) async fn next(&mut self) -> Result<Value, u16> {
        loop {
            match soon("a frame", self.0.next()).await.unwrap().unwrap() {
                Message::Text(text) => return Ok(serde_json::from_str(&text).unwrap()),
                Message::Close(frame) => return Err(frame.map_or(1005, |frame| frame.code.into())),
                _ => {}
            }
        }
    }

    pub(crate) async fn ask(&mut self, message: Value) -> Value {
        self.send(&message).await;
        self.next().await.unwrap()
    }

    pub(crate) async fn step(&mut self, action: Value) -> Value {
        self.ask(json!({"type": "step", "data": action})).await
    }

    /// Asks for the close, and waits for it.
    pub(crate) async fn close(mut self) {
        self.send(&json!({"type": "close"})).await;
        assert_eq!(self.next().await, Err(1000));
    }
}
