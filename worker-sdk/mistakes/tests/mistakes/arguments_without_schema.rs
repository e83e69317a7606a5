use gym_worker_sdk::{ResourcesApp, Result, Session};

#[path = "../server.rs"]
mod server;
use server::Counter;

#[derive(serde::Deserialize)]
struct Add {
    count: i64,
}

async fn add(session: Session<i64>, add: Add) -> Result<i64> {
    Ok(*session.state().await? + add.count)
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", add);
}
