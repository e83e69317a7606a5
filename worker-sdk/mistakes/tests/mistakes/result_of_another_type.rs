use gym_worker_sdk::{ResourcesApp, Session};

#[path = "../server.rs"]
mod server;
use server::Counter;

async fn plain(_: Session<i64>) -> i64 {
    1
}

async fn another_error(_: Session<i64>) -> Result<i64, String> {
    Ok(1)
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("plain", plain).tool("another_error", another_error);
}
