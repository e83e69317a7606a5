//! What changes in a head between client and worker, and on the way back.

use std::net::SocketAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version,
    header::{CONNECTION, COOKIE, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE},
    request::Parts,
    uri::PathAndQuery,
};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Headers that speak of one connection and end with it (RFC 9110, 7.6.1).
const HOP_BY_HOP: [HeaderName; 7] =
    [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// The head that a worker gets; built anew for each try.
#[derive(Debug)]
pub(super) struct Head {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    /// The protocol that the client wants to change to.
    upgrade: Option<HeaderValue>,
}

impl Head {
    /// Takes out what speaks of the client's connection, adds who the client is.
    pub(super) fn new(parts: Parts, peer: &Peer) -> Self {
        let Parts { method, uri, mut headers, version, .. } = parts;
        let upgrade = wanted_upgrade(version, &headers);
        if version == Version::HTTP_2 {
            to_http1(&uri, &mut headers);
        }
        remove_hop_by_hop(&mut headers);
        headers.remove(EXPECT); // answered here: the body comes when the worker's connection takes it
        peer.describe(&mut headers);
        add_host(&uri, &mut headers);
        Self { method, uri: origin_form(uri), headers, upgrade }
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub(super) fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }

    pub(super) fn is_upgrade(&self) -> bool {
        self.upgrade.is_some()
    }

    /// A request to send, as often as needed.
    pub(super) fn request<B>(&self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        if let Some(protocol) = &self.upgrade {
            request.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
            request.headers_mut().insert(UPGRADE, protocol.clone());
        }
        request
    }
}

/// A client's address, as the worker is told of it.
#[derive(Debug)]
pub(super) struct Peer {
    address: HeaderValue,
}

impl Peer {
    pub(super) fn new(address: SocketAddr) -> Self {
        let text = address.ip().to_string();
        Self { address: HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown")) }
    }

    /// Sets `X-Forwarded-For` (behind what is there), `-Proto` and `-Host` (where a proxy before us has not).
    fn describe(&self, headers: &mut HeaderMap) {
        let value = match chain(headers) {
            None => self.address.clone(),
            Some(mut chain) => {
                chain.extend_from_slice(b", ");
                chain.extend_from_slice(self.address.as_bytes());
                HeaderValue::from_bytes(&chain).unwrap_or_else(|_| self.address.clone())
            }
        };
        headers.insert(FORWARDED_FOR, value);
        headers.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static("http"));
        if let Some(host) = headers.get(HOST).cloned() {
            headers.entry(FORWARDED_HOST).or_insert(host);
        }
    }
}

/// The addresses that proxies before us have noted.
fn chain(headers: &HeaderMap) -> Option<Vec<u8>> {
    let mut lines = headers.get_all(FORWARDED_FOR).iter();
    let mut chain = lines.next()?.as_bytes().to_vec();
    for line in lines {
        chain.extend_from_slice(b", ");
        chain.extend_from_slice(line.as_bytes());
    }
    Some(chain)
}

/// Takes a worker's connection headers out of its reply; an accepted upgrade keeps those that name it.
pub(super) fn clean_reply(status: StatusCode, headers: &mut HeaderMap) {
    let upgrade =
        (status == StatusCode::SWITCHING_PROTOCOLS).then(|| headers.get(UPGRADE).cloned()).flatten();
    remove_hop_by_hop(headers);
    if status == StatusCode::SWITCHING_PROTOCOLS {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        if let Some(protocol) = upgrade {
            headers.insert(UPGRADE, protocol);
        }
    }
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let named: Vec<HeaderName> =
            tokens(headers, CONNECTION).filter_map(|name| name.parse().ok()).collect();
        for name in named {
            headers.remove(name);
        }
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// The comma-separated words of a header.
fn tokens(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

/// Whether a request asks to change the protocol, and is taken at its word.
pub(super) fn asks_for_upgrade(parts: &Parts) -> bool {
    wanted_upgrade(parts.version, &parts.headers).is_some()
}

fn wanted_upgrade(version: Version, headers: &HeaderMap) -> Option<HeaderValue> {
    let protocol = headers.get(UPGRADE)?;
    // A client that offers HTTP/2 (curl --http2) is served as it came.
    let is_h2c = protocol.as_bytes().eq_ignore_ascii_case(b"h2c");
    let asks = tokens(headers, CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
    (version == Version::HTTP_11 && asks && !is_h2c).then(|| protocol.clone())
}

/// HTTP/2 names the host in the target and may split `Cookie` into many lines (RFC 9113, 8.2.3).
fn to_http1(uri: &Uri, headers: &mut HeaderMap) {
    if let Some(host) = uri.authority().and_then(|a| HeaderValue::from_str(a.as_str()).ok()) {
        headers.entry(HOST).or_insert(host);
    }
    let mut lines = headers.get_all(COOKIE).iter();
    if let (Some(first), Some(second)) = (lines.next(), lines.next()) {
        let mut whole = first.as_bytes().to_vec();
        for line in std::iter::once(second).chain(lines) {
            whole.extend_from_slice(b"; ");
            whole.extend_from_slice(line.as_bytes());
        }
        if let Ok(value) = HeaderValue::from_bytes(&whole) {
            headers.insert(COOKIE, value);
        }
    }
}

/// A request of HTTP/1.0 may name no host, one of HTTP/1.1 must (RFC 9112, 3.2): strict workers (h11) refuse it else.
fn add_host(uri: &Uri, headers: &mut HeaderMap) {
    let named = uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    headers.entry(HOST).or_insert_with(|| named.unwrap_or(HeaderValue::from_static("localhost")));
}

/// A worker is asked for a path; the host stands in its header.
fn origin_form(uri: Uri) -> Uri {
    if uri.scheme().is_none() && uri.authority().is_none() {
        return uri;
    }
    uri.into_parts().path_and_query.map_or(Uri::from(PathAndQuery::from_static("/")), Uri::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(build: impl FnOnce(http::request::Builder) -> http::request::Builder) -> Parts {
        build(Request::builder().uri("/step?x=1")).body(()).unwrap().into_parts().0
    }

    fn sent(build: impl FnOnce(http::request::Builder) -> http::request::Builder) -> Request<()> {
        Head::new(parts(build), &Peer::new("192.0.2.7:9".parse().unwrap())).request(())
    }

    #[test]
    fn hop_by_hop_headers_stay_behind() {
        let request = sent(|r| {
            r.header("connection", "close, X-Mine")
                .header("x-mine", "1")
                .header("keep-alive", "timeout=5")
                .header("te", "trailers")
                .header("transfer-encoding", "chunked")
                .header("proxy-connection", "close")
                .header("expect", "100-continue")
                .header("x-theirs", "2")
        });
        let names: Vec<&str> = request.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-theirs", "x-forwarded-for", "x-forwarded-proto", "host"]);
    }

    #[test]
    fn the_client_is_named_behind_proxies_before_us() {
        let request = sent(|r| {
            r.header("x-forwarded-for", "10.0.0.1")
                .header("x-forwarded-proto", "https")
                .header("host", "env:80")
        });
        assert_eq!(request.headers()["x-forwarded-for"], "10.0.0.1, 192.0.2.7");
        assert_eq!(request.headers()["x-forwarded-proto"], "https");
        assert_eq!(request.headers()["x-forwarded-host"], "env:80");
    }

    #[test]
    fn a_worker_always_gets_a_host() {
        let request = sent(|r| r.version(Version::HTTP_10));
        assert_eq!(request.headers()["host"], "localhost");
        assert!(!request.headers().contains_key("x-forwarded-host"), "nobody said it");
        assert_eq!(sent(|r| r.uri("http://env.test/step")).headers()["host"], "env.test");
        assert_eq!(sent(|r| r.header("host", "env")).headers()["host"], "env");
        assert_eq!(
            sent(|r| r.header("connection", "host").header("host", "env")).headers()["host"],
            "localhost"
        );
    }

    #[test]
    fn an_upgrade_passes_and_a_prior_h2c_offer_does_not() {
        let request = sent(|r| r.header("connection", "keep-alive, Upgrade").header("upgrade", "websocket"));
        assert_eq!(request.headers()["upgrade"], "websocket");
        assert_eq!(request.headers()["connection"], "upgrade");
        let request = sent(|r| {
            r.header("connection", "Upgrade, HTTP2-Settings")
                .header("upgrade", "h2c")
                .header("http2-settings", "x")
        });
        assert!(
            !request.headers().contains_key("upgrade") && !request.headers().contains_key("http2-settings")
        );
    }

    #[test]
    fn http2_becomes_http1() {
        let request = sent(|r| {
            r.version(Version::HTTP_2)
                .uri("http://env.test/step")
                .header("cookie", "a=1")
                .header("cookie", "b=2")
        });
        assert_eq!(request.uri(), "/step");
        assert_eq!(request.headers()["host"], "env.test");
        assert_eq!(request.headers().get_all("cookie").iter().collect::<Vec<_>>(), ["a=1; b=2"]);
    }
}
