use std::rc::Rc;

use gym_worker_sdk::{ResourcesApp, Result, Session};

#[path = "../server.rs"]
mod server;
use server::Counter;

async fn add(session: Session<i64>) -> Result<i64> {
    let by = Rc::new(1);
    let sum = *session.state().await? + *by;
    Ok(sum)
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", add);
}
