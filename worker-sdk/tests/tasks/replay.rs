//! Every recorded request, and the reply that an OpenEnv server gave to it.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use gym_worker_sdk::errors::with_fallbacks;
use gym_worker_sdk::tasks::{MadeProvider, TaskApi};
use gym_worker_sdk::{
    Empty, GymnasiumApp, GymnasiumServer, NeMoGymResponse, ResourcesApp, ResourcesServer, Result, Session,
    Settings, Step, Verdict, VerifyRequest,
};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tower::ServiceExt as _;

use crate::counting;

const RECORDED: &str = include_str!("../data/openenv/task_api.json");

/// Where the replies differ, and why they may.
const DIFFERENCES: &[(&str, usize, &str)] = &[(
    "task-huge-index",
    0,
    "integers have 64 bits here: a longer one is refused with 422 before any environment is asked; Python's have no \
     end, and its environment finds this one out of range",
)];

#[derive(Deserialize)]
struct Recorded {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    steps: Vec<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    to: String,
    method: String,
    path: String,
    body: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    expect: Map<String, Value>,
}

/// The reply, in the recording's form.
async fn ask(router: &Router, asked: &Asked) -> Map<String, Value> {
    let mut request = Request::builder().method(asked.method.as_str()).uri(&asked.path);
    for (name, value) in &asked.headers {
        request = request.header(name, value);
    }
    let body = asked.body.clone().map_or_else(Body::empty, Body::from);
    let reply = router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    let mut got = Map::from_iter([("status".to_owned(), reply.status().as_u16().into())]);
    for (key, name) in
        [("location", header::LOCATION), ("allow", header::ALLOW), ("type", header::CONTENT_TYPE)]
    {
        if let Some(value) = reply.headers().get(name) {
            got.insert(key.to_owned(), value.to_str().unwrap().into());
        }
    }
    let is_json = got.get("type") == Some(&json!("application/json"));
    let bytes = reply.into_body().collect().await.unwrap().to_bytes();
    match String::from_utf8(bytes.to_vec()).unwrap() {
        text if text.is_empty() => None,
        text if is_json => got.insert("json".to_owned(), serde_json::from_str(&text).unwrap()),
        text => got.insert("text".to_owned(), text.into()),
    };
    got
}

/// Replays all; the steps that differ must be the known ones.
async fn replay(servers: [(&str, Router); 3]) {
    let servers = BTreeMap::from(servers);
    let Recorded { cases } = serde_json::from_str(RECORDED).unwrap();
    let mut steps = 0;
    let mut different = Vec::new();
    for case in &cases {
        for (at, asked) in case.steps.iter().enumerate() {
            let got = ask(&servers[asked.to.as_str()], asked).await;
            steps += 1;
            if got != asked.expect {
                different.push((case.id.as_str(), at));
                println!("{} {at}: expected {:?}\n  got {got:?}", case.id, asked.expect);
            }
        }
    }
    let known: Vec<_> = DIFFERENCES.iter().map(|(id, at, _why)| (*id, *at)).collect();
    assert_eq!(different, known);
    assert!(cases.len() >= 45 && steps >= 91, "{} cases of {steps} steps", cases.len());
}

#[tokio::test]
async fn alone_it_answers_as_openenv_does() {
    let alone = with_fallbacks;
    replay([
        ("main", alone(counting::counting().into_router())),
        ("plain", alone(counting::plain().into_router())),
        ("broken", alone(counting::broken().into_router())),
    ])
    .await;
}

struct Server;

impl ResourcesServer for Server {
    const CLASS: &'static str = "CountingServer";
    type Seed = Empty;
    type State = ();
    type Verify = Empty;
    type Details = Empty;

    async fn verify(&self, _: Session<()>, _: VerifyRequest<Empty>) -> Result<Verdict> {
        Ok(Verdict::reward(1.0))
    }
}

impl GymnasiumServer for Server {
    const CLASS: &'static str = "CountingEnv";
    type Metadata = Empty;
    type State = ();

    async fn step(&self, _: Session<()>, _: NeMoGymResponse, _: Empty) -> Result<Step> {
        Ok(Step::reward(1.0).terminated())
    }
}

fn resources<F, M>(api: TaskApi<F>) -> Router
where
    F: Fn() -> M + Send + Sync + 'static,
    M: MadeProvider,
{
    ResourcesApp::new(Server).settings(Settings::new("counting")).tasks(api).into_router().unwrap()
}

fn gymnasium<F, M>(api: TaskApi<F>) -> Router
where
    F: Fn() -> M + Send + Sync + 'static,
    M: MadeProvider,
{
    GymnasiumApp::new(Server).settings(Settings::new("counting")).tasks(api).into_router().unwrap()
}

#[tokio::test]
async fn beside_a_resources_server_it_answers_the_same() {
    let (main, plain) = (resources(counting::counting()), resources(counting::plain()));
    let seed = Request::post("/seed_session").header(header::CONTENT_TYPE, "application/json");
    let seeded = main.clone().oneshot(seed.body(Body::from("{}")).unwrap()).await.unwrap();
    assert_eq!(seeded.status(), 200, "episodes begin as ever");
    replay([("main", main), ("plain", plain), ("broken", resources(counting::broken()))]).await;
}

#[tokio::test]
async fn beside_a_gymnasium_server_it_answers_the_same() {
    let (main, plain) = (gymnasium(counting::counting()), gymnasium(counting::plain()));
    replay([("main", main), ("plain", plain), ("broken", gymnasium(counting::broken()))]).await;
}

#[tokio::test]
async fn one_server_has_one_task_api() {
    let app = ResourcesApp::new(Server).settings(Settings::new("counting"));
    let refused = app.tasks(counting::counting()).tasks(counting::plain()).into_router().unwrap_err();
    assert!(refused.to_string().contains("/list_environments is there already"), "{refused}");
}
