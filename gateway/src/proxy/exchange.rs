//! One request, from its head to the head of its reply: read what the rule needs, decide, forward.

use std::{cell::Cell, rc::Rc, sync::Arc, time::Instant};

use bytes::Bytes;
use http::{
    Method, Response, StatusCode,
    header::{ACCEPT_ENCODING, TRANSFER_ENCODING, UPGRADE},
    request::Parts,
};
use hyper::{body::Incoming, upgrade::OnUpgrade};

use super::{
    Refusal,
    body::{CollectError, RequestBody},
    core::Core,
    dispatch::Dispatcher,
    forward::{self, Failure},
    headers::{self, Head, Peer},
    last_words::LastWords,
    observe::Account,
    pool::Connection,
    reply::{ReplyBody, WorkerReply},
    settle::Settlement,
    state::ServerState,
    tunnel::Tunnel,
};
use crate::session::{Route, SessionId, StepWatch};

/// What one request is served with.
pub(super) struct Exchange<'a> {
    pub(super) core: &'a Rc<Core>,
    pub(super) server: &'a Arc<ServerState>,
    pub(super) route: Route,
    pub(super) body: &'a RequestBody,
    pub(super) account: &'a Rc<Account>,
    /// The time of the last step that may have waited.
    pub(super) now: Cell<Instant>,
}

impl Exchange<'_> {
    /// Carries the request out. An error is the gateway's own answer.
    pub(super) async fn run(
        &self,
        parts: Parts,
        peer: &Peer,
        upgrade: Option<OnUpgrade>,
    ) -> Result<Response<ReplyBody>, Refusal> {
        if parts.method == Method::CONNECT {
            return Err(Refusal::BadRequest("this is no forward proxy: CONNECT is not served"));
        }
        // Nothing of a connection's is accepted while it ends; but its task may not have heard of the stop yet.
        if self.route.is_start() && self.core.shared.stop.begun.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        let query = parts.uri.path_and_query().cloned();
        let query = query.as_ref().and_then(|p| p.query());
        let is_head = parts.method == Method::HEAD;
        let mut head = Head::new(parts, peer);
        if self.server.rule.watches_reply(self.route) {
            head.headers_mut().remove(ACCEPT_ENCODING); // a compressed reply cannot be looked at as it passes
        }
        let naming = self.naming_body().await?;
        let route = if head.is_upgrade() { self.route.upgraded() } else { self.route };

        let name = |head: &Head| {
            let (server, unix) = (self.server, super::Clock::unix());
            let expect = |id: &SessionId| server.sessions.expect(id);
            server.rule.name_expecting(route, head.headers(), query, naming.as_deref(), unix, expect)
        };
        let mut dispatcher = Dispatcher::new(self, route);
        let (mut named, mut settlement) = dispatcher.wait(|| name(&head)).await?;
        if named.is_minted() {
            self.server.rule.prepare(&named, head.headers_mut(), super::Clock::unix());
        }
        let (response, connection) = loop {
            self.account.sent_to(settlement.worker().id.slot);
            let worker = settlement.worker();
            let sent =
                forward::send(&self.core.pool, self.server, worker, &head, self.body, self.now.get()).await;
            match sent {
                Ok(reply) => break reply,
                Err(Failure::Unreached(error)) => {
                    let again = dispatcher.elsewhere(named, settlement, &error).await?;
                    (named, settlement) = again;
                }
                Err(failure) => return Err(self.refusal(&settlement, failure).await),
            }
        };
        self.body.release();
        let upgrade = upgrade.filter(|_| head.is_upgrade());
        let call = naming.as_deref().and_then(|body| self.server.rule.call_id(route, body));
        self.answer(response, connection, settlement, Asked { is_head, upgrade, call })
    }

    /// The whole body, on the routes whose body the rule reads.
    async fn naming_body(&self) -> Result<Option<Bytes>, Refusal> {
        if !self.server.rule.reads_body(self.route) {
            return Ok(None);
        }
        let settings = &self.server.config.settings;
        // What is over the whole budget would be refused again and again.
        let limit = settings.max_naming_body_bytes.min(self.core.shared.budget.limit());
        let collected = self.body.collect(limit, settings.client_idle_timeout).await;
        self.now.set(Instant::now());
        collected.map(Some).map_err(|error| match error {
            CollectError::TooLarge => Refusal::BodyTooLarge { limit },
            CollectError::NoMemory => Refusal::AtCapacity,
            CollectError::Broken => Refusal::BROKEN_BODY,
            CollectError::Stalled => {
                Refusal::BadRequest("no more of the body came within client_idle_timeout_seconds")
            }
        })
    }

    /// What a request without a reply gets: 410 if its owner is gone, else what the worker's failure is.
    async fn refusal(&self, settlement: &Settlement, failure: Failure) -> Refusal {
        let worker = settlement.worker();
        match failure {
            Failure::ClientBody => Refusal::BROKEN_BODY,
            Failure::TimedOut(limit) => Refusal::WorkerTimeout { limit: limit.as_secs() },
            Failure::Unreached(_) | Failure::Broken(_) => {
                let what = match failure {
                    Failure::Broken(what) => what,
                    _ => "it could not be reached".into(),
                };
                if !forward::has_exited(worker).await {
                    let name = &self.server.config.name;
                    tracing::warn!(server = name, slot = worker.id.slot, what, "a worker gave no reply");
                    return Refusal::WorkerError(format!(
                        "worker {} of server {name} gave no reply: {what}",
                        worker.id
                    ));
                }
                match settlement.refusal_after_exit() {
                    Some(refusal) => refusal.into(),
                    None => Refusal::WorkerError(format!(
                        "worker {} of server {} exited before it replied",
                        worker.id, self.server.config.name
                    )),
                }
            }
        }
    }

    /// Settles what the reply's head decides, and sends it on its way.
    fn answer(
        &self,
        response: Response<Incoming>,
        connection: Connection,
        mut settlement: Settlement,
        asked: Asked,
    ) -> Result<Response<ReplyBody>, Refusal> {
        let (mut parts, incoming) = response.into_parts();
        let tunnel = match (parts.status, asked.upgrade, parts.extensions.remove::<OnUpgrade>()) {
            (StatusCode::SWITCHING_PROTOCOLS, Some(client), Some(worker)) => Some((client, worker)),
            (StatusCode::SWITCHING_PROTOCOLS, ..) => {
                let what =
                    format!("worker {} changed to a protocol that nobody asked for", settlement.worker().id);
                return Err(Refusal::WorkerError(what));
            }
            _ => None,
        };
        let unix = super::Clock::unix;
        let reply = self.server.rule.read_reply(self.route, parts.status, &parts.headers, unix);
        let effects = settlement.reply(&reply);
        if effects.clashes {
            return Err(Refusal::WorkerError(format!(
                "worker {} began a session under an ID that another worker has given out: IDs must differ between \
                 workers, or the server have one (num_workers: 1)",
                settlement.worker().id
            )));
        }
        self.server.check_cookie(&parts.headers, reply.cookie.is_some());
        let ends_with_connection = ends_with_connection(asked.is_head, &parts, &incoming);
        headers::clean_reply(parts.status, &mut parts.headers);
        self.server.rule.apply(&effects, &mut parts.headers, unix);
        let account = self.account.clone();
        account.answered(parts.status);

        if let Some((client, worker)) = tunnel {
            let stop = self.core.shared.stop.clone();
            let tracker = stop.connections.clone();
            let tunnel = Tunnel { client, worker, settlement, account, stop };
            tokio::task::spawn_local(tracker.track_future(tunnel.run()));
            return Ok(Response::from_parts(parts, ReplyBody::own(Bytes::new(), self.account.clone())));
        }
        // OpenEnv closes after a 500 without saying so; a 5xx is rare enough for a new connection.
        let reuse = !parts.status.is_server_error() && !ends_with_connection;
        let reply = WorkerReply {
            last_words: LastWords::of(asked.call, &parts.headers),
            incoming,
            settlement: Some(settlement),
            watch: self.server.rule.watches_reply(self.route).then(StepWatch::default),
            back: reuse.then(|| (self.core.pool.clone(), self.server.index, connection)),
            ends_with_connection,
            exit_news: None,
            broken: None,
            is_over: false,
            stop: self
                .route
                .is_endless()
                .then(|| Box::pin(self.core.shared.stop.begun.clone().cancelled_owned())),
        };
        Ok(Response::from_parts(parts, ReplyBody::worker(reply, account)))
    }
}

/// What of a request its reply depends on.
struct Asked {
    is_head: bool,
    /// The client's side of the upgrade that it asked for.
    upgrade: Option<OnUpgrade>,
    /// The ID of an MCP request, as JSON.
    call: Option<String>,
}

/// A body with neither length nor chunks ends where its connection does.
fn ends_with_connection(is_head: bool, parts: &http::response::Parts, incoming: &Incoming) -> bool {
    use hyper::body::Body;
    !is_head
        && incoming.size_hint().exact().is_none()
        && !parts.headers.contains_key(TRANSFER_ENCODING)
        && !parts.headers.contains_key(UPGRADE)
}
