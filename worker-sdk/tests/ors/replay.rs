//! Every recorded request, and the reply that the Python server gave to it.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tower::ServiceExt as _;

use crate::differences::{DIFFERENCES, Difference};
use crate::{text_of, twin};

/// `tests/python/open_envs/record_ors.py` writes it.
const RECORDED: &str = include_str!("../data/ors/recorded.json");

#[derive(Deserialize)]
struct Recorded {
    scenarios: Vec<Scenario>,
}

#[derive(Deserialize)]
struct Scenario {
    scenario: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    step: String,
    request: Asked,
    reply: Reply,
}

#[derive(Deserialize)]
struct Asked {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "present")]
    json: Option<Value>,
    body: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Reply {
    status: u16,
    headers: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "present")]
    json: Option<Value>,
    body: Option<String>,
}

/// A field that is there, were it null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What the server made up, by its placeholder.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn filled(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// Takes the ID of a stream whose recording has a placeholder of its own for it.
    fn learn(&mut self, want: &str, got: &str) {
        let id =
            |text: &str| text.strip_prefix("event: task_id\r\ndata: ")?.lines().next().map(str::to_owned);
        let (Some(name), Some(value)) = (id(want), id(got)) else { return };
        let is_id = uuid::Uuid::parse_str(&value).is_ok_and(|id| id.get_version_num() == 4);
        if name.starts_with("{{") && is_id && !self.0.values().any(|known| *known == value) {
            self.0.entry(name).or_insert(value);
        }
    }
}

async fn ask(router: &Router, asked: &Asked, names: &Names) -> Reply {
    let mut request =
        Request::builder().method(asked.method.as_str()).uri(&asked.path).header("host", "gym.test");
    for (name, value) in &asked.headers {
        let latin: Vec<u8> = names.filled(value).trim().chars().map(|c| u8::try_from(c).unwrap()).collect();
        request = request.header(name, HeaderValue::from_bytes(&latin).unwrap());
    }
    let body = asked.json.as_ref().map(Value::to_string).or_else(|| asked.body.clone());
    let body = body.map_or_else(Body::empty, |body| Body::from(names.filled(&body)));
    let reply = router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    let left_out = ["content-length", "transfer-encoding", "connection"];
    let headers = reply.headers().iter().filter(|(name, _)| !left_out.contains(&name.as_str()));
    let headers: BTreeMap<_, _> =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    let (status, is_json) =
        (reply.status().as_u16(), headers.get("content-type").is_some_and(|kind| kind == "application/json"));
    let text = text_of(reply).await;
    let json = is_json.then(|| serde_json::from_str(&text).ok()).flatten();
    Reply { status, headers, body: json.is_none().then_some(text), json }
}

/// Where the reply is not the recorded one.
fn different(want: &Reply, got: &Reply, names: &Names) -> Vec<String> {
    let mut found = Vec::new();
    if want.status != got.status {
        found.push("status".to_owned());
    }
    let mut headers: Vec<&String> = want.headers.keys().chain(got.headers.keys()).collect();
    headers.sort();
    headers.dedup();
    found.extend(
        headers
            .into_iter()
            .filter(|name| want.headers.get(*name) != got.headers.get(*name))
            .map(|name| format!("header {name}")),
    );
    let filled = |value: &Value| serde_json::from_str::<Value>(&names.filled(&value.to_string())).unwrap();
    let body = want.body.as_ref().map(|text| names.filled(text));
    if want.json.as_ref().map(filled) != got.json || (body.is_some() && body != got.body) {
        found.push("body".to_owned());
    }
    found
}

#[tokio::test]
async fn it_answers_as_the_python_server_does() {
    let router = twin::server();
    let Recorded { scenarios } = serde_json::from_str(RECORDED).unwrap();
    let mut stale: Vec<&Difference> = DIFFERENCES.iter().collect();
    let (mut unlisted, mut steps) = (Vec::new(), 0);
    for Scenario { scenario, steps: all } in &scenarios {
        let mut names = Names::default();
        for Step { step, request, reply: want } in all {
            let got = ask(&router, request, &names).await;
            names.learn(want.body.as_deref().unwrap_or_default(), got.body.as_deref().unwrap_or_default());
            steps += 1;
            let found = different(want, &got, &names);
            if found.is_empty() {
                continue;
            }
            let ours = got.json.as_ref().map(Value::to_string).or(got.body).unwrap_or_default();
            let listed = stale.iter().position(|listed| {
                (listed.scenario, listed.step) == (scenario, step)
                    && listed.what == found
                    && ours.contains(listed.ours)
            });
            match listed {
                Some(at) => drop(stale.remove(at)),
                None => unlisted.push(format!(
                    "{scenario} {step}: {found:?}\n  want {want:?}\n  got {} {:?} {ours}",
                    got.status, got.headers
                )),
            }
        }
    }
    assert!(unlisted.is_empty(), "{} differ and are not listed:\n{}", unlisted.len(), unlisted.join("\n"));
    assert!(stale.is_empty(), "listed, and do not occur so: {stale:#?}");
    assert!(scenarios.len() >= 17 && steps >= 228, "{} scenarios of {steps} steps", scenarios.len());
}
