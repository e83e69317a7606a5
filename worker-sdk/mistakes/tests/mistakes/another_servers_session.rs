use gym_worker_sdk::{ResourcesApp, Result, Session};

#[path = "../server.rs"]
mod server;
use server::Counter;

async fn add(session: Session<u64>, by: server::By) -> Result<u64> {
    Ok(*session.state().await? + by.count as u64)
}

async fn peek(session: Session<u64>) -> Result<u64> {
    Ok(*session.state().await?)
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", add).tool("peek", peek);
}
