//! No mistake: every form of a tool and of a route. What the others are variations of.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::routing::{get, post};
use gym_worker_sdk::session::HasSessions;
use gym_worker_sdk::{ResourcesApp, Result, Session, Start};

use crate::server::{By, Counter};

impl Counter {
    async fn method(self: Arc<Self>, session: Session<i64>, by: By) -> Result<i64> {
        Ok(*session.state().await? + by.count)
    }
}

async fn arguments(by: By) -> Result<i64> {
    Ok(by.count)
}

async fn session(session: Session<i64>) -> Result<i64> {
    Ok(*session.state().await?)
}

async fn session_and_arguments(session: Session<i64>, by: By) -> Result<i64> {
    Ok(*session.state().await? + by.count)
}

async fn server_alone(_: Arc<Counter>) -> Result<()> {
    Ok(())
}

async fn server_and_arguments(_: Arc<Counter>, by: By) -> Result<i64> {
    Ok(by.count)
}

async fn server_and_session(_: Arc<Counter>, session: Session<i64>) -> Result<i64> {
    Ok(*session.state().await?)
}

async fn peek(session: Session<i64>) -> Result<Json<i64>> {
    Ok(Json(*session.state().await?))
}

async fn begin(start: Start<i64>) -> Result<()> {
    start.open(1).await?;
    Ok(())
}

#[derive(Clone)]
struct Own;

impl HasSessions<i64> for Own {}

async fn both(_: Session<i64>, State(Own): State<Own>) {}

#[test]
fn every_form_compiles() {
    let _app = ResourcesApp::new(Counter)
        .tool("arguments", arguments)
        .tool("session", session)
        .tool("session_and_arguments", session_and_arguments)
        .tool("server_alone", server_alone)
        .tool("server_and_arguments", server_and_arguments)
        .tool("server_and_session", server_and_session)
        .tool("method", Counter::method)
        .tool("closure", |by: By| async move { Ok(by.count) })
        .tool("async_closure", async |by: By| Ok(by.count))
        .route("/peek", get(peek).put(async || "closure"))
        .route("/both", post(both).with_state(Own))
        .start_route("/begin", post(begin));
}
