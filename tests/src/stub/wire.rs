//! Just enough HTTP/1.1, by hand: a worker made of a well-behaved library could not misbehave.

use std::io::{self, ErrorKind};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// A request's head.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) version: String,
    /// In the order of arrival, names as they came, a char for each byte of a value.
    pub(super) headers: Vec<(String, String)>,
}

impl Head {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The path, and past NeMo Gym's rollout prefix.
    pub(super) fn path(&self) -> &str {
        let path = self.target.split('?').next().unwrap_or_default();
        let Some(rest) = path.strip_prefix("/ng-rollout/") else { return path };
        let rest = rest.find('/').map_or("/", |slash| &rest[slash..]);
        rest.strip_prefix("/training-token-capture").filter(|rest| rest.starts_with('/')).unwrap_or(rest)
    }

    pub(super) fn expects_continue(&self) -> bool {
        self.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
    }
}

/// A request's body and trailers.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    pub(super) trailers: Vec<(String, String)>,
}

/// What came, as JSON: what `/echo` answers.
pub(super) fn describe(head: &Head, body: &Body) -> Value {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    body.bytes.hash(&mut hasher);
    json!({
        "method": head.method, "target": head.target, "version": head.version, "headers": head.headers,
        "length": body.bytes.len(), "hash": format!("{:016x}", hasher.finish()), "trailers": body.trailers,
    })
}

/// The server's side of one connection.
#[derive(Debug)]
pub(super) struct Wire<S> {
    io: BufReader<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { io: BufReader::with_capacity(64 * 1024, stream) }
    }

    /// The next request's head; `None` once the other side has closed.
    pub(super) async fn head(&mut self) -> io::Result<Option<Head>> {
        let first = self.line().await?;
        if first.is_empty() {
            return Ok(None);
        }
        let mut words = first.split(' ').map(str::to_owned);
        let mut word = || words.next().ok_or(ErrorKind::InvalidData);
        let mut head = Head { method: word()?, target: word()?, version: word()?, headers: Vec::new() };
        head.headers = self.headers().await?;
        Ok(Some(head))
    }

    async fn headers(&mut self) -> io::Result<Vec<(String, String)>> {
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok(headers);
            }
            let (name, value) = line.split_once(':').ok_or(ErrorKind::InvalidData)?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// A line without its end, a char for each byte.
    async fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.io.read_until(b'\n', &mut line).await?;
        while line.last().is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
            line.pop();
        }
        Ok(line.into_iter().map(char::from).collect())
    }

    /// The body; asks for it first if the client waits to be asked.
    pub(super) async fn body(&mut self, head: &Head) -> io::Result<Body> {
        if head.expects_continue() {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let mut body = Body::default();
        if head.header("transfer-encoding").is_some() {
            loop {
                let size = self.line().await?;
                let size = usize::from_str_radix(size.trim(), 16).map_err(|_| ErrorKind::InvalidData)?;
                if size == 0 {
                    body.trailers = self.headers().await?;
                    return Ok(body);
                }
                self.take(size, &mut body.bytes).await?;
                self.line().await?;
            }
        }
        if let Some(length) = head.header("content-length") {
            let length = length.parse().map_err(|_| ErrorKind::InvalidData)?;
            self.take(length, &mut body.bytes).await?;
        }
        Ok(body)
    }

    async fn take(&mut self, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let wanted = u64::try_from(length).map_err(|_| ErrorKind::InvalidData)?;
        if (&mut self.io).take(wanted).read_to_end(into).await? < length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.io.get_mut().write_all(bytes).await?;
        self.io.get_mut().flush().await
    }

    /// One chunk of a chunked body.
    pub(super) async fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.write(&chunk).await
    }

    /// Returns when the other side has closed, or has sent something although it was not its turn.
    pub(super) async fn closed(&mut self) {
        // An error is an end as well.
        let _ = self.io.fill_buf().await;
    }

    /// What arrives next, as it is; empty at the end.
    pub(super) async fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; 64 * 1024];
        let n = self.io.read(&mut bytes).await?;
        bytes.truncate(n);
        Ok(bytes)
    }
}
