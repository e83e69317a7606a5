use axum::Json;
use axum::routing::get;
use gym_worker_sdk::{ResourcesApp, Result, Session};

#[path = "../server.rs"]
mod server;
use server::Counter;

async fn peek(session: Session<u64>) -> Result<Json<u64>> {
    Ok(Json(*session.state().await?))
}

fn main() {
    let _app = ResourcesApp::new(Counter).route("/peek", get(peek));
}
