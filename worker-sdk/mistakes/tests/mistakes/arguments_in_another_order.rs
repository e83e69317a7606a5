use gym_worker_sdk::{ResourcesApp, Result, Session};

#[path = "../server.rs"]
mod server;
use server::Counter;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    count: i64,
}

async fn add(add: Add, session: Session<i64>) -> Result<i64> {
    Ok(*session.state().await? + add.count)
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", add);
}
