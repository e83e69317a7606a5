//! An environment that does what it is told, and tells of its life.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use gym_worker_sdk::openenv::{Environment, EnvironmentApp, Observed, Reset, State, StepInfo};
use gym_worker_sdk::tools::Tools;
use gym_worker_sdk::{Failure, Result, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore};

/// What happened to all of a server's environments.
#[derive(Debug)]
pub(crate) struct Log {
    made: AtomicUsize,
    closed: AtomicUsize,
    /// How many may pass `wait`.
    pub(crate) gate: Semaphore,
    /// Told when one comes to `wait`.
    pub(crate) waits: Notify,
    changed: Notify,
}

impl Log {
    pub(crate) fn new() -> Arc<Self> {
        let count = || AtomicUsize::new(0);
        let (waits, changed) = (Notify::new(), Notify::new());
        Arc::new(Self { made: count(), closed: count(), gate: Semaphore::new(0), waits, changed })
    }

    /// How many were made.
    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    /// How many are there.
    pub(crate) fn open(&self) -> usize {
        self.made() - self.closed.load(Ordering::SeqCst)
    }

    /// Waits until so many are there.
    pub(crate) async fn are_open(&self, count: usize) {
        let same = async {
            loop {
                let changed = self.changed.notified();
                if self.open() == count {
                    return;
                }
                changed.await;
            }
        };
        super::client::soon("environments are closed", same).await;
    }
}

pub(crate) struct Probe {
    log: Arc<Log>,
    state: State<()>,
    /// Everything that was asked of it.
    asked: Vec<String>,
}

/// What to do.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Do {
    what: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {
    asked: Vec<String>,
}

impl Probe {
    pub(crate) fn new(log: &Arc<Log>) -> Self {
        log.made.fetch_add(1, Ordering::SeqCst);
        log.changed.notify_waiters();
        Self { log: log.clone(), state: State::default(), asked: Vec::new() }
    }

    async fn does(&mut self, Do { what }: Do) -> Result<Vec<String>> {
        self.asked.push(what.clone());
        match what.as_str() {
            "fail" => return Err(Failure::fault("it failed")),
            "panic" => panic!("it panicked"),
            "wait" => {
                self.log.waits.notify_one();
                self.log.gate.acquire().await?.forget();
            }
            _ => {}
        }
        Ok(self.asked.clone())
    }

    async fn tells(&mut self) -> Result<Vec<String>> {
        Ok(self.asked.clone())
    }
}

impl Environment for Probe {
    type Action = Do;
    type Observation = Done;
    type State = ();
    type Params = Map<String, Value>;

    async fn reset(&mut self, reset: Reset<Map<String, Value>>) -> Result<Observed<Done>> {
        self.state = State::begin(reset.episode_id, ());
        Ok(Observed::new(Done { asked: Vec::new() }).metadata("params", Value::Object(reset.params)))
    }

    async fn step(&mut self, action: Do, info: StepInfo) -> Result<Observed<Done>> {
        let asked = self.does(action).await?;
        self.state.step_count += 1;
        let told = json!({"metadata": info.metadata, "timeout_s": info.timeout_s, "more": info.more});
        Ok(Observed::new(Done { asked }).metadata("info", told))
    }

    async fn state(&mut self) -> Result<State<()>> {
        Ok(self.state.clone())
    }

    async fn close(self) {
        self.log.closed.fetch_add(1, Ordering::SeqCst);
        self.log.changed.notify_waiters();
        assert!(!self.asked.iter().any(|asked| asked == "close badly"), "its close fails");
    }

    fn tools() -> Tools<Self> {
        Tools::new().add("does", "Does it.", Self::does).add("tells", "", Self::tells)
    }
}

/// A server of it, with that limit.
pub(crate) fn app(log: &Arc<Log>, most: usize) -> EnvironmentApp<Probe> {
    let log = log.clone();
    let settings = Settings::new("probe");
    EnvironmentApp::new(move || Probe::new(&log)).named("probe").max_concurrent_envs(most).settings(settings)
}

pub(crate) fn router(log: &Arc<Log>, most: usize) -> Router {
    app(log, most).into_router().unwrap()
}
