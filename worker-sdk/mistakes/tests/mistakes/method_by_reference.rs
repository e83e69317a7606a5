use gym_worker_sdk::{ResourcesApp, Result};

#[path = "../server.rs"]
mod server;
use server::Counter;

impl Counter {
    async fn add(&self, by: server::By) -> Result<i64> {
        Ok(by.count)
    }
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", Counter::add);
}
