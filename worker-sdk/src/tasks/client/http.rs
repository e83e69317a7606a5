//! Requests, and replies of bounded length.

use std::error::Error;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ClientError;

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REPLY_BYTES: usize = 64 << 20;
/// The most of a refusal's text that is told.
const MAX_WORDS: usize = 1000;

#[derive(Clone, Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    base: Url,
    pub(super) timeout: Duration,
    pub(super) max_reply_bytes: usize,
}

impl Http {
    pub(super) fn new(url: &str) -> Result<Self, ClientError> {
        let base = base(url).map_err(|why| ClientError::Url { url: url.to_owned(), why })?;
        // Neither proxies of the environment nor kept connections: uvicorn closes them under a request after a 500.
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .pool_max_idle_per_host(0)
            // The system's certificates, read only where they are needed.
            .tls_built_in_root_certs(base.scheme() == "https")
            .build();
        let client = client.map_err(|error| ClientError::Url { url: url.to_owned(), why: chain(&error) })?;
        Ok(Self { client, base, timeout: TIMEOUT, max_reply_bytes: MAX_REPLY_BYTES })
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, ClientError> {
        let url = self.url(path)?;
        self.ask(&url, self.client.get(url.clone())).await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &Value,
    ) -> Result<T, ClientError> {
        let url = self.url(path)?;
        let request = self.client.post(url.clone()).header(CONTENT_TYPE, "application/json");
        self.ask(&url, request.body(body.to_string())).await
    }

    /// A name in it is escaped; one of dots alone would be another path.
    fn url(&self, path: &[&str]) -> Result<Url, ClientError> {
        let mut url = self.base.clone();
        let unusable = |why: &str| ClientError::Url { url: self.base.to_string(), why: why.to_owned() };
        if path.iter().any(|name| name.is_empty() || *name == "." || *name == "..") {
            return Err(unusable("an environment's name must be more than dots"));
        }
        url.path_segments_mut().map_err(|()| unusable("nothing can follow it"))?.pop_if_empty().extend(path);
        Ok(url)
    }

    async fn ask<T: DeserializeOwned>(&self, url: &Url, request: RequestBuilder) -> Result<T, ClientError> {
        let silent = |error: reqwest::Error| ClientError::NoReply {
            url: url.to_string(),
            why: chain(&error.without_url()),
        };
        let mut response = request.timeout(self.timeout).send().await.map_err(silent)?;
        let status = response.status();
        let body = self.read(&mut response).await.map_err(silent)?;
        let Some(body) = body else {
            let why = format!("{status} with more than {} bytes", self.max_reply_bytes);
            return Err(ClientError::BadReply { url: url.to_string(), why });
        };
        if status != StatusCode::OK {
            return Err(ClientError::Refused {
                url: url.to_string(),
                status: status.as_u16(),
                detail: detail(&body),
            });
        }
        serde_json::from_slice(&body)
            .map_err(|error| ClientError::BadReply { url: url.to_string(), why: error.to_string() })
    }

    /// `None` if it is too long.
    async fn read(&self, response: &mut Response) -> reqwest::Result<Option<Vec<u8>>> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > self.max_reply_bytes {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Some(body))
    }
}

/// The HTTP address of a server that may be named by its WebSocket's.
fn base(url: &str) -> Result<Url, String> {
    let mut base = Url::parse(url).map_err(|error| format!("no URL: {error}"))?;
    match base.scheme() {
        "http" | "https" => {}
        websocket @ ("ws" | "wss") => {
            let scheme = if websocket == "ws" { "http" } else { "https" };
            base.set_scheme(scheme).map_err(|()| "its scheme cannot be changed".to_owned())?;
            let path = base.path().trim_end_matches('/');
            let path = path.strip_suffix("/ws").unwrap_or(path).to_owned();
            base.set_path(&path);
        }
        other => return Err(format!("{other} is not supported; give an http, https, ws or wss address")),
    }
    base.set_query(None);
    base.set_fragment(None);
    Ok(base)
}

/// What a refusal says.
fn detail(body: &[u8]) -> Value {
    match serde_json::from_slice(body) {
        Ok(Value::Object(mut object)) if object.contains_key("detail") => {
            object.remove("detail").unwrap_or_default()
        }
        Ok(other) => other,
        Err(_) => String::from_utf8_lossy(body).chars().take(MAX_WORDS).collect::<String>().into(),
    }
}

/// An error and what it came from: reqwest's own words alone do not say why.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_websockets_are_their_servers() {
        for (url, http) in [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/counting_env/task"),
            ("http://h/prefix/", "http://h/prefix/counting_env/task"),
            ("ws://127.0.0.1:8000", "http://127.0.0.1:8000/counting_env/task"),
            ("ws://127.0.0.1:8000/ws?session_id=a", "http://127.0.0.1:8000/counting_env/task"),
            ("https://h", "https://h/counting_env/task"),
            ("wss://h/ws", "https://h/counting_env/task"),
            ("ws://h/prefix/ws/", "http://h/prefix/counting_env/task"),
        ] {
            assert_eq!(
                Http::new(url).unwrap().url(&["counting_env", "task"]).unwrap().as_str(),
                http,
                "{url}"
            );
        }
        for url in ["ftp://h", "127.0.0.1:8000", "data:x", ""] {
            assert!(matches!(Http::new(url), Err(ClientError::Url { .. })), "{url}");
        }
    }

    #[test]
    fn a_name_is_one_step_of_the_path() {
        let http = Http::new("http://h").unwrap();
        assert_eq!(http.url(&["a/b c?", "task"]).unwrap().as_str(), "http://h/a%2Fb%20c%3F/task");
        for name in ["", ".", ".."] {
            assert!(http.url(&[name, "task"]).is_err(), "{name}");
        }
    }
}
