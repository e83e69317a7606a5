use gym_worker_sdk::{ResourcesApp, Result, Session};

#[path = "../server.rs"]
mod server;
use server::Counter;

fn add(session: Session<i64>) -> Result<i64> {
    drop(session);
    Ok(1)
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", add);
}
