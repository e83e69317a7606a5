//! A counter that reaches a target, over OpenEnv: tasks, tools, and a session for each client.
//!
//! The twin of an OpenEnv test environment in Python. `--env plain` serves the same without tasks and tools, for one client at a
//! time; `--env broken` one that cannot be made.

use std::collections::BTreeMap;
use std::process::ExitCode;

use gym_worker_sdk::openenv::{Environment, EnvironmentApp, Observed, Reset, State, StepInfo};
use gym_worker_sdk::tasks::{Split, TaskError, TaskProvider, TaskRange, row};
use gym_worker_sdk::tools::Tools;
use gym_worker_sdk::{Bounded, Empty, Failure, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How many tasks are listed at most.
const PREVIEW: u64 = 5;

#[derive(Deserialize, JsonSchema)]
struct CountAction {
    amount: Bounded<-1000, 1000>,
}

#[derive(Serialize, JsonSchema)]
struct CountObservation {
    count: i64,
    target: i64,
    split: String,
    index: i64,
}

#[derive(Clone, Serialize, JsonSchema)]
#[serde(default)]
struct CountState {
    count: i64,
    target: i64,
    split: String,
    index: i64,
}

impl Default for CountState {
    fn default() -> Self {
        Self { count: 0, target: 2, split: "train".to_owned(), index: 0 }
    }
}

/// The rules of all variants: one counter, one task.
#[derive(Default)]
struct Counter(State<CountState>);

impl Counter {
    fn begin(&mut self, reset: Reset) -> Result<Observed<CountObservation>> {
        let split = reset.split_or("train").to_owned();
        let size = size(&split)?;
        if split == "stream" && reset.index.is_some() {
            return Err(Failure::fault("split stream has no random access"));
        }
        let index = i64::try_from(reset.row(&split, size)?)?;
        let task = CountState { count: 0, target: index + 2, split, index };
        self.0 = State::begin(reset.episode_id, task);
        Ok(Observed::new(self.observation()))
    }

    fn add(&mut self, amount: i64) -> Result<Observed<CountObservation>> {
        if amount == 13 {
            return Err(Failure::fault("unlucky amount: 13"));
        }
        self.0.count += amount;
        self.0.step_count += 1;
        let done = self.0.count >= self.0.target;
        let parity = if self.0.count % 2 == 0 { "even" } else { "odd" };
        Ok(Observed::new(self.observation()).reward(f64::from(done)).done(done).metadata("parity", parity))
    }

    fn observation(&self) -> CountObservation {
        let CountState { count, target, split, index } = self.0.own.clone();
        CountObservation { count, target, split, index }
    }
}

fn size(split: &str) -> Result<u64, TaskError> {
    match split {
        "train" => Ok(12),
        "test" => Ok(7),
        "holdout" => Ok(3),
        "stream" => Ok(1_000_000),
        _ => Err(TaskError::failed(format_args!("unknown split: {split}"))),
    }
}

#[derive(Default)]
struct CountingEnvironment(Counter);

impl Environment for CountingEnvironment {
    type Action = CountAction;
    type Observation = CountObservation;
    type State = CountState;
    type Params = Empty;

    async fn reset(&mut self, reset: Reset) -> Result<Observed<CountObservation>> {
        self.0.begin(reset)
    }

    async fn step(&mut self, action: CountAction, _: StepInfo) -> Result<Observed<CountObservation>> {
        self.0.add(*action.amount)
    }

    async fn state(&mut self) -> Result<State<CountState>> {
        Ok(self.0.0.clone())
    }

    fn tools() -> Tools<Self> {
        Tools::new()
            .add("bump", "Add amount to this session's counter and return the new count.", Self::bump)
            .add("peek", "Return this session's count and step_count.", Self::peek)
    }
}

#[derive(Deserialize, JsonSchema)]
struct Bump {
    amount: i64,
}

impl CountingEnvironment {
    async fn bump(&mut self, Bump { amount }: Bump) -> Result<i64> {
        Ok(self.0.add(amount)?.observation.count)
    }

    async fn peek(&mut self) -> Result<BTreeMap<&'static str, i64>> {
        let state = &self.0.0;
        Ok(BTreeMap::from([("count", state.count), ("step_count", i64::try_from(state.step_count)?)]))
    }
}

impl TaskProvider for CountingEnvironment {
    type Task = Value;

    async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
        let stream = Split::spec(json!({"name": "stream", "type": "streaming", "random_access": false}))?;
        Ok(vec!["train".into(), "test".into(), "holdout".into(), stream])
    }

    async fn list_tasks(&self, split: &str) -> Result<Vec<Value>, TaskError> {
        Ok((0..size(split)?.min(PREVIEW)).map(|index| task(split, index)).collect())
    }

    async fn num_tasks(&self, split: &str) -> Result<u64, TaskError> {
        size(split)
    }

    async fn get_task(&self, split: &str, index: i64) -> Result<Value, TaskError> {
        if split == "stream" {
            return Err(TaskError::NotSupported);
        }
        Ok(task(split, row(index, size(split)?)?))
    }

    async fn get_task_range(&self, split: &str, range: TaskRange) -> Result<Vec<Value>, TaskError> {
        if split == "stream" {
            return Err(TaskError::NotSupported);
        }
        Ok(range.within(size(split)?).map(|index| task(split, index)).collect())
    }
}

fn task(split: &str, index: u64) -> Value {
    json!({"id": format!("{split}-{index}"), "index": index, "split": split, "target": index + 2})
}

/// The same counter without tasks and tools, for one client at a time.
#[derive(Default)]
struct PlainEnvironment(Counter);

/// Cannot be made.
struct BrokenEnvironment(Counter);

impl BrokenEnvironment {
    fn new() -> Result<Self> {
        Err(Failure::fault("broken on purpose"))
    }
}

macro_rules! only_counts {
    ($environment:ident, $several:literal) => {
        impl Environment for $environment {
            type Action = CountAction;
            type Observation = CountObservation;
            type State = CountState;
            type Params = Empty;
            const SUPPORTS_CONCURRENT_SESSIONS: bool = $several;

            async fn reset(&mut self, reset: Reset) -> Result<Observed<CountObservation>> {
                self.0.begin(reset)
            }

            async fn step(&mut self, action: CountAction, _: StepInfo) -> Result<Observed<CountObservation>> {
                self.0.add(*action.amount)
            }

            async fn state(&mut self) -> Result<State<CountState>> {
                Ok(self.0.0.clone())
            }
        }
    };
}

only_counts!(PlainEnvironment, false);
only_counts!(BrokenEnvironment, true);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let variant = std::env::args().skip_while(|argument| argument != "--env").nth(1);
    match variant.as_deref() {
        Some("plain") => EnvironmentApp::new(PlainEnvironment::default).run().await,
        Some("broken") => EnvironmentApp::new(BrokenEnvironment::new).run().await,
        _ => EnvironmentApp::new(CountingEnvironment::default).named("counting_env").with_tasks().run().await,
    }
}
