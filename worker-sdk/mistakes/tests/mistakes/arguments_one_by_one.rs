use gym_worker_sdk::{ResourcesApp, Result};

#[path = "../server.rs"]
mod server;
use server::Counter;

async fn add(left: i64, right: i64) -> Result<i64> {
    Ok(left + right)
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", add);
}
