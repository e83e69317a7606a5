//! The gateway with four unmodified workers of a NeMo Gym server behind it.

use std::{collections::BTreeSet, path::Path, time::Duration};

use gym_gateway_tests::harness::{Gateway, admin, binary, processes, setup::SERVER};
use serde_json::{Value, json};

/// How many workers it has.
const WORKERS: usize = 4;

/// The YAML's name, in a folder of the test's own.
const FILE: &str = "gym.yaml";

/// How long four Python workers may take to start on a busy machine, the dry run before them included.
const START: Duration = Duration::from_secs(180);

/// A running gateway, and what is needed to find its processes again.
#[derive(Debug)]
pub(crate) struct Front {
    gateway: Gateway,
    implementation: String,
    config: Value,
    /// In the environment of every worker, and so of all that a worker forks.
    mark: String,
}

impl Front {
    /// Starts the gateway from a NeMo Gym YAML with `num_workers: 4`, and waits until every worker is ready.
    pub(crate) async fn start(python: &Path, implementation: &str, settings: Value) -> Self {
        Self::start_with(python, implementation, settings, json!({})).await
    }

    /// The same, with settings of the gateway's own for the server.
    pub(crate) async fn start_with(python: &Path, implementation: &str, settings: Value, own: Value) -> Self {
        let settings = merged(json!({"entrypoint": "app.py"}), &settings);
        Self::launch(implementation, settings, merged(json!({"python": python}), &own)).await
    }

    /// The gateway with four workers of one of the worker SDK's examples, which it asks what they are.
    pub(crate) async fn start_example(example: &str, settings: Value) -> Self {
        let command = json!({"command": [binary::example(example)], "describe": true});
        Self::launch(example, settings, command).await
    }

    async fn launch(implementation: &str, settings: Value, own: Value) -> Self {
        let (mut mark, mut written) = (String::new(), Value::Null);
        let gateway = Gateway::launch(|folder| {
            mark = format!("marked {}", folder.display());
            let file = folder.join(FILE);
            written = config(implementation, [&settings, &own], &mark);
            std::fs::write(&file, written.to_string()).expect("write the config");
            vec!["serve".into(), file.display().to_string()]
        });
        let front = Self { gateway, implementation: implementation.into(), config: written, mark };
        front.gateway.front_listens().await;
        let ready = async {
            // The slots are filled only after the dry run.
            while front.workers().await.iter().filter(|worker| worker["state"] == "ready").count() < WORKERS {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        if tokio::time::timeout(START, ready).await.is_err() {
            panic!(
                "four workers of {implementation} were not ready within {START:?}: {:?}",
                front.workers().await
            );
        }
        front
    }

    /// Sets another number of workers in the YAML, and has the gateway read it.
    pub(crate) async fn reload(&self, num_workers: u16) {
        let mut config = self.config.clone();
        config[SERVER]["resources_servers"][&self.implementation]["num_workers"] = json!(num_workers);
        let file = self.gateway.directory().join(FILE);
        std::fs::write(file, config.to_string()).expect("write the config");
        let output = self.gateway.command(&["reload"]).await;
        assert!(output.status.success(), "{output:?}");
    }

    /// The process and its addresses.
    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// The workers as the admin address tells them, by slot.
    pub(crate) async fn workers(&self) -> Vec<Value> {
        admin::workers(&admin::status(&self.gateway).await)
    }

    /// How many sessions were lost since the start.
    pub(crate) async fn sessions_lost(&self) -> u64 {
        let status = admin::status(&self.gateway).await;
        let lost = &status["servers"][0]["sessions_lost"];
        lost.as_u64().unwrap_or_else(|| panic!("no sessions_lost in {status}"))
    }

    /// A field of one worker that is a number: `pid`, `generation`.
    pub(crate) async fn worker_number(&self, slot: usize, field: &str) -> u32 {
        let workers = self.workers().await;
        let number = workers[slot][field].as_u64().and_then(|number| u32::try_from(number).ok());
        number.unwrap_or_else(|| panic!("no {field} in {}", workers[slot]))
    }

    /// How many sessions are in that state, over all slots or on one.
    pub(crate) async fn sessions(&self, state: &str, slot: Option<usize>) -> u32 {
        let slot = slot.map(|slot| slot.to_string());
        let mut labels = vec![("state", state)];
        labels.extend(slot.as_deref().map(|slot| ("slot", slot)));
        admin::metrics(&self.gateway).await.sum(admin::metric::SESSIONS, &labels) as u32
    }

    /// Asserts what must be true after a suite in which every episode ended: no session claimed or open, nothing in
    /// flight, waiting or held in memory, and every worker as it was.
    pub(crate) async fn assert_settled(&self, after: &str) {
        admin::quiet(&self.gateway).await;
        for state in ["claimed", "open"] {
            assert_eq!(self.sessions(state, None).await, 0, "sessions still {state} after {after}");
        }
        for worker in self.workers().await {
            assert_eq!(worker["state"], "ready", "after {after}: {worker}");
        }
    }

    /// Every process that descends from the gateway, or that one of its workers ever forked.
    pub(crate) fn processes(&self) -> BTreeSet<u32> {
        let all = processes();
        let mut family: BTreeSet<u32> = all.iter().copied().filter(|pid| self.is_marked(*pid)).collect();
        family.insert(self.gateway.pid());
        loop {
            let children = |pid: &u32| processes::parent(*pid).is_some_and(|parent| family.contains(&parent));
            let found: Vec<u32> =
                all.iter().copied().filter(|pid| !family.contains(pid) && children(pid)).collect();
            if found.is_empty() {
                return family;
            }
            family.extend(found);
        }
    }

    /// Processes that have this variable, and this test's mark, in their environment.
    pub(crate) fn with_variable(&self, variable: &str) -> Vec<u32> {
        let has = |pid: &u32| environment(*pid).split('\0').any(|have| have == variable);
        processes().into_iter().filter(|pid| self.is_marked(*pid) && has(pid)).collect()
    }

    fn is_marked(&self, pid: u32) -> bool {
        environment(pid).contains(&self.mark)
    }

    /// Stops the gateway with SIGTERM; asserts exit 0 and that no process is left of it.
    pub(crate) async fn stop(self) {
        let before = self.processes();
        assert!(before.len() > 4, "a gateway and its workers, but there are only {before:?}");
        self.gateway.signal(nix::sys::signal::Signal::SIGTERM);
        self.gateway.stopped().await;
        let left: Vec<String> = before
            .into_iter()
            .chain(self.processes())
            .filter(|pid| processes::runs(*pid))
            .map(describe)
            .collect();
        assert!(left.is_empty(), "these outlived the gateway: {left:?}");
    }
}

fn config(implementation: &str, [settings, own]: [&Value; 2], mark: &str) -> Value {
    let block = json!({
        "host": "127.0.0.1",
        "port": 0,
        "num_workers": WORKERS,
        "domain": "agent",
        "description": mark,
    });
    json!({
        SERVER: {"resources_servers": {implementation: merged(block, settings)}},
        "gateway": {"admin": "127.0.0.1:0", "servers": {SERVER: own}},
    })
}

fn merged(mut block: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().into_iter().flatten() {
        block[key] = value.clone();
    }
    block
}

/// All processes of the machine.
fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Empty if the process is gone, or a zombie.
fn environment(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn describe(pid: u32) -> String {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid}: {}", String::from_utf8_lossy(&command).replace('\0', " "))
}
