//! One task provider for an OpenEnv environment and a resources server of NeMo Gym's.

use gym_worker_sdk::openenv::EnvironmentApp;
use gym_worker_sdk::tasks::{TaskApi, TaskError, TaskProvider};
use gym_worker_sdk::{
    Empty, ResourcesApp, ResourcesServer, Result, Session, Settings, Verdict, VerifyRequest,
};
use serde_json::{Value, json};

use crate::client::Server;
use crate::probe::{Log, Probe};

/// The dataset, whoever serves episodes of it.
struct Rows;

impl TaskProvider for Rows {
    type Task = Value;

    async fn num_tasks(&self, _split: &str) -> Result<u64, TaskError> {
        Ok(7_595)
    }
}

struct Gym;

impl ResourcesServer for Gym {
    const CLASS: &'static str = "GymServer";
    type Seed = Empty;
    type State = ();
    type Verify = Empty;
    type Details = Empty;

    async fn verify(&self, _: Session<()>, _: VerifyRequest<Empty>) -> Result<Verdict> {
        Ok(Verdict::reward(0.0))
    }
}

#[tokio::test]
async fn both_tell_of_the_same_tasks() {
    let rows = || Rows;
    let log = Log::new();
    let environment = EnvironmentApp::new(move || Probe::new(&log)).named("rows_env").tasks(rows);
    let gym = ResourcesApp::new(Gym).tasks(TaskApi::new(rows).named("rows_env"));
    let routers = [
        environment.settings(Settings::new("x")).into_router().unwrap(),
        gym.settings(Settings::new("x")).into_router().unwrap(),
    ];
    for router in routers {
        let server = Server::start(router).await;
        assert_eq!(server.get("/list_environments").await.1, r#"["rows_env"]"#);
        let counted = server.post("/rows_env/num_tasks", &json!({"split": "test"})).await;
        assert_eq!(counted.1, r#"{"num_tasks":7595}"#);
        let not_there = server.get("/rows_env/splits").await;
        assert_eq!(not_there.0, 501);
    }
}
