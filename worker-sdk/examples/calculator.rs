//! The calculator of NeMo Gym's documentation: a tool that squares, and a reward for using it.

use std::process::ExitCode;

use gym_worker_sdk::{Empty, ResourcesApp, ResourcesServer, Result, Session, Verdict, VerifyRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct SquareRequest {
    value: i64,
}

#[derive(Serialize)]
struct SquareResponse {
    result: i64,
}

async fn square(SquareRequest { value }: SquareRequest) -> Result<SquareResponse> {
    Ok(SquareResponse { result: value.saturating_mul(value) })
}

struct Calculator;

impl ResourcesServer for Calculator {
    const CLASS: &'static str = "CalculatorServer";
    type Seed = Empty;
    type State = ();
    type Verify = Empty;
    type Details = Empty;

    async fn verify(&self, _: Session<()>, request: VerifyRequest<Empty>) -> Result<Verdict> {
        let used_square = request.response.function_calls().any(|call| call.name == "square");
        Ok(Verdict::reward(f64::from(used_square)))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    ResourcesApp::new(Calculator).tool("square", square).run().await
}
