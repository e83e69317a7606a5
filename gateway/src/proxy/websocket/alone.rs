//! What the gateway says over a WebSocket that has no worker any more, or got none.
//!
//! OpenEnv's client connects again in silence after a closed socket and goes on with a fresh environment. So a session
//! that is lost keeps its socket: what was asked and what is asked later gets an error that names it, until the client
//! closes.

use super::{
    downstream::HalfSent,
    frames,
    messages::{Seen, code},
    upstream::{KEPT_REQUEST, Upstream},
};
use crate::session::{Channel, SessionId, is_goodbye, lost_frame};

const NORMAL: u16 = 1000;
const PROTOCOL_ERROR: u16 = 1002;
const INTERNAL_ERROR: u16 = 1011;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// What the client asks is answered.
    Answering,
    /// A close went out; the client's is waited for.
    Closing,
    /// Nothing is to be said or heard any more.
    Over,
}

/// A WebSocket without a worker. What it says is appended to the `out` of each call.
#[derive(Debug)]
pub(super) struct Alone {
    channel: Channel,
    session: SessionId,
    upstream: Upstream,
    progress: Progress,
}

impl Alone {
    /// The session was lost; answers what waits for an answer.
    pub(super) fn lost(
        channel: Channel,
        session: SessionId,
        mut upstream: Upstream,
        half_sent: HalfSent,
        out: &mut Vec<u8>,
    ) -> Self {
        let waiting = std::mem::take(&mut upstream.waiting);
        let ping = upstream.ping.take();
        upstream.messages.keep(KEPT_REQUEST);
        let (has_closed, is_noise) = (upstream.has_closed, upstream.is_noise);
        let mut alone = Self { channel, session, upstream, progress: Progress::Answering };
        match half_sent {
            HalfSent::Frame => alone.progress = Progress::Over,
            _ if is_noise => alone.close(PROTOCOL_ERROR, "", out),
            _ if has_closed => {
                alone.close(NORMAL, "", out);
                alone.progress = Progress::Over;
            }
            HalfSent::Message => {
                let reason = format!("Session {} is lost: its worker is no longer running", alone.session);
                alone.close(INTERNAL_ERROR, &reason, out);
            }
            HalfSent::Nothing => {
                if let Some(payload) = ping {
                    frames::pong(payload, out);
                }
                for request in waiting {
                    alone.answer(&request, out);
                }
            }
        }
        alone
    }

    /// The session was lost before the client connected.
    pub(super) fn lost_before(channel: Channel, session: SessionId) -> Self {
        let mut nothing = Vec::new();
        Self::lost(channel, session, Upstream::new(channel), HalfSent::Nothing, &mut nothing)
    }

    /// There is no session to be had: the close is sent behind what `out` has.
    pub(super) fn refused(channel: Channel, out: &mut Vec<u8>) -> Self {
        let mut alone = Self::lost_before(channel, SessionId::random());
        alone.close(NORMAL, "", out);
        alone
    }

    pub(super) fn progress(&self) -> Progress {
        self.progress
    }

    /// Answers what the client sends.
    pub(super) fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while self.progress != Progress::Over {
            match self.upstream.messages.next(&mut bytes) {
                Ok(None) => return,
                Ok(Some(seen)) => self.react(seen, out),
                Err(_) => {
                    self.close(PROTOCOL_ERROR, "", out);
                    self.progress = Progress::Over;
                }
            }
        }
    }

    fn react(&mut self, seen: Seen, out: &mut Vec<u8>) {
        match seen {
            Seen::Close(payload) => {
                self.close(code(&payload).unwrap_or(NORMAL), "", out);
                self.progress = Progress::Over;
            }
            _ if self.progress == Progress::Closing => {}
            Seen::Message(text) => {
                let request = text.unwrap_or_default();
                if is_goodbye(self.channel, &request) {
                    self.close(NORMAL, "", out);
                } else {
                    self.answer(&request, out);
                }
            }
            Seen::Ping(payload) => frames::pong(payload, out),
            Seen::Pong => {}
        }
    }

    fn answer(&self, request: &[u8], out: &mut Vec<u8>) {
        frames::text(lost_frame(self.channel, &self.session, request), out);
    }

    /// Sends a close, unless one was sent.
    fn close(&mut self, code: u16, reason: &str, out: &mut Vec<u8>) {
        if self.progress == Progress::Answering {
            frames::close(code, reason, out);
            self.progress = Progress::Closing;
        }
    }
}

#[cfg(test)]
mod tests;
