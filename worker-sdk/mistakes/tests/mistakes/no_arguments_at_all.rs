use gym_worker_sdk::{ResourcesApp, Result};

#[path = "../server.rs"]
mod server;
use server::Counter;

async fn add() -> Result<i64> {
    Ok(1)
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", add);
}
