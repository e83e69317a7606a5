//! A request's body between client and worker: streamed, or held where the rule or the wait needs it.
//!
//! One body is shared by the request's handler and by what is given to the worker's connection, so that it can
//! be read on while the request waits, sent again when a connection took nothing of it, and dropped to its end
//! when the answer is the gateway's own.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::{
    budget::{Budget, Held},
    client_io::Unread,
    worker_io::Written,
};

/// How much of a waiting request's body is read ahead, so that its client's leaving is seen.
const READ_AHEAD: usize = 1024 * 1024;
/// How much of a body is read and dropped before an answer of the gateway's own, and for how long.
const DISCARD: usize = 1024 * 1024;
const DISCARD_FOR: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Data(bytes) => bytes.len(),
            Self::Trailers(_) => 0,
        }
    }
}

struct State {
    incoming: Incoming,
    /// Read from the client, not yet handed on.
    held: VecDeque<Piece>,
    /// Handed to a connection that has not written a byte since it was taken.
    handed: Vec<Piece>,
    budget: Held,
    ended: bool,
    /// The client's body could not be read: it left, or it is not a body.
    broken: bool,
    /// The client sends nothing until it is told to go on (`Expect: 100-continue`), which hyper does at the first read.
    expects_continue: bool,
    unread: Unread,
}

impl State {
    /// The next piece that nobody has seen yet; `None` at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, hyper::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.expects_continue = false;
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        self.ended = self.incoming.is_end_stream();
        Poll::Ready(match frame {
            Some(Ok(frame)) => Some(Ok(match frame.into_data() {
                Ok(bytes) => Piece::Data(bytes),
                Err(frame) => Piece::Trailers(frame.into_trailers().unwrap_or_default()),
            })),
            Some(Err(error)) => {
                self.broken = true;
                Some(Err(error))
            }
            None => {
                self.ended = true;
                None
            }
        })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.ended {
            self.unread.set();
        }
    }
}

/// Why a naming body could not be collected.
#[derive(Debug)]
pub(super) enum CollectError {
    TooLarge,
    NoMemory,
    Broken,
    /// Nothing came for too long.
    Stalled,
}

/// A request's body; see the module.
#[derive(Clone)]
pub(super) struct RequestBody(Rc<RefCell<State>>);

impl RequestBody {
    /// A body that nothing was read of yet.
    pub(super) fn new(
        incoming: Incoming,
        expects_continue: bool,
        budget: Arc<Budget>,
        unread: Unread,
    ) -> Self {
        let ended = incoming.is_end_stream();
        Self(Rc::new(RefCell::new(State {
            incoming,
            held: VecDeque::new(),
            handed: Vec::new(),
            budget: Held::none(budget),
            ended,
            broken: false,
            expects_continue,
            unread,
        })))
    }

    /// Reads the whole body, up to `limit` bytes, and keeps it to be sent. Gives up when nothing comes for `patience`:
    /// what was read holds its part of the budget.
    pub(super) async fn collect(&self, limit: usize, patience: Duration) -> Result<Bytes, CollectError> {
        let expected = self.0.borrow().incoming.size_hint();
        if expected.lower() > limit as u64 {
            return Err(CollectError::TooLarge);
        }
        let mut pieces: Vec<Bytes> = Vec::new();
        let mut length = 0;
        loop {
            let next = poll_fn(|cx| self.0.borrow_mut().poll_read(cx));
            let next = tokio::time::timeout(patience, next).await.map_err(|_| CollectError::Stalled)?;
            let Some(piece) = next else { break };
            let mut state = self.0.borrow_mut();
            match piece.map_err(|_| CollectError::Broken)? {
                Piece::Data(bytes) => {
                    length += bytes.len();
                    if length > limit {
                        return Err(CollectError::TooLarge);
                    }
                    if !state.budget.take(bytes.len()) {
                        return Err(CollectError::NoMemory);
                    }
                    pieces.push(bytes);
                }
                trailers => state.held.push_back(trailers),
            }
        }
        let whole = join(pieces, length);
        if !whole.is_empty() {
            self.0.borrow_mut().held.push_front(Piece::Data(whole.clone()));
        }
        Ok(whole)
    }

    /// Reads ahead while the request waits. Ends only when the client's body broke off; otherwise pending, so
    /// that it can stand beside the wait.
    pub(super) async fn read_ahead(&self) {
        let mut held = 0;
        while held < READ_AHEAD {
            let Some(piece) = poll_fn(|cx| self.0.borrow_mut().poll_read(cx)).await else { break };
            let Ok(piece) = piece else { return };
            let mut state = self.0.borrow_mut();
            held += piece.len();
            // Nothing that was read is thrown away; without room in the budget this is the last piece.
            let room = state.budget.take(piece.len());
            state.held.push_back(piece);
            if !room {
                break;
            }
        }
        std::future::pending().await
    }

    /// Whether the client's body broke off or was none.
    pub(super) fn is_broken(&self) -> bool {
        self.0.borrow().broken
    }

    /// What a worker's connection sends. `written` tells whether that connection has taken anything yet.
    pub(super) fn to_send(&self, written: Written) -> SentBody {
        let from = written.bytes();
        SentBody { state: self.0.clone(), written, from }
    }

    /// Takes back what was handed to a connection that wrote nothing.
    pub(super) fn rewind(&self) {
        let mut state = self.0.borrow_mut();
        let handed = std::mem::take(&mut state.handed);
        for piece in handed.into_iter().rev() {
            state.held.push_front(piece);
        }
    }

    /// The worker has answered: nothing will be sent again.
    pub(super) fn release(&self) {
        let mut state = self.0.borrow_mut();
        state.handed.clear();
        if state.held.is_empty() {
            state.budget.give_back_all();
        }
    }

    /// Reads and drops the rest, within bounds. Returns whether the end was reached; if not, the connection
    /// cannot carry another request.
    pub(super) async fn discard(&self) -> bool {
        {
            let mut state = self.0.borrow_mut();
            state.held.clear();
            state.handed.clear();
            if state.ended || state.expects_continue {
                return state.ended;
            }
        }
        let rest = async {
            let mut dropped = 0;
            while let Some(piece) = poll_fn(|cx| self.0.borrow_mut().poll_read(cx)).await {
                let Ok(piece) = piece else { return false };
                dropped += piece.len();
                if dropped > DISCARD {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(DISCARD_FOR, rest).await.unwrap_or(false)
    }
}

fn join(mut pieces: Vec<Bytes>, length: usize) -> Bytes {
    if pieces.len() == 1 {
        return pieces.swap_remove(0);
    }
    let mut whole = BytesMut::with_capacity(length);
    for piece in pieces {
        whole.extend_from_slice(&piece);
    }
    whole.freeze()
}

/// A request's body as a worker's connection sends it.
pub(super) struct SentBody {
    state: Rc<RefCell<State>>,
    written: Written,
    from: u64,
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut state = self.state.borrow_mut();
        let piece = match state.held.pop_front() {
            Some(piece) => piece,
            None => match ready!(state.poll_read(cx)) {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            },
        };
        if self.written.bytes() == self.from {
            state.handed.push(piece.clone());
        } else {
            state.handed.clear();
        }
        Poll::Ready(Some(Ok(match piece {
            Piece::Data(bytes) => Frame::data(bytes),
            Piece::Trailers(trailers) => Frame::trailers(trailers),
        })))
    }

    fn is_end_stream(&self) -> bool {
        let state = self.state.borrow();
        state.held.is_empty() && state.ended
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.state.borrow();
        let held: u64 = state.held.iter().map(|piece| piece.len() as u64).sum();
        let rest = if state.ended { SizeHint::with_exact(0) } else { state.incoming.size_hint() };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(held));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint
    }
}
