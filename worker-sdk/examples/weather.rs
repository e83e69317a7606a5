//! Tells the weather, over HTTP and over MCP, and rewards who asks.
//!
//! The twin of NeMo Gym's `example_single_tool_call`, with `expose_tools_over_mcp`. Alone:
//! `cargo run --example weather -- --port 8000`; as four workers:
//! `gym-gateway run -n 4 --describe -- target/debug/examples/weather`.

use std::process::ExitCode;

use gym_worker_sdk::{Empty, ResourcesApp, ResourcesServer, Result, Session, Verdict, VerifyRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

struct Weather;

impl ResourcesServer for Weather {
    const CLASS: &'static str = "SimpleWeatherResourcesServer";
    type Seed = Empty;
    type State = ();
    type Verify = Empty;
    type Details = Empty;

    async fn verify(&self, _: Session<()>, request: VerifyRequest<Empty>) -> Result<Verdict> {
        // Whether the model's host called it `get_weather` or `mcp__weather__get_weather`.
        let asked = request.response.function_calls().any(|call| call.name == "get_weather");
        Ok(Verdict::reward(f64::from(asked)))
    }
}

#[derive(Deserialize, JsonSchema)]
struct GetWeatherRequest {
    city: String,
}

#[derive(Serialize)]
struct GetWeatherResponse {
    city: String,
    weather_description: String,
}

async fn get_weather(GetWeatherRequest { city }: GetWeatherRequest) -> Result<GetWeatherResponse> {
    let weather_description = format!("The weather in {city} is cold.");
    Ok(GetWeatherResponse { city, weather_description })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    ResourcesApp::new(Weather).tool("get_weather", get_weather).tools_over_mcp().run().await
}
