//! A WebSocket that does what it is told, byte by byte if it must.
//!
//! | message | the worker |
//! |---|---|
//! | `silent`... | says nothing |
//! | `echo TEXT` | sends the text |
//! | `raw HEX` | sends the bytes as they are |
//! | `close CODE` | sends a close and ends |
//! | `hang up` | ends without one |
//! | `exit` | ends its process |
//! | anything else | sends an observation with its slot and how many messages came |

use std::io;

use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    Stub,
    wire::{Head, Wire},
};
use crate::harness::websocket::{Frame, accept, close, parse, text};

/// Serves one until either side ends it.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    head: &Head,
    stub: &Stub,
) -> io::Result<()> {
    let (mut buffer, mut count) = (Vec::new(), 0);
    loop {
        let Some(frame) = parse(&mut buffer) else {
            let bytes = wire.read().await?;
            if bytes.is_empty() {
                return Ok(());
            }
            buffer.extend_from_slice(&bytes);
            continue;
        };
        match frame {
            Frame::Message(message) => {
                count += 1;
                stub.report(
                    "message",
                    head,
                    &[("text", message.chars().take(100).collect::<String>().into())],
                );
                if !obey(wire, &message, count, stub).await? {
                    return Ok(());
                }
            }
            Frame::Close(code, _) => return wire.write(&close(code)).await,
            Frame::Ping | Frame::Pong => {}
        }
    }
}

/// Whether the connection goes on.
async fn obey<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    message: &str,
    count: u64,
    stub: &Stub,
) -> io::Result<bool> {
    let (word, rest) = message.split_once(' ').unwrap_or((message, ""));
    match word {
        "silent" => {}
        "echo" => wire.write(&text(rest)).await?,
        "raw" => wire.write(&hex(rest)).await?,
        "close" => {
            wire.write(&close(rest.parse().expect("a code"))).await?;
            return Ok(false);
        }
        "hang" => return Ok(false),
        "exit" => std::process::exit(9),
        _ => {
            let data = json!({"slot": stub.options.slot, "count": count});
            wire.write(&text(&json!({"type": "observation", "data": data}).to_string())).await?;
        }
    }
    Ok(true)
}

/// The head's lines that accept it.
pub(super) fn accepting(head: &Head) -> Option<(String, String)> {
    Some(("Sec-WebSocket-Accept".into(), accept(head.header("sec-websocket-key")?)))
}

fn hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal")).collect()
}
