//! Environments whose methods block.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use gym_worker_sdk::openenv::{Environment, EnvironmentApp, Observed, Reset, State, StepInfo};
use gym_worker_sdk::{Bounded, Empty, Result, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::{Server, soon};

/// The first waits, with its thread, for what the second says.
struct Blocks {
    says: Sender<i64>,
    hears: Arc<Mutex<Receiver<i64>>>,
}

#[derive(Deserialize, JsonSchema)]
struct Say {
    number: Option<Bounded<0, 9>>,
}

#[derive(Serialize, JsonSchema)]
struct Heard {
    number: Option<i64>,
}

impl Environment for Blocks {
    type Action = Say;
    type Observation = Heard;
    type State = ();
    type Params = Empty;
    const BLOCKS: bool = true;

    async fn reset(&mut self, _: Reset) -> Result<Observed<Heard>> {
        Ok(Observed::new(Heard { number: None }))
    }

    async fn step(&mut self, action: Say, _: StepInfo) -> Result<Observed<Heard>> {
        let number = match action.number {
            Some(number) => {
                self.says.send(*number)?;
                None
            }
            None => Some(self.hears.lock().unwrap().recv()?),
        };
        // And what is awaited works there, too.
        tokio::task::yield_now().await;
        Ok(Observed::new(Heard { number }))
    }

    async fn state(&mut self) -> Result<State<()>> {
        Ok(State::default())
    }
}

/// On one thread: a method that blocks it would end the test.
#[tokio::test(flavor = "current_thread")]
async fn a_method_that_blocks_holds_nobody_up() {
    let (says, hears) = channel();
    let hears = Arc::new(Mutex::new(hears));
    let app = EnvironmentApp::new(move || Blocks { says: says.clone(), hears: hears.clone() });
    let server = Server::start(app.settings(Settings::new("blocks")).into_router().unwrap()).await;
    let (mut one, mut other) = (server.connect("/ws").await, server.connect("/ws").await);
    one.send(&json!({"type": "step", "data": {}})).await;
    soon("the other's step", other.step(json!({"number": 7}))).await;
    assert_eq!(one.next().await.unwrap()["data"]["observation"]["number"], 7);
}
