//! The environments of `tests/python/open_envs/ors_twins.py`.

use axum::Router;
use gym_worker_sdk::ors::{
    AssistantBlock, Block, Message, OrsApp, OrsEnvironment, Secrets, ToolOutput, UserBlock,
};
use gym_worker_sdk::tasks::{Split, TaskApi, TaskError, TaskProvider, row};
use gym_worker_sdk::{Failure, Result, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    #[default]
    Fine,
    Failing,
    Refusing,
}

impl Outcome {
    fn or(&self, failure: &str, refusal: &str) -> Result<()> {
        match self {
            Self::Fine => Ok(()),
            Self::Failing => Err(Failure::fault(failure)),
            Self::Refusing => Err(Failure::new(409, refusal)),
        }
    }

    fn is_fine(&self) -> bool {
        matches!(self, Self::Fine)
    }
}

#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Task {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    split: Option<String>,
    target: i64,
    #[serde(default, skip_serializing_if = "Outcome::is_fine")]
    begins: Outcome,
    #[serde(default, skip_serializing_if = "Outcome::is_fine")]
    sets_up: Outcome,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    bonus: bool,
}

fn task(split: &str, index: u64) -> Task {
    Task {
        id: Some(format!("{split}-{index}")),
        index: Some(index),
        split: Some(split.to_owned()),
        target: i64::try_from(index).unwrap() + 2,
        begins: Outcome::Fine,
        sets_up: Outcome::Fine,
        bonus: false,
    }
}

struct Tasks;

impl TaskProvider for Tasks {
    type Task = Task;

    async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
        let extra = Split::spec(json!({"name": "extra", "type": "test"}))?;
        Ok(vec!["train".into(), "test".into(), "holdout".into(), extra])
    }

    async fn list_tasks(&self, split: &str) -> Result<Vec<Task>, TaskError> {
        let size = match split {
            "train" => 12,
            "test" => 7,
            "holdout" => 3,
            "extra" => 1,
            _ => return Err(TaskError::failed("unknown split")),
        };
        Ok((0..size).map(|index| task(split, index)).collect())
    }
}

#[derive(Debug)]
struct Counting {
    target: i64,
    count: i64,
    sets_up: Outcome,
    has_bonus: bool,
    secrets: Secrets,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outcome")
    }
}

impl OrsEnvironment for Counting {
    type Task = Task;

    async fn setup(&mut self) -> Result<()> {
        self.sets_up.or("no sandbox", "sandbox taken")
    }

    async fn prompt(&self) -> Result<Vec<Block>> {
        let image = Block::image(b"PNG", "image/png").with_detail([("width", 1)]);
        Ok(vec![format!("Count to {}.", self.target).into(), image])
    }

    fn task_tools(&self) -> Vec<String> {
        if self.has_bonus { vec!["bonus".to_owned()] } else { vec![] }
    }
}

/// What to add.
#[derive(Deserialize, JsonSchema)]
struct Add {
    amount: i64,
    /// Why.
    #[serde(rename = "note")]
    _note: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Long {
    of: String,
    times: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Fail {
    words: String,
}

#[derive(Deserialize, JsonSchema)]
struct Answer {
    answer: String,
}

impl Counting {
    async fn new(task: Task, secrets: Secrets) -> Result<Self> {
        task.begins.or("no room", "taken")?;
        let Task { target, sets_up, bonus: has_bonus, .. } = task;
        Ok(Self { target, count: 0, sets_up, has_bonus, secrets })
    }

    async fn add(&mut self, Add { amount, .. }: Add) -> Result<ToolOutput> {
        if amount == 13 {
            return Err(Failure::fault("unlucky amount: 13"));
        }
        self.count += amount;
        let is_done = self.count >= self.target;
        let parity = if self.count % 2 == 0 { "even" } else { "odd" };
        let output = ToolOutput::text(format!("The count is {}.", self.count))
            .metadata([("count", json!(self.count)), ("parity", json!(parity))])
            .reward(f64::from(is_done));
        Ok(if is_done { output.finished() } else { output })
    }

    async fn peek(&self) -> Result<ToolOutput> {
        Ok(ToolOutput::new([Block::text(self.count.to_string()).with_detail([("count", self.count)])]))
    }

    async fn picture(&mut self) -> Result<ToolOutput> {
        Ok(ToolOutput::text("here").block(Block::image(b"PNG", "image/png")))
    }

    async fn long(&self, Long { of, times }: Long) -> Result<ToolOutput> {
        Ok(ToolOutput::text(of.repeat(times.try_into()?)))
    }

    async fn fail(&mut self, Fail { words }: Fail) -> Result<ToolOutput> {
        Err(Failure::fault(words))
    }

    async fn whisper(&mut self) -> Result<ToolOutput> {
        let length = |name: &str| self.secrets.get(name).map_or(0, str::len);
        let lengths: Vec<_> = self.secrets.names().map(|name| (name.to_owned(), length(name))).collect();
        Ok(ToolOutput::default().metadata(lengths))
    }

    async fn bonus(&mut self) -> Result<ToolOutput> {
        self.count += 100;
        Ok(ToolOutput::text(self.count.to_string()))
    }

    async fn answer(&mut self, Answer { answer }: Answer) -> Result<ToolOutput> {
        let is_right = answer == self.target.to_string();
        Ok(ToolOutput::default().reward(f64::from(is_right)).finished())
    }
}

struct LargeTasks;

const LARGE: u64 = 1_000_000;

impl TaskProvider for LargeTasks {
    type Task = Task;

    async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
        Ok(vec!["train".into()])
    }

    async fn num_tasks(&self, _split: &str) -> Result<u64, TaskError> {
        Ok(LARGE)
    }

    async fn get_task(&self, split: &str, index: i64) -> Result<Task, TaskError> {
        Ok(task(split, row(index, LARGE)?))
    }
}

struct Large {
    index: Option<u64>,
}

impl OrsEnvironment for Large {
    type Task = Task;

    async fn prompt(&self) -> Result<Vec<Block>> {
        Ok(Message::flatten(&self.messages().await?))
    }

    async fn messages(&self) -> Result<Vec<Message>> {
        if self.index == Some(0) {
            return Ok(vec![Message::user([Block::text("Begin.").with_detail([("turn", 1)])])]);
        }
        let call = AssistantBlock::ToolCall {
            id: "c1".to_owned(),
            name: "peek".to_owned(),
            input: Map::from_iter([("a".to_owned(), json!(1)), ("b".to_owned(), Value::from("é"))]),
        };
        let result =
            UserBlock::ToolResult { tool_call_id: "c1".to_owned(), blocks: vec!["1".into()], is_error: true };
        Ok(vec![
            Message::system(["Be brief."]),
            Message::assistant([AssistantBlock::Reasoning { text: "hm".to_owned(), signature: None }, call]),
            Message::user([result, "Go on.".into()]),
        ])
    }
}

impl Large {
    async fn stop(&mut self) -> Result<ToolOutput> {
        Ok(ToolOutput::default().reward(0.5).finished())
    }
}

pub(crate) fn server() -> Router {
    let large = async |task: Task, _: Secrets| Ok(Large { index: task.index });
    let large = OrsApp::new(TaskApi::new(|| LargeTasks).named("Large"), large).terminal_tool(
        "stop",
        "Ends it.",
        Large::stop,
    );
    OrsApp::new(TaskApi::new(|| Tasks).named("Counting_Env"), Counting::new)
        .tool("add", "Adds to the count.", Counting::add)
        .concurrent_tool("peek", "Shows the count.", Counting::peek)
        .tool("picture", "Shows a picture.", Counting::picture)
        .concurrent_tool("long", "Says something many times.", Counting::long)
        .tool("fail", "Fails.", Counting::fail)
        .tool("whisper", "Says how long each secret is.", Counting::whisper)
        .task_tool("bonus", "Adds a hundred.", Counting::bonus)
        .terminal_tool("answer", "Takes the last word.", Counting::answer)
        .and(large)
        .settings(Settings::new("ors"))
        .into_router()
        .unwrap()
}
