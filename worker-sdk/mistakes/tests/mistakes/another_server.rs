use std::sync::Arc;

use gym_worker_sdk::{ResourcesApp, Result};

#[path = "../server.rs"]
mod server;
use server::Counter;

struct Other;

async fn add(_: Arc<Other>, by: server::By) -> Result<i64> {
    Ok(by.count)
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", add);
}
