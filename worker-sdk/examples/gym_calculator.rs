//! The calculator of NeMo Gym's documentation with the Gymnasium protocol: a step runs the model's function calls.

use std::process::ExitCode;

use gym_worker_sdk::{Empty, GymnasiumApp, GymnasiumServer, NeMoGymResponse, Result, Session, Step};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Square {
    value: i64,
}

struct Calculator;

impl GymnasiumServer for Calculator {
    const CLASS: &'static str = "CalculatorEnv";
    type Metadata = Empty;
    type State = ();

    async fn step(&self, _: Session<()>, action: NeMoGymResponse, _: Empty) -> Result<Step> {
        if action.function_calls().next().is_none() {
            return Ok(Step::reward(1.0).terminated());
        }
        let mut step = Step::reward(0.0);
        for call in action.function_calls() {
            // What the model got wrong is told to the model.
            let result = match (call.name.as_str(), call.arguments::<Square>()) {
                ("square", Ok(Square { value })) => json!({"result": value.saturating_mul(value)}),
                ("square", Err(error)) => json!({"error": error.to_string()}),
                (other, _) => json!({"error": format!("Unknown action: {other}")}),
            };
            step = step.tool_output(call, result)?;
        }
        Ok(step)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    GymnasiumApp::new(Calculator).run().await
}
