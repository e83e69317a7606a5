//! One WebSocket: its frames, its pings, its end.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use futures_util::future::{Either, select};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

/// The longest message, as of uvicorn.
pub(super) const LONGEST: usize = 16 << 20;
/// How often a client is pinged, and how long it has for a sign of life after it.
const PING: Duration = Duration::from_secs(20);
/// How many messages a client may send ahead of their answers, in all no longer than the longest.
const AHEAD: usize = 32;
/// How long the end may take.
const LINGER: Duration = Duration::from_secs(10);
/// Small: a session is idle nearly always, and each has one.
const BUFFER: usize = 4 << 10;

/// What a client sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    Text(Utf8Bytes),
    Binary,
}

/// Why nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The connection broke.
    Gone,
    /// The client closed it, and awaits the same.
    Closed,
    /// The client broke a rule, or gave no sign of life.
    Refused(CloseCode, &'static str),
}

/// A WebSocket on the server's side.
pub(super) struct Wire<S> {
    socket: WebSocketStream<S>,
    came: VecDeque<Incoming>,
    /// How long the texts are that came.
    length: usize,
    /// What was written is not all sent.
    is_flushing: bool,
    ticks: Interval,
    /// A ping was sent, and nothing came since.
    awaits_life: bool,
    /// Pings whose pongs may not have been sent.
    owed: usize,
    /// At the last tick nothing was read any more, and what was written was not all sent since.
    is_stuck: bool,
    over: Option<Over>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Of a connection that was upgraded.
    pub(super) async fn new(stream: S) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(0)
            .max_message_size(Some(LONGEST))
            .max_frame_size(Some(LONGEST));
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        let mut ticks = interval_at(Instant::now() + PING, PING);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let came = VecDeque::new();
        Self {
            socket,
            came,
            length: 0,
            is_flushing: false,
            ticks,
            awaits_life: false,
            owed: 0,
            is_stuck: false,
            over: None,
        }
    }

    /// The next message. Nothing is lost if this is dropped before it comes.
    ///
    /// # Errors
    /// If none comes any more.
    pub(super) async fn next(&mut self) -> Result<Incoming, Over> {
        loop {
            if let Some(next) = self.came.pop_front() {
                if let Incoming::Text(text) = &next {
                    self.length -= text.len();
                }
                return Ok(next);
            }
            self.turn().await?;
        }
    }

    /// Sends a text; comes back when the kernel has it.
    ///
    /// # Errors
    /// If it cannot be sent any more.
    pub(super) async fn send(&mut self, text: String) -> Result<(), Over> {
        self.write(Message::Text(text.into()))?;
        while self.is_flushing {
            self.turn().await?;
        }
        Ok(())
    }

    /// Waits for something to come to its end, and keeps the connection alive meanwhile.
    pub(super) async fn during<T>(&mut self, something: impl Future<Output = T>) -> T {
        let mut something = pin!(something);
        loop {
            let turned = {
                let turn = pin!(self.turn());
                match select(something.as_mut(), turn).await {
                    Either::Left((done, _)) => return done,
                    Either::Right((turned, _)) => turned,
                }
            };
            if turned.is_err() {
                // Nobody is there; what has begun ends all the same.
                return something.await;
            }
        }
    }

    /// Closes it with that code, unless its end has one of its own, and waits a little for the client to do the same.
    pub(super) async fn close(mut self, code: CloseCode, reason: &'static str) {
        let (code, reason) = match self.over {
            Some(Over::Gone) => return,
            Some(Over::Refused(code, reason)) => (code, reason),
            Some(Over::Closed) | None => (code, reason),
        };
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        let said = async {
            match self.over {
                // Its answer is written already.
                Some(Over::Closed) => drop(self.socket.flush().await),
                Some(_) => {
                    // What the client still sends is read from its stream: the frames make no sense any more, and unread
                    // they would reset the connection before the client has read why.
                    if self.socket.close(Some(frame)).await.is_ok() {
                        let mut rest = vec![0; BUFFER];
                        while matches!(self.socket.get_mut().read(&mut rest).await, Ok(1..)) {}
                    }
                }
                None => {
                    if self.socket.close(Some(frame)).await.is_ok() {
                        while let Some(Ok(_)) = self.socket.next().await {}
                    }
                }
            }
        };
        if timeout(LINGER, said).await.is_err() {
            tracing::debug!("a client did not answer the close of its WebSocket");
        }
    }

    /// Waits for one thing to happen.
    async fn turn(&mut self) -> Result<(), Over> {
        poll_fn(|context| self.poll_turn(context)).await
    }

    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Over>> {
        if let Some(over) = self.over {
            return Poll::Ready(Err(over));
        }
        if self.is_flushing
            && let Poll::Ready(flushed) = self.socket.poll_flush_unpin(context)
        {
            (self.is_flushing, self.owed, self.is_stuck) = (false, 0, false);
            return Poll::Ready(flushed.map_err(|error| self.end(&error)));
        }
        if self.has_room()
            && let Poll::Ready(came) = self.socket.poll_next_unpin(context)
        {
            return Poll::Ready(self.take(came));
        }
        if self.ticks.poll_tick(context).is_ready() {
            return Poll::Ready(self.keep_alive());
        }
        Poll::Pending
    }

    /// Whether more is read: a client that asks and asks is read no faster than it is answered, and one that pings and
    /// pings no faster than it takes the pongs.
    fn has_room(&self) -> bool {
        self.came.len() < AHEAD && self.length < LONGEST && self.owed < AHEAD
    }

    fn take(&mut self, came: Option<Result<Message, Error>>) -> Result<(), Over> {
        self.awaits_life = false;
        match came {
            Some(Ok(Message::Text(text))) => {
                self.length += text.len();
                self.came.push_back(Incoming::Text(text));
            }
            Some(Ok(Message::Binary(_))) => self.came.push_back(Incoming::Binary),
            // Its pong is sent with the next turns.
            Some(Ok(Message::Ping(_))) => {
                self.owed += 1;
                self.is_flushing = true;
            }
            Some(Ok(Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(_))) => return Err(self.ended(Over::Closed)),
            Some(Err(error)) => return Err(self.end(&error)),
            None => return Err(self.ended(Over::Gone)),
        }
        Ok(())
    }

    fn keep_alive(&mut self) -> Result<(), Over> {
        // A sign of life would not have been seen; but one that takes nothing of what it asked for is dead all the same.
        if !self.has_room() {
            let was_stuck = std::mem::replace(&mut self.is_stuck, self.is_flushing);
            return match was_stuck && self.is_flushing {
                true => Err(self.ended(Over::Refused(CloseCode::Error, "keepalive ping timeout"))),
                false => Ok(()),
            };
        }
        if self.awaits_life {
            return Err(self.ended(Over::Refused(CloseCode::Error, "keepalive ping timeout")));
        }
        self.awaits_life = true;
        // Any bytes do: whatever comes is a sign of life.
        self.write(Message::Ping(Bytes::from_static(b"ping")))
    }

    fn write(&mut self, message: Message) -> Result<(), Over> {
        if let Some(over) = self.over {
            return Err(over);
        }
        self.is_flushing = true;
        self.socket.start_send_unpin(message).map_err(|error| self.end(&error))
    }

    fn end(&mut self, error: &Error) -> Over {
        let over = match error {
            Error::Capacity(_) => Over::Refused(CloseCode::Size, "message too big"),
            Error::Utf8(_) => Over::Refused(CloseCode::Invalid, "text is not UTF-8"),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Over::Gone,
            Error::Protocol(_) => Over::Refused(CloseCode::Protocol, "protocol error"),
            _ => Over::Gone,
        };
        tracing::debug!(%error, "a WebSocket ended");
        self.ended(over)
    }

    fn ended(&mut self, over: Over) -> Over {
        *self.over.get_or_insert(over)
    }
}

#[cfg(test)]
mod tests;
