//! The Task API: against what an OpenEnv server answers, and with a client over sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

mod client;
mod counting;
mod life;
mod replay;
mod walkthrough;

use axum::Router;
use gym_worker_sdk::errors::with_fallbacks;

/// Serves on a free port; the address.
async fn serve(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(tokio::spawn(async move { axum::serve(listener, with_fallbacks(routes)).await }));
    format!("http://{address}")
}
