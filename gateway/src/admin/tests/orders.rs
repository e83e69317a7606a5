//! What the admin address has done, and for whom.

use std::sync::Mutex;

use async_trait::async_trait;

use super::*;
use crate::admin::{
    Control, Refused, Reloaded,
    client::ClientError,
    orders::{self, Waiting},
};

/// Notes what it is told to do.
#[derive(Default)]
pub(super) struct Orders {
    told: Mutex<Vec<String>>,
    reload: Option<Refused>,
}

impl Orders {
    fn note(&self, what: String) {
        self.told.lock().unwrap().push(what);
    }
}

#[async_trait]
impl Control for Orders {
    fn drain(&self, server: &str, slot: u16) -> Result<(), Refused> {
        self.note(format!("drain {server}/{slot}"));
        if slot > 1 { Err(Refused::UnknownSlot { server: server.into(), slot }) } else { Ok(()) }
    }

    fn restart(&self, server: &str, slot: Option<u16>) -> Result<RollSnapshot, Refused> {
        self.note(format!("restart {server} {slot:?}"));
        if server != "counter" {
            return Err(Refused::UnderWay("a rolling restart is under way".into()));
        }
        Ok(RollSnapshot { number: 3, slots: vec![0, 1], ..RollSnapshot::default() })
    }

    async fn reload(&self) -> Result<Reloaded, Refused> {
        self.note("reload".into());
        match &self.reload {
            Some(refused) => Err(refused.clone()),
            None => {
                Ok(Reloaded { changed: vec!["counter: max_surge changed".into()], ..Reloaded::default() })
            }
        }
    }
}

async fn serve(fake: Fake, orders: &Arc<Orders>) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = router(Arc::new(fake), orders.clone(), populated());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Status and code of a POST.
async fn post(address: SocketAddr, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
    let mut request = ureq::http::Request::post(format!("http://{address}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body.to_owned()).unwrap();
    let ask = move || {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
        let mut answer = agent.run(request).unwrap();
        (
            answer.status().as_u16(),
            serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap(),
        )
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn orders_are_posts_with_json_and_not_a_browsers() {
    let told = Arc::new(Orders::default());
    let address = serve(fake(), &told).await;
    let order = r#"{"server": "counter", "slot": 1}"#;
    for (headers, body, status, code) in [
        (vec![], order, 415, "bad_order"),
        // What a form of another site's page can send without being asked.
        (vec![("content-type", "text/plain")], order, 415, "bad_order"),
        (vec![JSON, ("origin", "http://evil.example")], order, 403, "from_a_browser"),
        (vec![JSON, ("sec-fetch-site", "same-origin")], order, 403, "from_a_browser"),
        (vec![JSON], "{", 400, "bad_order"),
        (vec![JSON], r#"{"server": "counter", "slot": 1, "now": true}"#, 422, "bad_order"),
        (vec![JSON], r#"{"server": "counter"}"#, 422, "bad_order"),
    ] {
        let (seen, answer) = post(address, "/drain", &headers, body).await;
        assert_eq!((seen, answer["code"].as_str()), (status, Some(code)), "{headers:?} {body}: {answer}");
    }
    assert!(told.told.lock().unwrap().is_empty());
    assert_eq!(post(address, "/drain", &[JSON], order).await.0, 200);
    let (status, answer) = post(address, "/drain", &[JSON], r#"{"server": "counter", "slot": 7}"#).await;
    assert_eq!((status, answer["code"].as_str()), (404, Some("unknown_slot")));
    let (status, answer) = post(address, "/restart", &[JSON], r#"{"server": "counter"}"#).await;
    assert_eq!((status, &answer["slots"]), (200, &json!([0, 1])));
    let (status, answer) = post(address, "/restart", &[JSON], r#"{"server": "other", "slot": 0}"#).await;
    assert_eq!((status, answer["code"].as_str()), (409, Some("under_way")));
    assert_eq!(post(address, "/reload", &[JSON], "{}").await.1["changed"][0], "counter: max_surge changed");
    let seen =
        ["drain counter/1", "drain counter/7", "restart counter None", "restart other Some(0)", "reload"];
    assert_eq!(*told.told.lock().unwrap(), seen);
}

/// A command's result, and what it told meanwhile.
async fn command(
    address: SocketAddr,
    run: impl FnOnce(Waiting<'_>) -> Result<String, ClientError> + Send + 'static,
) -> (Result<String, ClientError>, Vec<String>) {
    let asked = tokio::task::spawn_blocking(move || {
        let mut lines = Vec::new();
        let mut tell = |line: &str| lines.push(line.to_owned());
        let admin = address.to_string();
        let result = run(Waiting { admin: &admin, json: false, wait: true, tell: &mut tell });
        (result, lines)
    });
    asked.await.unwrap()
}

#[tokio::test]
async fn a_restart_is_waited_for_and_its_failure_is_the_commands() {
    let mut done = fake();
    let roll = done.servers[0].roll.as_mut().unwrap();
    (roll.state, roll.ended_unix) = ("failed".into(), Some(roll.started_unix + 9));
    roll.failure = Some("worker 1.4 did not listen".into());
    let address = serve(done, &Arc::default()).await;
    let (result, _) = command(address, |waiting| orders::restart(waiting, "counter", None)).await;
    let said =
        "the rolling restart stopped: 1 of 2 slots keep the workers that they had\nworker 1.4 did not listen";
    assert_eq!(result.unwrap_err().to_string(), said);
    let (result, _) = command(address, |waiting| orders::restart(waiting, "other", None)).await;
    assert!(result.unwrap_err().to_string().contains("answered 409: a rolling restart is under way"));
}

#[tokio::test]
async fn a_drain_is_waited_for() {
    let mut empty = fake();
    empty.servers[0].workers[1].state = WorkerState::Drained;
    let address = serve(empty, &Arc::default()).await;
    let (result, _) = command(address, |waiting| orders::drain(waiting, "counter", 1)).await;
    assert_eq!(result.unwrap(), "counter/1 is empty");
    // Slot 0 of the made-up gateway goes on as if nothing had been said.
    let (result, _) = command(address, |waiting| orders::drain(waiting, "counter", 0)).await;
    assert_eq!(result.unwrap_err().to_string(), "counter/0 has a worker again, generation 3");
}

#[tokio::test]
async fn an_invalid_config_is_an_error_of_its_own() {
    let problems = vec!["a.yaml:3: nonsense".into(), "a.yaml:4: more".into()];
    let told = Arc::new(Orders { reload: Some(Refused::InvalidConfig(problems)), ..Orders::default() });
    let address = serve(fake(), &told).await;
    let (result, _) = command(address, |waiting| orders::reload(waiting.admin, false)).await;
    let error = result.unwrap_err();
    assert!(matches!(error, ClientError::InvalidConfig { .. }));
    let said = format!(
        "the gateway at {address} refuses its config; nothing was changed: a.yaml:3: nonsense\na.yaml:4: more"
    );
    assert_eq!(error.to_string(), said);
    let address = serve(fake(), &Arc::default()).await;
    let (result, _) = command(address, |waiting| orders::reload(waiting.admin, false)).await;
    assert_eq!(result.unwrap(), "counter: max_surge changed");
}
