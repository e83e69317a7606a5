//! Replies that an author did not mean, and handlers that wait for themselves: said instead of sent.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::log::Log;
use common::{Client, verify};
use gym_worker_sdk::{
    Failure, ResourcesApp, ResourcesServer, Result, SeedError, SeedInfo, Seeded, Session, Settings, Verdict,
    VerifyRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

/// Gives back what a verify's `details` are; a `nan` stands for one.
struct Odd;

#[derive(Deserialize)]
struct Asked {
    details: BTreeMap<String, Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Detail {
    Number(f64),
    Other(Value),
}

impl ResourcesServer for Odd {
    const CLASS: &'static str = "OddServer";
    type Seed = Map<String, Value>;
    type State = u32;
    type Verify = Asked;
    type Details = BTreeMap<String, Detail>;

    async fn seed_session(&self, _: SeedInfo, _: Self::Seed) -> Result<Seeded<u32>, SeedError> {
        Ok(Seeded::new(0))
    }

    async fn verify(
        &self,
        session: Session<u32>,
        request: VerifyRequest<Asked>,
    ) -> Result<Verdict<Self::Details>> {
        session.keep_open();
        let details = request.body.details.into_iter().map(|(name, value)| match value == "nan" {
            true => (name, Detail::Number(f64::NAN)),
            false => (name, Detail::Other(value)),
        });
        Ok(Verdict::reward(1.0).with(details.collect()))
    }
}

#[derive(Serialize)]
struct Scores {
    best: f64,
    all: Vec<f32>,
}

async fn scores(_: Arc<Odd>) -> Result<Scores> {
    Ok(Scores { best: 1.5, all: vec![0.5, f32::NEG_INFINITY] })
}

fn app() -> ResourcesApp<Odd> {
    ResourcesApp::new(Odd).settings(Settings::new("odd")).tool("scores", scores)
}

#[tokio::test]
async fn a_detail_with_the_name_of_another_field_is_refused() {
    let mut client = Client::new(app().into_router().unwrap());
    client.ok("/seed_session", json!({})).await;
    for name in
        ["reward", "mask_sample", "failure_kind", "failure_reason", "response", "responses_create_params"]
    {
        let log = Log::new();
        let reply = client.post("/verify", verify(json!({"details": {"fine": 1, name: 2}}))).await;
        assert_eq!(reply.status.as_u16(), 500, "{name}");
        let said = format!("the reply to a verify would have \"{name}\" twice");
        assert!(reply.body.as_str().unwrap().starts_with(&said), "{reply:?}");
        assert!(log.take().contains("rename that of `Details`"), "logged");
    }
    let reply = client.ok("/verify", verify(json!({"details": {"fine": 1, "rewards": 2}}))).await;
    assert_eq!((&reply["reward"], &reply["fine"], &reply["rewards"]), (&json!(1.0), &json!(1), &json!(2)));
}

#[tokio::test]
async fn a_number_that_json_does_not_have_is_null_and_said() {
    let mut client = Client::new(app().into_router().unwrap());
    let log = Log::new();
    assert_eq!(client.ok("/scores", json!({})).await, json!({"best": 1.5, "all": [0.5, null]}));
    let said = log.take();
    assert!(said.contains("WARN") && said.contains("null is sent for it: .all[1] is -inf"), "{said}");
    client.ok("/seed_session", json!({})).await;
    let reply = client.ok("/verify", verify(json!({"details": {"speed": "nan"}}))).await;
    assert_eq!(reply["speed"], Value::Null);
    let said = log.take();
    assert!(said.contains("[\"speed\"] is NaN"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_itself_is_named() {
    let (held, let_go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let told = (held.clone(), let_go.clone());
    let hold = move |session: Session<u32>| {
        let (held, let_go) = told.clone();
        async move {
            let _state = session.state().await?;
            held.notify_one();
            let_go.notified().await;
            Ok::<_, Failure>(())
        }
    };
    let peek = async |session: Session<u32>| Ok::<_, Failure>(*session.state().await?);
    let mut client = Client::new(app().tool("hold", hold).tool("peek", peek).into_router().unwrap());
    client.ok("/seed_session", json!({})).await;
    let ask = |path: &'static str| {
        let mut other = client.another();
        other.cookie = client.cookie.clone();
        tokio::spawn(async move { other.ok(path, json!({})).await })
    };
    let log = Log::new();
    let holds = ask("/hold");
    held.notified().await;
    let waits = ask("/ng-rollout/1/peek?secret=1");
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(log.take(), "");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let said = log.take();
    assert!(said.contains("WARN") && said.contains("has waited 30 s"), "{said}");
    assert!(said.contains("route=\"POST /peek\"") && said.contains("holder=\"POST /hold\""), "{said}");
    let_go.notify_one();
    holds.await.unwrap();
    assert_eq!(waits.await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_verify_that_waits_for_a_verify_is_named() {
    struct Slow(Arc<Notify>);

    impl ResourcesServer for Slow {
        const CLASS: &'static str = "SlowServer";
        type Seed = Map<String, Value>;
        type State = u32;
        type Verify = Map<String, Value>;
        type Details = gym_worker_sdk::Empty;

        async fn verify(&self, session: Session<u32>, _: VerifyRequest<Self::Verify>) -> Result<Verdict> {
            session.keep_open();
            self.0.notified().await;
            Ok(Verdict::reward(1.0))
        }
    }

    let go = Arc::new(Notify::new());
    let app = ResourcesApp::new(Slow(go.clone())).settings(Settings::new("slow"));
    let mut client = Client::new(app.into_router().unwrap());
    client.ok("/seed_session", json!({})).await;
    let ask = |number: u32| {
        let mut other = client.another();
        other.cookie = client.cookie.clone();
        tokio::spawn(async move { other.ok("/verify", verify(json!({"number": number}))).await })
    };
    let log = Log::new();
    let both = [ask(1), ask(2)];
    tokio::time::sleep(Duration::from_secs(31)).await;
    let said = log.take();
    assert!(said.contains("route=\"POST /verify\"") && said.contains("holder=\"POST /verify\""), "{said}");
    for asked in both {
        go.notify_one();
        asked.await.unwrap();
    }
}
