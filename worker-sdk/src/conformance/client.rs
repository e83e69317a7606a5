//! Requests as an environment server sends them: a session's cookies are those that its seed's reply set.

use std::{error::Error, fmt::Write as _};

use reqwest::{
    Response, Url,
    header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderValue, SET_COOKIE},
    redirect::Policy,
};
use serde_json::Value;

use super::Options;

/// A server by its URL.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: String,
    max_reply_bytes: usize,
}

/// A whole reply.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) cookies: Cookies,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// Whether nothing answers at that path, in the words of FastAPI; a handler's own 404 has others.
    pub(super) fn has_no_route(&self) -> bool {
        let words = match self.status {
            404 => "Not Found",
            405 => "Method Not Allowed",
            _ => return false,
        };
        serde_json::from_slice::<Value>(&self.body).is_ok_and(|body| body["detail"] == words)
    }
}

/// Why there is no reply.
#[derive(Debug)]
pub(super) struct NoReply {
    pub(super) why: String,
    /// Nothing listens there: further requests are in vain.
    pub(super) unreachable: bool,
}

impl Client {
    pub(super) fn new(url: &str, options: &Options) -> Result<Self, NoReply> {
        let unusable = |why| NoReply { why, unreachable: true };
        let base = Url::parse(url).map_err(|error| unusable(format!("{url} is no URL: {error}")))?;
        let is_tls = match base.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(unusable(format!("{url}: only http:// and https:// can be checked"))),
        };
        let http = reqwest::Client::builder()
            .timeout(options.timeout)
            .redirect(Policy::none())
            // The system's certificates, read only where they are needed.
            .tls_built_in_root_certs(is_tls)
            // Neither proxies of the environment nor kept connections, which a server may close under a request.
            .no_proxy()
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| unusable(chain(&error)))?;
        let base = url.trim_end_matches('/').to_owned();
        Ok(Self { http, base, max_reply_bytes: options.max_reply_bytes })
    }

    /// Sends a POST and reads the reply.
    pub(super) async fn post(&self, path: &str, body: &Value, cookies: &Cookies) -> Result<Reply, NoReply> {
        let mut request = self.http.post(format!("{}{path}", self.base));
        request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        if let Some(cookies) = cookies.header() {
            request = request.header(COOKIE, cookies);
        }
        let response = request.send().await.map_err(NoReply::from)?;
        self.read(response).await
    }

    async fn read(&self, mut response: Response) -> Result<Reply, NoReply> {
        let status = response.status().as_u16();
        let cookies = Cookies::set_by(response.headers());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(NoReply::from)? {
            if body.len() + chunk.len() > self.max_reply_bytes {
                let why = format!("{status} with a body of more than {} bytes", self.max_reply_bytes);
                return Err(NoReply { why, unreachable: false });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Reply { status, cookies, body })
    }
}

impl From<reqwest::Error> for NoReply {
    fn from(error: reqwest::Error) -> Self {
        Self { why: chain(&error), unreachable: error.is_connect() }
    }
}

/// An error and what it came from: reqwest's own words alone do not say why.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        // Writing to a String cannot fail.
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}

/// Cookies by name, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Cookies(Vec<(Vec<u8>, Vec<u8>)>);

impl Cookies {
    /// The cookies that a reply sets. Their attributes count for nothing: agents pass on names and values by hand.
    fn set_by(headers: &HeaderMap) -> Self {
        let mut cookies = Self::default();
        for line in headers.get_all(SET_COOKIE) {
            let pair = line.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
            let Some(at) = pair.iter().position(|byte| *byte == b'=') else { continue };
            let (name, value) = (pair[..at].trim_ascii().to_vec(), pair[at + 1..].trim_ascii().to_vec());
            cookies.0.retain(|(have, _)| *have != name);
            cookies.0.push((name, value));
        }
        cookies
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn header(&self) -> Option<HeaderValue> {
        let pairs: Vec<Vec<u8>> =
            self.0.iter().map(|(name, value)| [name, &b"="[..], value].concat()).collect();
        // Always valid, as they came from a header.
        HeaderValue::from_bytes(&pairs.join(&b"; "[..])).ok().filter(|_| !self.is_empty())
    }
}
