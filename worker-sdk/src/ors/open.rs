//! An open session: its setup, its calls, and its end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::live::{Live, deleted};
use super::routes::refusal;
use crate::Result;
use crate::errors::{Failure, catch_panic, detail};
use crate::http::to_json;
use crate::session::Released;

/// How long a request waits for the setup before its client is told to come again.
const SETUP_WAIT: Duration = Duration::from_secs(25);
/// When it should: seconds.
const SETUP_RETRY_AFTER: HeaderValue = HeaderValue::from_static("2");
/// How long a call's result is there for a client that lost its stream.
const LINGER: Duration = Duration::from_secs(60);

/// JSON, or the words of a failure; `None` while it runs.
pub(super) type Outcome = Option<Result<Arc<str>, Arc<str>>>;

/// A session that was created and has not ended.
pub(super) struct Open {
    live: Box<dyn Live>,
    /// What came of the setup, when it is done.
    setup: watch::Sender<Option<Result<()>>>,
    /// Its calls by ID, for [`LINGER`] after their end.
    calls: Mutex<HashMap<String, watch::Receiver<Outcome>>>,
    /// Cancelled when the session ends: whatever runs in it is dropped.
    ending: CancellationToken,
}

impl Open {
    /// Begins the setup.
    pub(super) fn begin(live: Box<dyn Live>) -> Arc<Self> {
        let (setup, calls) = (watch::Sender::new(None), Mutex::default());
        let open = Arc::new(Self { live, setup, calls, ending: CancellationToken::new() });
        let session = open.clone();
        drop(tokio::spawn(async move {
            let done = session.until_the_end(session.live.setup()).await;
            if let Err(failure) = &done {
                tracing::error!(error = %failure, "the setup of a session failed");
            }
            session.setup.send_replace(Some(done));
        }));
        open
    }

    /// Waits for `work`; a panic of it is a failure, and so is the session's end.
    async fn until_the_end<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        // What is dropped at the session's end may panic, too.
        let done = catch_panic(async {
            tokio::select! {
                () = self.ending.cancelled() => Err(deleted()),
                done = work => done,
            }
        });
        done.await.flatten()
    }

    /// What is wrong already, without waiting for the setup.
    pub(super) fn failed(&self) -> Option<Response> {
        match &*self.setup.borrow() {
            Some(Err(failure)) => Some(refusal(failure.clone())),
            Some(Ok(())) | None => None,
        }
    }

    /// Waits for the setup.
    pub(super) async fn ready(&self) -> Result<(), Response> {
        let mut setup = self.setup.subscribe();
        let done = async { setup.wait_for(Option::is_some).await.ok().and_then(|done| done.clone()) };
        match tokio::time::timeout(SETUP_WAIT, done).await {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(Some(Err(failure))) => Err(refusal(failure)),
            Ok(None) => Err(refusal(deleted())),
            Err(_elapsed) => {
                let mut reply = detail(StatusCode::SERVICE_UNAVAILABLE, "Environment still starting.");
                let headers = reply.headers_mut();
                headers.insert("x-backend-state", HeaderValue::from_static("starting"));
                headers.insert(header::RETRY_AFTER, SETUP_RETRY_AFTER);
                Err(reply)
            }
        }
    }

    /// What its client is told of tools.
    pub(super) fn tools(&self) -> &Value {
        self.live.tools()
    }

    pub(super) async fn prompt(&self) -> Result<Vec<super::Block>> {
        self.until_the_end(self.live.prompt()).await
    }

    pub(super) async fn messages(&self) -> Result<Vec<super::Message>> {
        self.until_the_end(self.live.messages()).await
    }

    /// Begins a call, which goes on if its client leaves; its ID, and what will come of it.
    pub(super) fn call(
        self: &Arc<Self>,
        name: String,
        input: Map<String, Value>,
    ) -> (String, watch::Receiver<Outcome>) {
        let id = Uuid::new_v4().simple().to_string();
        let (outcome, waits) = watch::channel(None);
        self.calls().insert(id.clone(), waits.clone());
        let (session, own_id) = (self.clone(), id.clone());
        drop(tokio::spawn(async move {
            let called = session.until_the_end(session.live.call(name.clone(), input)).await;
            let written = called.and_then(|called| to_json(&called));
            if let Err(failure) = &written {
                tracing::error!(tool = name, error = %failure, "a tool failed");
            }
            let words = |failure: Failure| Arc::from(failure.to_string());
            let json = written.map(|json| Arc::from(Box::<str>::from(json))).map_err(words);
            outcome.send_replace(Some(json));
            tokio::select! {
                () = session.ending.cancelled() => {}
                () = tokio::time::sleep(LINGER) => {}
            }
            session.calls().remove(&own_id);
        }));
        (id, waits)
    }

    /// A call that was begun, for a client that lost its stream.
    pub(super) fn begun(&self, id: &str) -> Option<watch::Receiver<Outcome>> {
        self.calls().get(id).cloned()
    }

    /// Gives up what runs, then the environment.
    pub(super) async fn end(&self, why: Released) {
        self.ending.cancel();
        self.live.teardown(why).await;
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<String, watch::Receiver<Outcome>>> {
        // Nothing panics that holds it.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
