//! A client that can send what no client should, byte by byte.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::soon;

/// A connection, and what was read from it but not yet looked at.
#[derive(Debug)]
pub struct Raw {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A reply's head, and its body as far as it was read.
#[derive(Clone, Debug)]
pub struct RawAnswer {
    /// The status.
    pub status: u16,
    /// `HTTP/1.1`, say.
    pub version: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl RawAnswer {
    /// The first header of that name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The gateway's stable code.
    pub fn code(&self) -> String {
        let json: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        json["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Asserts a refusal of the gateway's own.
    #[track_caller]
    pub fn assert_refused(&self, status: u16, code: &str) {
        let body = String::from_utf8_lossy(&self.body);
        assert_eq!((self.status, self.code().as_str()), (status, code), "the reply was {body}");
    }
}

impl Raw {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = soon("connect", TcpStream::connect(address)).await.expect("connect");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, buffer: Vec::new() }
    }

    /// Sends bytes.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        soon("send", self.stream.write_all(bytes.as_ref())).await.expect("send");
    }

    /// Sends bytes, unless the other side has had enough: the error, if so.
    pub async fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        soon("send", self.stream.write_all(bytes)).await
    }

    /// Sends no more, and still reads.
    pub async fn half_close(&mut self) {
        self.stream.shutdown().await.expect("shut down");
    }

    /// Goes without a goodbye: the other side gets a reset.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("linger");
    }

    /// Reads one reply; without a length its body lasts until the end of the connection.
    pub async fn answer(&mut self) -> RawAnswer {
        let mut answer = self.head().await;
        answer.body = self.body(&answer).await;
        answer
    }

    /// Reads a head alone.
    pub async fn head(&mut self) -> RawAnswer {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await).expect("a head in UTF-8");
        let mut lines = head.trim_end().split("\r\n");
        let first = lines.next().expect("a status line");
        let mut words = first.split(' ');
        let version = words.next().unwrap_or_default().to_owned();
        let status =
            words.next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("status: {first}"));
        let pair = |line: &str| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        RawAnswer { status, version, headers: lines.map(pair).collect(), body: Vec::new() }
    }

    async fn body(&mut self, head: &RawAnswer) -> Vec<u8> {
        if let Some(length) = head.header("content-length") {
            return self.exactly(length.parse().expect("a length")).await;
        }
        if head.header("transfer-encoding").is_none() {
            return self.to_end().await;
        }
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await {
            body.extend_from_slice(&chunk);
        }
        body
    }

    /// One chunk of a chunked body; `None` after the last.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = String::from_utf8(self.until(b"\r\n").await).expect("a chunk's size");
        let size = usize::from_str_radix(size.trim(), 16).expect("a chunk's size");
        if size == 0 {
            // Trailers, if any, and the empty line.
            while self.until(b"\r\n").await != b"\r\n" {}
            return None;
        }
        let chunk = self.exactly(size).await;
        assert_eq!(self.until(b"\r\n").await, b"\r\n");
        Some(chunk)
    }

    /// Reads up to and with `end`.
    pub async fn until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|window| window == end) {
                return self.buffer.drain(..at + end.len()).collect();
            }
            let n = self.fill().await.expect("read");
            let seen = String::from_utf8_lossy(&self.buffer);
            assert!(n > 0, "the connection ended before {:?}: {seen:?}", String::from_utf8_lossy(end));
        }
    }

    /// Reads so many bytes.
    pub async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length {
            let n = self.fill().await.expect("read");
            assert!(n > 0, "the connection ended after {} of {length} bytes", self.buffer.len());
        }
        self.buffer.drain(..length).collect()
    }

    /// Reads until the other side closes; panics on a reset.
    pub async fn to_end(&mut self) -> Vec<u8> {
        while self.fill().await.expect("an end, not a reset") > 0 {}
        std::mem::take(&mut self.buffer)
    }

    /// Reads until the other side closes or resets.
    pub async fn to_any_end(&mut self) -> (Vec<u8>, Option<std::io::Error>) {
        let error = loop {
            match self.fill().await {
                Ok(0) => break None,
                Ok(_) => {}
                Err(error) => break Some(error),
            }
        };
        (std::mem::take(&mut self.buffer), error)
    }

    /// The same, or until there is a whole head.
    pub async fn to_any_end_or_reply(&mut self) -> (Vec<u8>, Option<std::io::Error>) {
        let error = loop {
            if self.buffer.windows(4).any(|window| window == b"\r\n\r\n") {
                break None;
            }
            match self.fill().await {
                Ok(0) => break None,
                Ok(_) => {}
                Err(error) => break Some(error),
            }
        };
        (std::mem::take(&mut self.buffer), error)
    }

    /// Whether nothing has arrived that was not read yet, and the connection is open.
    pub fn is_silent(&self) -> bool {
        let arrived = self.stream.try_read(&mut [0; 1]);
        self.buffer.is_empty() && arrived.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Waits that long for something to arrive: whether nothing did.
    pub async fn silent_for(&mut self, time: Duration) -> bool {
        self.buffer.is_empty() && tokio::time::timeout(time, self.stream.readable()).await.is_err()
    }

    async fn fill(&mut self) -> std::io::Result<usize> {
        self.buffer.reserve(64 * 1024);
        soon("something to read", self.stream.read_buf(&mut self.buffer)).await
    }
}
