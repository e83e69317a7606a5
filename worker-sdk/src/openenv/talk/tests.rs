use futures_util::{SinkExt as _, StreamExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;
use crate::openenv::settings::Limits;
use crate::openenv::{Mode, Observed, Reset, State, StepInfo};
use crate::{Empty, Result as SdkResult};

/// Its first step waits until it is told to go on.
struct Waits {
    began: Option<oneshot::Sender<()>>,
    goes_on: Option<oneshot::Receiver<()>>,
}

#[derive(Deserialize, JsonSchema)]
struct Act {}

#[derive(Serialize, JsonSchema)]
struct Seen {
    waited: bool,
}

impl Environment for Waits {
    type Action = Act;
    type Observation = Seen;
    type State = ();
    type Params = Empty;

    async fn reset(&mut self, _: Reset) -> SdkResult<Observed<Seen>> {
        Ok(Observed::new(Seen { waited: false }))
    }

    async fn step(&mut self, _: Act, _: StepInfo) -> SdkResult<Observed<Seen>> {
        if let Some(began) = self.began.take() {
            began.send(()).unwrap();
        }
        if let Some(goes_on) = self.goes_on.take() {
            goes_on.await?;
        }
        Ok(Observed::new(Seen { waited: true }))
    }

    async fn state(&mut self) -> SdkResult<State<()>> {
        Ok(State::default())
    }
}

#[tokio::test]
async fn a_stop_lets_what_runs_finish_and_begins_nothing() {
    let (began, begins) = oneshot::channel();
    let (go, goes_on) = oneshot::channel();
    let environment = std::sync::Mutex::new(Some(Waits { began: Some(began), goes_on: Some(goes_on) }));
    let limits = Limits { max_concurrent_envs: 1, session_idle_timeout: None, mode: Mode::Simulation };
    let factory = Box::new(move || Ok(environment.lock().unwrap().take().unwrap()));
    let core = Arc::new(Core::new("waits".to_owned(), factory, limits));
    let (client, server) = duplex(1 << 10);
    let mut client: WebSocketStream<DuplexStream> =
        WebSocketStream::from_raw_socket(client, Role::Client, None).await;
    let talks = core.clone();
    core.tasks.spawn(async move {
        talk(&talks, Wire::new(server).await, Protocol::OpenEnv(None)).await;
    });
    for _ in 0..2 {
        client.send(Frame::Text(r#"{"type": "step", "data": {}}"#.into())).await.unwrap();
    }
    begins.await.unwrap();
    core.stopping.cancel();
    go.send(()).unwrap();
    let Frame::Text(answer) = client.next().await.unwrap().unwrap() else { panic!("no answer") };
    assert!(answer.contains(r#""waited":true"#), "{answer}");
    let Frame::Close(Some(close)) = client.next().await.unwrap().unwrap() else { panic!("a second answer") };
    assert_eq!(u16::from(close.code), 1012);
    assert!(client.next().await.is_none());
    core.shut_down(true).await;
    assert_eq!(core.registry().len(), 0);
}
