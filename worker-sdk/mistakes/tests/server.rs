//! The server that the tools are added to.
#![allow(unreachable_pub)] // A module of several programs.

use gym_worker_sdk::{Empty, ResourcesServer, Result, Session, Verdict, VerifyRequest};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct Counter;

impl ResourcesServer for Counter {
    const CLASS: &'static str = "CounterServer";
    type Seed = Empty;
    type State = i64;
    type Verify = Empty;
    type Details = Empty;

    async fn verify(&self, session: Session<i64>, _: VerifyRequest<Empty>) -> Result<Verdict> {
        Ok(Verdict::reward(*session.state().await? as f64))
    }
}

#[derive(Deserialize, JsonSchema)]
pub struct By {
    pub count: i64,
}
