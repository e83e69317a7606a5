use gym_worker_sdk::{ResourcesApp, Result};

#[path = "../server.rs"]
mod server;
use server::Counter;

#[derive(schemars::JsonSchema)]
struct Add {
    count: i64,
}

async fn add(add: Add) -> Result<i64> {
    Ok(add.count)
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", add);
}
