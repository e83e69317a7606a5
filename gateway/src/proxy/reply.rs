//! What goes back to the client: a worker's reply as it comes, or one of the gateway's own.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::{
    Refusal, forward,
    last_words::LastWords,
    observe::Account,
    pool::{Connection, Pool},
    settle::Settlement,
};
use crate::session::StepWatch;

/// A reply's body was cut: the worker broke off. The client sees a broken transfer, never a whole one.
#[derive(Debug)]
pub(super) struct CutOff(String);

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the worker's reply broke off: {}", self.0)
    }
}

impl std::error::Error for CutOff {}

/// The body of a reply; carries the request's settlement and account to its end.
#[derive(Debug)]
pub(super) struct ReplyBody {
    source: Source,
    account: Rc<Account>,
}

#[derive(Debug)]
enum Source {
    Own(Option<Bytes>),
    Worker(Box<WorkerReply>),
}

impl ReplyBody {
    pub(super) fn own(body: Bytes, account: Rc<Account>) -> Self {
        Self { source: Source::Own((!body.is_empty()).then_some(body)), account }
    }

    pub(super) fn worker(reply: WorkerReply, account: Rc<Account>) -> Self {
        let mut reply = Box::new(reply);
        if reply.incoming.is_end_stream() {
            reply.settle(&account);
        }
        Self { source: Source::Worker(reply), account }
    }
}

/// A worker's reply on its way.
pub(super) struct WorkerReply {
    pub(super) incoming: Incoming,
    pub(super) settlement: Option<Settlement>,
    pub(super) watch: Option<StepWatch>,
    /// Where the connection goes at the body's end; `None` if it is not to be used again.
    pub(super) back: Option<(Pool, usize, Connection)>,
    /// The body ends where the connection does, so that its end may be the worker's.
    pub(super) ends_with_connection: bool,
    pub(super) exit_news: Option<Pin<Box<dyn Future<Output = bool>>>>,
    /// The gateway has ended it.
    pub(super) is_over: bool,
    /// Why the transfer broke off, while it is not known whether the worker has exited.
    pub(super) broken: Option<String>,
    /// How the gateway ends the stream if the worker has exited.
    pub(super) last_words: Option<LastWords>,
    /// Of a stream without an end: the gateway's stop, at which it ends. Nobody could wait for it.
    pub(super) stop: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl fmt::Debug for WorkerReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerReply").field("settlement", &self.settlement).finish_non_exhaustive()
    }
}

impl WorkerReply {
    /// The whole body is here: the connection is free and the request is done, before its last byte goes out.
    fn settle(&mut self, account: &Account) {
        let Some(settlement) = self.settlement.take() else { return };
        let now = Instant::now();
        if let Some((pool, server, connection)) = self.back.take() {
            pool.put(server, settlement.worker().id, connection, now);
        }
        settlement.finish(now);
        account.ended(now);
    }

    fn poll(
        &mut self,
        account: &Account,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if self.exit_news.is_some() {
            return self.poll_end(account, cx);
        }
        if self.stop.as_mut().is_some_and(|stop| stop.as_mut().poll(cx).is_ready()) {
            (self.back, self.is_over) = (None, true);
            self.settle(account);
            return Poll::Ready(None);
        }
        match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let (Some(words), Some(bytes)) = (&mut self.last_words, frame.data_ref()) {
                    words.follow(bytes);
                }
                if let (Some(watch), Some(bytes)) = (&mut self.watch, frame.data_ref()) {
                    watch.feed(bytes);
                    if watch.is_over() {
                        self.watch = None;
                        if let Some(settlement) = &mut self.settlement {
                            settlement.episode_over();
                        }
                    }
                }
                if self.incoming.is_end_stream() && !self.ends_with_connection {
                    self.settle(account);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "a worker's reply broke off");
                if self.last_words.is_none() {
                    return Poll::Ready(Some(Err(CutOff(error.to_string()))));
                }
                self.broken = Some(error.to_string());
                self.poll_end(account, cx)
            }
            None if self.ends_with_connection => self.poll_end(account, cx),
            None => {
                self.settle(account);
                Poll::Ready(None)
            }
        }
    }

    /// Whether the end of the connection, or a break, was the end of the worker.
    fn poll_end(
        &mut self,
        account: &Account,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        let Some(settlement) = &self.settlement else { return Poll::Ready(None) };
        let worker = settlement.worker().clone();
        let news =
            self.exit_news.get_or_insert_with(|| Box::pin(async move { forward::has_exited(&worker).await }));
        let exited = ready!(news.as_mut().poll(cx));
        self.exit_news = None;
        self.ends_with_connection = false;
        match (exited, self.broken.take()) {
            (true, _) => Poll::Ready(Some(self.say_last_words(account))),
            (false, Some(error)) => Poll::Ready(Some(Err(CutOff(error)))),
            (false, None) => {
                self.settle(account);
                Poll::Ready(None)
            }
        }
    }

    /// What comes last of a reply whose worker has exited.
    fn say_last_words(&mut self, account: &Account) -> Result<Frame<Bytes>, CutOff> {
        let lost = self.settlement.as_ref().and_then(Settlement::refusal_after_exit).map(Refusal::from);
        let (Some(words), Some(lost)) = (self.last_words.take(), lost) else {
            return Err(CutOff("the worker exited".into()));
        };
        (self.back, self.is_over) = (None, true);
        self.settle(account);
        Ok(Frame::data(words.say(&lost)))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        let Self { source, account } = &mut *self;
        match source {
            Source::Own(body) => Poll::Ready(body.take().map(|bytes| Ok(Frame::data(bytes)))),
            Source::Worker(reply) => reply.poll(account, cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Own(body) => body.is_none(),
            Source::Worker(reply) => reply.incoming.is_end_stream() && !reply.ends_with_connection,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Own(body) => SizeHint::with_exact(body.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Source::Worker(reply) => reply.incoming.size_hint(),
        }
    }
}
