//! OpenEnv's guide to the Task API, followed with its own client: the environment that it describes, in Rust.

use std::process::Stdio;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gym_gateway_tests::harness::{Peers, soon};
use gym_worker_sdk::{
    Empty, Failure, Result, Settings,
    openenv::{Environment, EnvironmentApp, Observed, Reset, State, StepInfo},
    tasks::{Split, TaskError, TaskProvider, TaskRange, row},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const SPLITS: [(&str, u64); 2] = [("train", 40), ("test", 25)];

#[derive(Deserialize, JsonSchema)]
struct LatexOcrAction {
    latex: String,
}

#[derive(Serialize, JsonSchema)]
struct LatexOcrObservation {
    image_base64: String,
}

/// Dataset-backed: tasks are told of from metadata, and a reset reads the row.
#[derive(Default)]
struct LatexOcrEnvironment {
    state: State<()>,
    latex: String,
}

/// What the row's image shows.
fn latex(split: &str, index: u64) -> String {
    format!("\\frac{{{index}}}{{{}}}", split.len())
}

fn size(split: &str) -> Result<u64, TaskError> {
    let known = SPLITS.iter().find(|(name, _)| *name == split);
    known.map(|(_, size)| *size).ok_or_else(|| TaskError::failed(format_args!("unknown split {split:?}")))
}

impl LatexOcrEnvironment {
    fn observation(&self) -> LatexOcrObservation {
        LatexOcrObservation { image_base64: STANDARD.encode(&self.latex) }
    }
}

impl Environment for LatexOcrEnvironment {
    type Action = LatexOcrAction;
    type Observation = LatexOcrObservation;
    type State = ();
    type Params = Empty;

    async fn reset(&mut self, reset: Reset) -> Result<Observed<LatexOcrObservation>> {
        let split = reset.split_or("test");
        let index = reset.row(split, size(split).map_err(Failure::from)?)?;
        self.latex = latex(split, index);
        self.state = State::begin(reset.episode_id, ());
        Ok(Observed::new(self.observation()))
    }

    async fn step(&mut self, action: LatexOcrAction, _: StepInfo) -> Result<Observed<LatexOcrObservation>> {
        self.state.step_count += 1;
        let is_right = action.latex == self.latex;
        Ok(Observed::new(self.observation()).reward(f64::from(is_right)).done(true))
    }

    async fn state(&mut self) -> Result<State<()>> {
        Ok(self.state.clone())
    }
}

impl TaskProvider for LatexOcrEnvironment {
    type Task = Value;

    async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
        Ok(SPLITS.iter().map(|(name, _)| (*name).into()).collect())
    }

    async fn num_tasks(&self, split: &str) -> Result<u64, TaskError> {
        size(split)
    }

    async fn list_tasks(&self, split: &str) -> Result<Vec<Value>, TaskError> {
        let rows = 0..size(split)?;
        Ok(rows.map(|index| json!({"id": format!("{split}-{index}"), "index": index})).collect())
    }

    async fn get_task(&self, split: &str, index: i64) -> Result<Value, TaskError> {
        let index = row(index, size(split)?)?;
        Ok(json!({"id": format!("{split}-{index}"), "index": index, "split": split}))
    }

    async fn get_task_range(&self, split: &str, range: TaskRange) -> Result<Vec<Value>, TaskError> {
        let rows = range.within(size(split)?);
        let task = |index| json!({"id": format!("{split}-{index}"), "index": index, "split": split});
        Ok(rows.map(task).collect())
    }
}

/// Serves it; its address.
async fn serve() -> String {
    let app = EnvironmentApp::new(LatexOcrEnvironment::default).named("latex_ocr_env").with_tasks();
    let router = app.settings(Settings::new("latex_ocr_env")).into_router().expect("a server");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(tokio::spawn(async move { axum::serve(listener, router).await }));
    address.to_string()
}

/// The guide's four lines, of another server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_curl_lines() {
    let address = serve().await;
    let task = |i: u64| json!({"id": format!("test-{i}"), "index": i, "split": "test"});
    for (line, answer) in [
        ("curl http://localhost:8000/list_environments", json!(["latex_ocr_env"])),
        (
            "curl http://localhost:8000/latex_ocr_env/splits",
            json!([{"name": "train", "type": "train"}, {"name": "test", "type": "test"}]),
        ),
        (
            "curl -X POST http://localhost:8000/latex_ocr_env/num_tasks \\\n  \
             -H 'Content-Type: application/json' -d '{\"split\": \"test\"}'",
            json!({"num_tasks": 25}),
        ),
        (
            "curl -X POST http://localhost:8000/latex_ocr_env/task_range \\\n  \
             -H 'Content-Type: application/json' -d '{\"split\": \"test\", \"start\": 0, \"stop\": 4}'",
            json!({"tasks": [task(0), task(1), task(2), task(3)]}),
        ),
    ] {
        let line = line.replace("localhost:8000", &address);
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", &line]).env("no_proxy", "*").stdin(Stdio::null()).kill_on_drop(true);
        let said = soon("curl's end", shell.output()).await.expect("run sh");
        assert!(said.status.success(), "{line}: {}", String::from_utf8_lossy(&said.stderr));
        assert_eq!(serde_json::from_slice::<Value>(&said.stdout).expect("JSON"), answer, "{line}");
    }
}

/// The guide's client and its training loop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_training_loop() {
    let Some(python) = Peers::OpenEnvs.python("the_training_loop") else { return };
    let address = serve().await;
    let played = tokio::process::Command::new(python)
        .arg(Peers::OpenEnvs.script("walkthrough.py"))
        .arg(format!("ws://{address}"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("run walkthrough.py");
    let (said, why) = (String::from_utf8_lossy(&played.stdout), String::from_utf8_lossy(&played.stderr));
    assert!(played.status.success(), "{said}{why}");
    // The model reads every image but each fifth.
    let expected: Vec<String> = (0..25)
        .map(|index| format!("{index} {:?}", f64::from(u8::from(index % 5 != 0))))
        .chain(["splits train test".to_owned(), "seed 9".to_owned(), "steps 1".to_owned()])
        .collect();
    assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{why}");
}
