use gym_worker_sdk::{ResourcesApp, Result};

#[path = "../server.rs"]
mod server;
use server::Counter;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add<'a> {
    word: &'a str,
}

async fn add(add: Add<'_>) -> Result<usize> {
    Ok(add.word.len())
}

fn main() {
    let _app = ResourcesApp::new(Counter).tool("add", add);
}
