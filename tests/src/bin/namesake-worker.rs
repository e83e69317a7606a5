//! Servers of the worker SDK whose own routes are named like routes of the protocol that they do not speak: a
//! seed/verify server, or with `gymnasium` as its argument a Gymnasium server.

use std::process::ExitCode;

use axum::Json;
use axum::routing::post;
use gym_worker_sdk::{
    Empty, GymnasiumApp, GymnasiumServer, NeMoGymResponse, ResourcesApp, ResourcesServer, Result, Session,
    Step, Verdict, VerifyRequest,
};
use serde_json::{Value, json};

struct Namesake;

impl ResourcesServer for Namesake {
    const CLASS: &'static str = "Stub";
    type Seed = Empty;
    type State = u32;
    type Verify = Empty;
    type Details = Empty;

    async fn verify(&self, session: Session<u32>, _: VerifyRequest<Empty>) -> Result<Verdict> {
        Ok(Verdict::reward(f64::from(*session.state().await?)))
    }
}

impl GymnasiumServer for Namesake {
    const CLASS: &'static str = "Stub";
    type Metadata = Empty;
    type State = u32;

    async fn step(&self, session: Session<u32>, _: NeMoGymResponse, _: Empty) -> Result<Step> {
        Ok(Step::reward(f64::from(*session.state().await?)).terminated())
    }
}

/// Counts its calls, and answers as a terminal step does.
async fn count(session: Session<u32>) -> Result<Value> {
    let mut count = session.state().await?;
    *count += 1;
    Ok(json!({"count": *count, "terminated": true}))
}

/// The same as a route.
async fn count_route(session: Session<u32>) -> Result<Json<Value>> {
    count(session).await.map(Json)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "gymnasium") {
        let names = ["/seed_session", "/verify", "/close_session"];
        let app = GymnasiumApp::new(Namesake);
        return names.into_iter().fold(app, |app, name| app.route(name, post(count_route))).run().await;
    }
    let names = ["reset", "step", "close"];
    names.into_iter().fold(ResourcesApp::new(Namesake), |app, name| app.tool(name, count)).run().await
}
