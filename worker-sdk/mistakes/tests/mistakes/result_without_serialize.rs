use gym_worker_sdk::{ResourcesApp, Result, Session};

#[path = "../server.rs"]
mod server;
use server::Counter;

struct Sum {
    _sum: i64,
}

async fn add(session: Session<i64>) -> Result<Sum> {
    Ok(Sum { _sum: *session.state().await? })
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", add);
}
