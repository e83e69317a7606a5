//! What a request's `X-Fault` header makes of its reply: `name` or `name=argument`, several separated by `;`.
//!
//! | before the body is read | |
//! |---|---|
//! | `early-close` | close |
//! | `early-reply=STATUS` | answer without reading the body, then read it |
//! | `early-reply-close=STATUS` | answer without reading the body and close |
//! | `exit-early` | end the process |
//!
//! | instead of a reply | |
//! |---|---|
//! | `garbage` | bytes that are no HTTP, and close |
//! | `half-head`, `half-body`, `half-chunked` | a reply cut short, and close |
//! | `bad-length` | a content length that is no number |
//! | `close` | nothing, and close |
//! | `hang` | nothing, until the client leaves (reported as `cancelled`) |
//! | `exit`, `exit-mid` | end the process before the reply, or in the middle of its body |
//! | `mid-gate=GATE` | head and half of the body; the rest when the gate opens |
//! | `slow=N` | a body of N bytes, one a write |
//! | `sse=GATE` | an event for each opening of the gate; the end when `GATE.end` opens |
//! | `http10` | HTTP/1.0, a body that ends with the connection |
//! | `chunked`, `trailers` | a chunked body, with trailers |
//! | `big=N` | a body of N bytes |
//!
//! | to the ordinary reply | |
//! |---|---|
//! | `gate=GATE` | first wait for the gate (reported as `waiting`, and `cancelled` if the client leaves) |
//! | `status=N`, `header=NAME:VALUE`, `no-cookie` | `header` also goes with `sse`, `half-chunked`, `chunked` and `trailers` |
//! | `500-close` | status 500, and close without having said so |
//! | `say-close` | `Connection: close`, and close |

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    Stub,
    connection::{Flow, pass_gate},
    routes::Reply,
    wire::{Head, Wire},
};

/// The script of one request.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<(String, String)>);

impl Faults {
    pub(super) fn of(head: &Head) -> Self {
        let script = head.header("x-fault").unwrap_or_default();
        let faults = script.split(';').map(str::trim).filter(|word| !word.is_empty());
        let pair = |word: &str| {
            let (name, argument) = word.split_once('=').unwrap_or((word, ""));
            (name.to_owned(), argument.to_owned())
        };
        Self(faults.map(pair).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, argument)| argument.as_str())
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.get(name).map(|argument| argument.parse().expect("a number"))
    }

    /// The headers to add.
    fn headers(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().filter(|(name, _)| name == "header").map(|(_, argument)| {
            let (name, value) = argument.split_once(':').expect("a name and a value");
            (name.to_owned(), value.trim().to_owned())
        })
    }

    /// The head of a chunked reply with these lines and the headers to add.
    fn chunked_head(&self, lines: &str) -> Vec<u8> {
        let added: String = self.headers().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("HTTP/1.1 200 OK\r\n{lines}{added}Transfer-Encoding: chunked\r\n\r\n").into_bytes()
    }

    /// What the faults change in an ordinary reply.
    pub(super) fn adjust(&self, reply: &mut Reply) -> Flow {
        if let Some(status) = self.number("status") {
            reply.status = status;
        }
        if self.get("no-cookie").is_some() {
            reply.headers.retain(|(name, _)| name != "Set-Cookie");
        }
        reply.headers.extend(self.headers());
        if self.get("500-close").is_some() {
            reply.status = 500;
            return Flow::Close;
        }
        if self.get("say-close").is_some() {
            reply.headers.push(("Connection".into(), "close".into()));
            return Flow::Close;
        }
        Flow::Keep
    }
}

/// Faults that do not wait for the request's body.
pub(super) async fn before_body<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    head: &Head,
    faults: &Faults,
    stub: &Stub,
) -> io::Result<Option<Flow>> {
    if head.header("upgrade").is_some() && head.path() != "/refuses-upgrade" {
        return upgrade(wire, head, faults, stub).await.map(Some);
    }
    if faults.get("early-close").is_some() {
        return Ok(Some(Flow::Close));
    }
    if faults.get("exit-early").is_some() {
        std::process::exit(9);
    }
    for name in ["early-reply", "early-reply-close"] {
        if let Some(status) = faults.number(name) {
            let mut reply = Reply { status, ..Reply::json(&serde_json::json!({"early": true})) };
            reply.identify(stub);
            wire.write(&reply.bytes(false)).await?;
            if name == "early-reply" {
                wire.body(head).await?;
                return Ok(Some(Flow::Keep));
            }
            return Ok(Some(Flow::Close));
        }
    }
    Ok(None)
}

/// Faults that replace the reply.
pub(super) async fn instead_of_reply<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    head: &Head,
    faults: &Faults,
    stub: &Stub,
) -> io::Result<Option<Flow>> {
    let Some((name, argument)) = faults.0.iter().find(|(name, _)| REPLACING.contains(&name.as_str())) else {
        return Ok(None);
    };
    let mut flow = Flow::Close;
    match name.as_str() {
        "garbage" => wire.write(b"\x00\x01 this is no HTTP\r\n\r\n").await?,
        "half-head" => wire.write(b"HTTP/1.1 200 OK\r\nContent-Le").await?,
        "half-body" => wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n0123456789").await?,
        "half-chunked" => {
            wire.write(&faults.chunked_head("")).await?;
            wire.chunk(b"abc").await?;
        }
        "bad-length" => wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nabc").await?,
        "close" => {}
        "hang" => {
            stub.report("hanging", head, &[]);
            wire.closed().await;
            stub.report("cancelled", head, &[]);
        }
        "exit" => std::process::exit(9),
        "exit-mid" => {
            wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n0123456789").await?;
            stub.report("half-sent", head, &[]);
            // The test sees the first half before the end.
            stub.reporter.gate(argument).await;
            std::process::exit(9)
        }
        "mid-gate" => {
            wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234").await?;
            if pass_gate(wire, head, argument, stub).await {
                wire.write(b"56789").await?;
                flow = Flow::Keep;
            }
        }
        "slow" => {
            let length = argument.parse().expect("a number");
            wire.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes()).await?;
            for _ in 0..length {
                wire.write(b"x").await?;
                tokio::task::yield_now().await;
            }
            flow = Flow::Keep;
        }
        "sse" => sse(wire, head, (faults, argument), stub).await?,
        "http10" => wire.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end").await?,
        "chunked" | "trailers" => flow = chunked(wire, faults, name == "trailers").await?,
        "big" => {
            let length = argument.parse().expect("a number");
            wire.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes()).await?;
            wire.write(&vec![b'b'; length]).await?;
            flow = Flow::Keep;
        }
        _ => unreachable!("listed in REPLACING"),
    }
    Ok(Some(flow))
}

const REPLACING: [&str; 16] = [
    "garbage",
    "half-head",
    "half-body",
    "half-chunked",
    "bad-length",
    "close",
    "hang",
    "exit",
    "exit-mid",
    "mid-gate",
    "slow",
    "sse",
    "http10",
    "chunked",
    "trailers",
    "big",
];

async fn chunked<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    faults: &Faults,
    trailers: bool,
) -> io::Result<Flow> {
    let announced = if trailers { "Trailer: X-End\r\n" } else { "" };
    wire.write(&faults.chunked_head(announced)).await?;
    wire.chunk(b"one ").await?;
    wire.chunk(b"two").await?;
    let end: &[u8] = if trailers { b"0\r\nX-End: yes\r\n\r\n" } else { b"0\r\n\r\n" };
    wire.write(end).await?;
    Ok(Flow::Keep)
}

async fn sse<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    head: &Head,
    (faults, gate): (&Faults, &str),
    stub: &Stub,
) -> io::Result<()> {
    wire.write(&faults.chunked_head("Content-Type: text/event-stream\r\n")).await?;
    stub.report("streaming", head, &[]);
    let end = format!("{gate}.end");
    for count in 1.. {
        tokio::select! {
            () = stub.reporter.gate(gate) => wire.chunk(format!("data: {count}\n\n").as_bytes()).await?,
            () = stub.reporter.gate(&end) => return wire.write(b"0\r\n\r\n").await,
            () = wire.closed() => {
                stub.report("cancelled", head, &[]);
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Switches protocols and sends back what comes, until `exit` or the end.
async fn upgrade<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    head: &Head,
    faults: &Faults,
    stub: &Stub,
) -> io::Result<Flow> {
    if let Some(gate) = faults.get("gate")
        && !pass_gate(wire, head, gate, stub).await
    {
        return Ok(Flow::Close);
    }
    let mut reply = Reply { status: 101, body: Vec::new(), headers: Vec::new() };
    reply.identify(stub);
    reply.headers.push(("Connection".into(), "Upgrade".into()));
    reply.headers.push(("Upgrade".into(), head.header("upgrade").unwrap_or_default().to_owned()));
    faults.adjust(&mut reply);
    wire.write(&reply.head()).await?;
    stub.report("upgraded", head, &[]);
    loop {
        let bytes = wire.read().await.unwrap_or_default();
        match bytes.as_slice() {
            b"" => break,
            b"exit" => std::process::exit(9),
            b"hang up" => break,
            bytes => wire.write(bytes).await?,
        }
    }
    stub.report("tunnel-ended", head, &[]);
    Ok(Flow::Close)
}
