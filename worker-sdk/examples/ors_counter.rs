//! Open Reward Standard: count to a number by adding others. 1 for the call that gets there, which ends the episode.
//!
//! Alone: `cargo run --example ors_counter -- --port 8000`; as four workers:
//! `gym-gateway run -n 4 --describe -- target/debug/examples/ors_counter`.

use std::process::ExitCode;

use gym_worker_sdk::ors::{Block, OrsApp, OrsEnvironment, Secrets, ToolOutput};
use gym_worker_sdk::tasks::{Split, TaskApi, TaskError, TaskProvider, TaskRange, row};
use gym_worker_sdk::{Failure, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A task, as trainers list it and sessions begin with it.
#[derive(Serialize, Deserialize)]
struct Task {
    id: String,
    target: i64,
}

struct Tasks;

impl Tasks {
    fn task(split: &str, row: u64) -> Result<Task, TaskError> {
        Ok(Task { id: format!("{split}-{row}"), target: i64::try_from(row)?.saturating_add(2) })
    }
}

impl TaskProvider for Tasks {
    type Task = Task;

    async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
        Ok(vec!["train".into(), "test".into()])
    }

    async fn list_tasks(&self, split: &str) -> Result<Vec<Task>, TaskError> {
        self.get_task_range(split, TaskRange::default()).await
    }

    async fn num_tasks(&self, split: &str) -> Result<u64, TaskError> {
        Ok(if split == "train" { 1000 } else { 100 })
    }

    async fn get_task(&self, split: &str, index: i64) -> Result<Task, TaskError> {
        Self::task(split, row(index, self.num_tasks(split).await?)?)
    }

    async fn get_task_range(&self, split: &str, range: TaskRange) -> Result<Vec<Task>, TaskError> {
        range.within(self.num_tasks(split).await?).map(|row| Self::task(split, row)).collect()
    }
}

/// A session.
struct Counter {
    target: i64,
    count: i64,
    added: Vec<i64>,
}

impl OrsEnvironment for Counter {
    type Task = Task;

    async fn prompt(&self) -> Result<Vec<Block>> {
        Ok(vec![format!("Count to {}. Add what you like, but never 13.", self.target).into()])
    }
}

/// What to add to the count.
#[derive(Deserialize, JsonSchema)]
struct Add {
    amount: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Answer {
    answer: String,
}

impl Counter {
    async fn new(task: Task, _: Secrets) -> Result<Self> {
        Ok(Self { target: task.target, count: 0, added: Vec::new() })
    }

    async fn add(&mut self, Add { amount }: Add) -> Result<ToolOutput> {
        if amount == 13 {
            return Err(Failure::fault("unlucky amount: 13"));
        }
        self.count = self.count.saturating_add(amount);
        self.added.push(amount);
        let output = ToolOutput::text(format!("The count is {}.", self.count))
            .metadata([("count", json!(self.count)), ("worker", json!(std::process::id()))]);
        match self.count >= self.target {
            true => Ok(output.reward(1.0).finished()),
            false => Ok(output.reward(0.0)),
        }
    }

    /// Looks, and changes nothing: it may run beside itself.
    async fn history(&self) -> Result<ToolOutput> {
        let mut count = 0_i64;
        let lines = self.added.iter().map(|amount| {
            count = count.saturating_add(*amount);
            format!("{amount:>12} {count:>12}\n")
        });
        Ok(ToolOutput::text(lines.collect::<String>()))
    }

    /// What the model says instead of a call.
    async fn answer(&mut self, Answer { answer }: Answer) -> Result<ToolOutput> {
        let is_right = answer.trim() == self.target.to_string();
        Ok(ToolOutput::default().reward(if is_right { 0.5 } else { 0.0 }).finished())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    OrsApp::new(TaskApi::new(|| Tasks).named("counter"), Counter::new)
        .tool("add", "Adds to the count.", Counter::add)
        .concurrent_tool("history", "Shows what was added, and the count after each.", Counter::history)
        .terminal_tool("answer", "Takes the last word.", Counter::answer)
        .run()
        .await
}
