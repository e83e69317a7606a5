//! The SDK's examples keep the contract of episode sessions, strictly: alone, and as four workers of a gateway.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::net::SocketAddr;

use gym_gateway_tests::harness::{Alone, Gateway, admin, binary, conversation, setup::SERVER};
use gym_worker_sdk::conformance::{Options, Seed, check_resources_session_contract};
use serde_json::{Value, json};

/// An example, and an episode that it takes.
struct Example {
    name: &'static str,
    keeps_state: bool,
    task_data: Value,
    /// What its verify needs beside the conversation.
    verify: Value,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counter() {
    let counter = Example {
        name: "counter",
        keeps_state: true,
        task_data: json!({"initial_count": 3}),
        verify: json!({"expected_count": 3}),
    };
    counter.keeps_the_contract().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_without_state() {
    for name in ["calculator", "weather"] {
        let example = Example { name, keeps_state: false, task_data: json!({}), verify: json!({}) };
        example.keeps_the_contract().await;
    }
}

impl Example {
    async fn keeps_the_contract(&self) {
        let alone = Alone::start(&binary::example(self.name)).await;
        self.check("alone", alone.address).await;
        drop(alone);

        let gateway = self.behind_a_gateway();
        gateway.ready().await;
        for _ in 0..3 {
            self.check("behind the gateway", gateway.front()).await;
        }
        admin::sessions_become(&gateway, "open", 0.0).await;
        gateway.finish().await;
    }

    async fn check(&self, place: &str, address: SocketAddr) {
        let seed = Seed::new(json!({
            "resources_session_id": self.name,
            "episode_id": {"rollout_id": self.name, "attempt": 0},
            "task_id": {"taskset": "examples", "task_id": "0"},
            "task_data": self.task_data,
        }))
        .unwrap();
        let verify = conversation::verify(&self.verify);
        let options = Options::new().keeps_state(self.keeps_state).strict(true).verify_body(verify);
        let report = check_resources_session_contract(&format!("http://{address}"), &seed, &options).await;
        assert!(report.is_ok(), "{}, {place}: {report}", self.name);
    }

    fn behind_a_gateway(&self) -> Gateway {
        let program = binary::example(self.name).display().to_string();
        let words = ["run", "-n", "4", "--kind", "resources", "--listen", "127.0.0.1:0"];
        let more = ["--admin", "127.0.0.1:0", "--name", SERVER, "--", &program];
        Gateway::launch(|_| words.iter().chain(&more).map(|word| (*word).to_owned()).collect())
    }
}
