//! Refusals in OpenEnv's own words: its clients read frames and JSON-RPC answers, not statuses.

use std::rc::Rc;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE},
};
use hyper::{ext::ReasonPhrase, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use sha1::{Digest, Sha1};
use tokio::io::split;

use super::{
    super::{self as proxy, exchange::Exchange, reply::ReplyBody},
    alone::Alone,
    carry::speak,
    frames,
};
use crate::{
    config::Kind,
    session::{Channel, Refusal, Route, Rule, SessionId, capacity_answer, capacity_frame},
};

/// What a WebSocket's key is hashed with (RFC 6455, 4.2.2).
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What a request of OpenEnv's is, as far as an answer goes by it.
#[derive(Debug)]
pub(in super::super) enum OwnWords {
    /// JSON-RPC over HTTP.
    Rpc,
    /// A WebSocket, and what proves that it was accepted.
    WebSocket(Channel, HeaderValue),
}

impl OwnWords {
    /// `None` if refusals are said as to anyone else.
    pub(in super::super) fn of(rule: &Rule, route: Route, headers: &HeaderMap) -> Option<Self> {
        match rule.channel(route) {
            Some(channel) => Some(Self::WebSocket(channel, accept(headers.get(SEC_WEBSOCKET_KEY)?)?)),
            None => rule.hears_reply(route).then_some(Self::Rpc),
        }
    }

    /// Says it; `None` if it is nothing that the protocol has words for.
    pub(in super::super) fn answer(
        self,
        exchange: &Exchange<'_>,
        refusal: &Refusal,
        body: &[u8],
        upgrade: Option<OnUpgrade>,
    ) -> Option<Response<ReplyBody>> {
        let (response, first) = match (self, refusal) {
            (Self::Rpc, Refusal::CapacityReached { active, max }) => {
                (json(capacity_answer(body, *active, *max)), None)
            }
            (Self::Rpc, Refusal::SessionLost(session)) => (gone(refusal, session), None),
            (Self::WebSocket(channel, accept), Refusal::CapacityReached { active, max }) => {
                let mut said = Vec::new();
                frames::text(capacity_frame(channel, *active, *max), &mut said);
                (switch(accept), Some((Alone::refused(channel, &mut said), said)))
            }
            (Self::WebSocket(channel, accept), Refusal::SessionLost(session)) => {
                let alone = Alone::lost_before(channel, session.clone());
                (switch(accept), Some((alone, Vec::new())))
            }
            _ => return None,
        };
        if let Some((alone, said)) = first {
            spawn(exchange, upgrade?, alone, &said);
        }
        let account = exchange.account.clone();
        account.refused(&proxy::Refusal::from(refusal.clone()));
        account.answered(response.status());
        let (parts, body) = response.into_parts();
        Some(Response::from_parts(parts, ReplyBody::own(body, account)))
    }
}

/// Speaks over the socket, once it is one.
fn spawn(exchange: &Exchange<'_>, upgrade: OnUpgrade, alone: Alone, said: &[u8]) {
    let stop = exchange.core.shared.stop.clone();
    let tracker = stop.connections.clone();
    let account = Rc::clone(exchange.account);
    let said = BytesMut::from(said);
    tokio::task::spawn_local(tracker.track_future(async move {
        let spoken = async {
            let mut client = split(TokioIo::new(upgrade.await.map_err(std::io::Error::other)?));
            speak(&mut client, alone, said).await
        };
        tokio::select! {
            () = stop.cut.cancelled() => {}
            spoken = spoken => {
                if let Err(error) = spoken {
                    tracing::debug!(%error, "a client left without its close");
                }
            }
        }
        drop(account);
    }));
}

fn accept(key: &HeaderValue) -> Option<HeaderValue> {
    let hash = Sha1::new().chain_update(key.as_bytes()).chain_update(KEY_SUFFIX).finalize();
    HeaderValue::try_from(BASE64_STANDARD.encode(hash)).ok()
}

fn switch(accept: HeaderValue) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    response
}

fn json(text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// 410, with the session in the reason: that is all of it that OpenEnv's client shows.
fn gone(refusal: &Refusal, session: &SessionId) -> Response<Bytes> {
    let mut response = proxy::Refusal::from(refusal.clone()).reply(Kind::OpenEnv, false);
    if let Ok(reason) = ReasonPhrase::try_from(format!("Session {session} is lost")) {
        response.extensions_mut().insert(reason);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_answered_as_the_standard_has_it() {
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept(&key).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
