//! What a check is told beside the seed.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::Value;

use super::Held;

/// The default of [`Options::timeout`].
const TIMEOUT: Duration = Duration::from_secs(30);

/// The default of [`Options::max_reply_bytes`].
const MAX_REPLY_BYTES: usize = 64 << 20;

type HoldsState = Arc<dyn Fn(String) -> BoxFuture<'static, Held> + Send + Sync>;

/// How a server is checked.
#[derive(Clone)]
pub struct Options {
    pub(super) keeps_state: bool,
    pub(super) strict: bool,
    pub(super) verify_body: Option<Value>,
    pub(super) timeout: Duration,
    pub(super) max_reply_bytes: usize,
    holds_state: Option<HoldsState>,
}

impl Options {
    /// A server without state, not strict, nothing verified.
    pub fn new() -> Self {
        Self {
            keeps_state: false,
            strict: false,
            verify_body: None,
            timeout: TIMEOUT,
            max_reply_bytes: MAX_REPLY_BYTES,
            holds_state: None,
        }
    }

    /// Whether the server keeps state for each session; default false. One that does must refuse what would bring
    /// back, rebind or take away a session, and answer a verify of a closed one with the masked sample.
    #[must_use]
    pub fn keeps_state(mut self, keeps_state: bool) -> Self {
        self.keeps_state = keeps_state;
        self
    }

    /// Whether statuses and bodies must be exactly those that NeMo Gym's documentation has; default false.
    ///
    /// 409 for an ID that is closed or belongs to another episode; 200 for the rest; no fields in replies but the
    /// documented ones; a masked sample with reward 0 and `failure_kind: session_lost`.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// A body of `POST /verify` that fits the seed; without it nothing is verified, which is the default.
    ///
    /// Where it has a `resources_session_id` or an `episode_id`, the scenario's is put in its place.
    #[must_use]
    pub fn verify_body(mut self, body: Value) -> Self {
        self.verify_body = Some(body);
        self
    }

    /// Asks what the server holds for a session ID; by default nobody is asked, and state that is not released is
    /// not seen. The answer may be a `bool`, an `Option<String>`, [`Held`], or a `Result` of those.
    #[must_use]
    pub fn holds_state<F, A>(mut self, ask: F) -> Self
    where
        F: Fn(String) -> A + Send + Sync + 'static,
        A: Future<Output: Into<Held>> + Send + 'static,
    {
        self.holds_state = Some(Arc::new(move |id| ask(id).map(Into::into).boxed()));
        self
    }

    /// How long one request may take, its reply's body included, and one question to `holds_state`; default 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The longest reply body that is read; default 64 MiB, since a verify's reply carries the conversation. A longer
    /// one is a violation.
    #[must_use]
    pub fn max_reply_bytes(mut self, bytes: usize) -> Self {
        self.max_reply_bytes = bytes;
        self
    }

    /// What the server holds for that session; `None` if there is nobody to ask.
    pub(super) async fn held(&self, session: &str) -> Option<Held> {
        let answer = self.holds_state.as_ref()?(session.to_owned());
        match tokio::time::timeout(self.timeout, answer).await {
            Ok(held) => Some(held),
            Err(_) => Some(Held::Unknown(format!("no answer within {:?}", self.timeout))),
        }
    }

    pub(super) fn asks_for_state(&self) -> bool {
        self.holds_state.is_some()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("keeps_state", &self.keeps_state)
            .field("strict", &self.strict)
            .field("verify_body", &self.verify_body.is_some())
            .field("holds_state", &self.holds_state.is_some())
            .field("timeout", &self.timeout)
            .field("max_reply_bytes", &self.max_reply_bytes)
            .finish()
    }
}
