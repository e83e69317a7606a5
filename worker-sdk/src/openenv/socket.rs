//! From a request to a WebSocket.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sha1::{Digest as _, Sha1};

use super::Environment;
use super::live::Core;
use super::talk::{Protocol, talk};
use super::wire::Wire;

/// What RFC 6455 puts behind a client's key.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Whether a request asks for a WebSocket.
pub(super) fn asks_for_one(request: &Request) -> bool {
    let says = |name, what: &str| words(request.headers(), name).any(|word| word.eq_ignore_ascii_case(what));
    *request.method() == Method::GET && says(CONNECTION, "upgrade") && says(UPGRADE, "websocket")
}

fn words(headers: &HeaderMap, name: axum::http::HeaderName) -> impl Iterator<Item = &str> + use<'_> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// Answers the request, and talks on the WebSocket on a task of its own.
pub(super) fn accept<E: Environment>(
    core: &Arc<Core<E>>,
    mut request: Request,
    protocol: Protocol,
) -> Response {
    let accepted = match accepted(request.headers()) {
        Ok(accepted) => accepted,
        Err(why) => {
            let words = format!("Failed to open a WebSocket connection: {why}.\n");
            return (StatusCode::BAD_REQUEST, words).into_response();
        }
    };
    let upgraded = hyper::upgrade::on(&mut request);
    let core = core.clone();
    // A stop waits for it, and tells it.
    core.tasks.clone().spawn(converse(core, upgraded, protocol));
    let headers = [
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, accepted),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

async fn converse<E: Environment>(core: Arc<Core<E>>, upgraded: OnUpgrade, protocol: Protocol) {
    match upgraded.await {
        Ok(stream) => talk(&core, Wire::new(TokioIo::new(stream)).await, protocol).await,
        Err(error) => tracing::debug!(%error, "a connection did not become a WebSocket"),
    }
}

fn accepted(headers: &HeaderMap) -> Result<HeaderValue, String> {
    let version = headers.get(SEC_WEBSOCKET_VERSION).and_then(|version| version.to_str().ok());
    if version != Some("13") {
        return Err(match version {
            Some(other) => format!("invalid Sec-WebSocket-Version header: {other}"),
            None => "missing Sec-WebSocket-Version header".to_owned(),
        });
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes);
    let is_key = |key: &&[u8]| STANDARD.decode(key).is_ok_and(|key| key.len() == 16);
    let key = key.filter(is_key).ok_or("missing or invalid Sec-WebSocket-Key header")?;
    let mut sum = Sha1::new();
    sum.update(key);
    sum.update(GUID);
    // Base64 is a header's value.
    HeaderValue::try_from(STANDARD.encode(sum.finalize())).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(of: &[(&'static str, &'static str)]) -> HeaderMap {
        of.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    /// RFC 6455's own example.
    #[test]
    fn a_key_is_answered() {
        let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let version = ("sec-websocket-version", "13");
        assert_eq!(accepted(&headers(&[key, version])).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for (wrong, why) in [
            (headers(&[key, ("sec-websocket-version", "12")]), "invalid Sec-WebSocket-Version header: 12"),
            (headers(&[key]), "missing Sec-WebSocket-Version header"),
            (headers(&[version]), "missing or invalid Sec-WebSocket-Key header"),
            (
                headers(&[version, ("sec-websocket-key", "eA==")]),
                "missing or invalid Sec-WebSocket-Key header",
            ),
        ] {
            assert_eq!(accepted(&wrong).unwrap_err(), why);
        }
    }

    #[test]
    fn an_upgrade_is_asked_for_in_any_case() {
        let request = |connection: &str, upgrade: &str| {
            let request = Request::builder().header("connection", connection).header("upgrade", upgrade);
            asks_for_one(&request.body(axum::body::Body::empty()).unwrap())
        };
        assert!(request("Upgrade", "websocket") && request("keep-alive, upgrade", "WebSocket"));
        assert!(!request("keep-alive", "websocket") && !request("Upgrade", "h2c"));
    }
}
