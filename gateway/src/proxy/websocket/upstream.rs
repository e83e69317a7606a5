//! From the client to the worker: what it has asked and nobody has answered.

use std::collections::VecDeque;

use super::messages::{Messages, Seen};
use crate::session::Channel;

/// The longest request of which a copy is kept: an answer in its worker's place has to repeat its ID.
pub(super) const KEPT_REQUEST: usize = 4096;

/// How many requests are remembered as not answered.
const MOST_WAITING: usize = 256;

/// What a client has sent.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) messages: Messages,
    /// Requests that wait for an answer; of OpenEnv's own messages only that there are some.
    pub(super) waiting: VecDeque<Vec<u8>>,
    /// The newest ping that was not answered.
    pub(super) ping: Option<Vec<u8>>,
    /// It has sent a close.
    pub(super) has_closed: bool,
    /// What it sends is no WebSocket.
    pub(super) is_noise: bool,
}

impl Upstream {
    pub(super) fn new(channel: Channel) -> Self {
        let limit = if channel == Channel::Mcp { KEPT_REQUEST } else { 0 };
        Self {
            messages: Messages::new(limit),
            waiting: VecDeque::new(),
            ping: None,
            has_closed: false,
            is_noise: false,
        }
    }

    /// Reads what is sent on to the worker.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while !self.is_noise && !self.has_closed {
            match self.messages.next(&mut bytes) {
                Ok(None) => return,
                Ok(Some(Seen::Message(request))) if self.waiting.len() < MOST_WAITING => {
                    self.waiting.push_back(request.unwrap_or_default());
                }
                Ok(Some(Seen::Message(_) | Seen::Pong)) => {}
                Ok(Some(Seen::Ping(payload))) => self.ping = Some(payload),
                Ok(Some(Seen::Close(_))) => self.has_closed = true,
                // For the worker to refuse.
                Err(_) => self.is_noise = true,
            }
        }
    }

    /// The worker has answered the first of the requests that wait. It takes one after another.
    pub(super) fn answered(&mut self) {
        self.waiting.pop_front();
    }
}
