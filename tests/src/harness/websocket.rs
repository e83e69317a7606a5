//! WebSockets by hand: a client that can send what it likes, and frames as both sides have them.

use std::net::SocketAddr;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;
use sha1::{Digest, Sha1};

use super::Raw;

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// One whole frame, or the whole of a message in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A text or binary message.
    Message(String),
    /// A close: its code and its reason.
    Close(u16, String),
    /// A ping.
    Ping,
    /// A pong.
    Pong,
}

impl Frame {
    /// A message's JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        match self {
            Self::Message(text) => serde_json::from_str(text).expect("JSON"),
            other => panic!("no message but {other:?}"),
        }
    }

    /// Asserts that it says in OpenEnv's form that this session is lost.
    #[track_caller]
    pub fn assert_lost(&self, session: &str) {
        let json = self.json();
        let (data, message) = (&json["data"], json["data"]["message"].as_str().unwrap_or_default());
        assert_eq!((&json["type"], &data["code"]), (&"error".into(), &"SESSION_ERROR".into()), "{json}");
        assert!(message.contains(&format!("Session {session}")) && message.contains("is lost"), "{json}");
    }
}

/// Takes a whole frame out of the buffer; a fragment counts as one.
pub fn parse(buffer: &mut Vec<u8>) -> Option<Frame> {
    let [first, second, ..] = buffer[..] else { return None };
    let (length, mut at) = match second & 0x7f {
        126 => (u64::from(u16::from_be_bytes(*buffer.get(2..)?.first_chunk()?)), 4),
        127 => (u64::from_be_bytes(*buffer.get(2..)?.first_chunk()?), 10),
        short => (u64::from(short), 2),
    };
    let mut mask = [0; 4];
    if second & 0x80 != 0 {
        mask = *buffer.get(at..)?.first_chunk()?;
        at += 4;
    }
    let end = at + usize::try_from(length).expect("a length");
    let payload = buffer.get(at..end)?;
    let payload: Vec<u8> = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    buffer.drain(..end);
    Some(match first & 0x0f {
        8 => {
            let code = payload.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code));
            Frame::Close(code, String::from_utf8_lossy(payload.get(2..).unwrap_or_default()).into_owned())
        }
        9 => Frame::Ping,
        10 => Frame::Pong,
        _ => Frame::Message(String::from_utf8_lossy(&payload).into_owned()),
    })
}

/// A frame as it goes over the wire.
pub fn frame(first: u8, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let marked = if mask.is_some() { 0x80 } else { 0 };
    let mut bytes = vec![first];
    match u16::try_from(payload.len()) {
        Ok(length @ ..126) => bytes.push(marked | length.to_be_bytes()[1]),
        Ok(length) => {
            bytes.push(marked | 126);
            bytes.extend(length.to_be_bytes());
        }
        Err(_) => {
            bytes.push(marked | 127);
            bytes.extend((payload.len() as u64).to_be_bytes());
        }
    }
    bytes.extend(mask.into_iter().flatten());
    let mask = mask.unwrap_or_default();
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// A server's text message.
pub fn text(text: &str) -> Vec<u8> {
    frame(0x81, text.as_bytes(), None)
}

/// A server's close.
pub fn close(code: u16) -> Vec<u8> {
    frame(0x88, &code.to_be_bytes(), None)
}

/// What proves that a key was read.
pub fn accept(key: &str) -> String {
    let hash = Sha1::new().chain_update(key).chain_update("258EAFA5-E914-47DA-95CA-C5AB0DC85B11").finalize();
    BASE64_STANDARD.encode(hash)
}

/// A client's WebSocket.
#[derive(Debug)]
pub struct WebSocket {
    raw: Raw,
}

impl WebSocket {
    /// Connects, with more lines in its head (`X-Tag: t`, say).
    pub async fn open(address: SocketAddr, target: &str, lines: &[&str]) -> Self {
        let mut head = format!(
            "GET {target} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Extensions: permessage-deflate\r\n"
        );
        for line in lines {
            head.push_str(line);
            head.push_str("\r\n");
        }
        let mut raw = Raw::connect(address).await;
        raw.send(head + "\r\n").await;
        let answer = raw.head().await;
        assert_eq!(answer.status, 101, "{answer:?}");
        assert_eq!(answer.header("sec-websocket-accept"), Some(accept(KEY).as_str()));
        Self { raw }
    }

    /// Sends a text message.
    pub async fn send(&mut self, text: &str) {
        self.send_frame(0x81, text.as_bytes()).await;
    }

    /// Sends a frame: its first byte and its payload.
    pub async fn send_frame(&mut self, first: u8, payload: &[u8]) {
        self.raw.send(frame(first, payload, Some([3, 1, 4, 1]))).await;
    }

    /// Sends bytes as they are.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.raw.send(bytes).await;
    }

    /// The next frame.
    pub async fn next(&mut self) -> Frame {
        let mut bytes = self.raw.exactly(2).await;
        let more = match bytes[1] {
            126 => 2,
            127 => 8,
            short => {
                bytes.extend(self.raw.exactly(short.into()).await);
                return parse(&mut bytes).expect("a whole frame");
            }
        };
        bytes.extend(self.raw.exactly(more).await);
        let length = bytes[2..].iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
        bytes.extend(self.raw.exactly(length).await);
        parse(&mut bytes).expect("a whole frame")
    }

    /// Sends a message and waits for the next frame.
    pub async fn ask(&mut self, text: &str) -> Frame {
        self.send(text).await;
        self.next().await
    }

    /// Closes, and waits for the other side's close and end.
    pub async fn close(mut self) {
        self.send_frame(0x88, &1000_u16.to_be_bytes()).await;
        assert_eq!(self.next().await, Frame::Close(1000, String::new()));
        self.ended().await;
    }

    /// Waits for the end of the connection; panics if there is anything before it.
    pub async fn ended(mut self) {
        assert_eq!(self.raw.to_end().await, b"", "nothing behind a close");
    }

    /// Waits for the end of the connection, in whatever way it comes.
    pub async fn broke_off(mut self) -> Vec<u8> {
        self.raw.to_any_end().await.0
    }

    /// Whether nothing has come that was not read.
    pub fn is_silent(&self) -> bool {
        self.raw.is_silent()
    }

    /// Goes without a goodbye.
    pub fn reset(self) {
        self.raw.reset();
    }
}
