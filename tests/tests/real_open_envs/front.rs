//! The gateway with four workers of a real server behind it.

use std::{path::Path, time::Duration};

use gym_gateway_tests::harness::{Gateway, Peers, admin, processes, setup::SERVER};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// How many workers it has.
pub(crate) const WORKERS: usize = 4;

/// How long four Python workers may take to start on a busy machine.
const START: Duration = Duration::from_secs(180);

/// A running gateway.
#[derive(Debug)]
pub(crate) struct Front(Gateway);

impl Front {
    /// Starts four workers of a server of the family `open_envs`, and waits until every one is ready. `kind` is the key in
    /// the config, `own` are settings.
    pub(crate) async fn start(python: &Path, kind: &str, script: &str, own: Value) -> Self {
        let mut block = json!({
            "command": [python, Peers::OpenEnvs.script(script), "--port", "{port}"],
            "port": 0,
            "num_workers": WORKERS,
        });
        for (key, value) in own.as_object().into_iter().flatten() {
            block[key] = value.clone();
        }
        let gateway = Gateway::launch(|folder| {
            let file = folder.join("gateway.yaml");
            let config = json!({SERVER: {kind: {"real": block}}, "gateway": {"admin": "127.0.0.1:0"}});
            std::fs::write(&file, config.to_string()).expect("write the config");
            vec!["serve".into(), file.display().to_string()]
        });
        let front = Self(gateway);
        front.gateway().front_listens().await;
        front.until_all_are_ready(1).await;
        front
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.0
    }

    /// What clients are pointed at.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.gateway().front())
    }

    /// Waits until every slot has a ready worker, and one of them of that generation at least.
    pub(crate) async fn until_all_are_ready(&self, generation: u64) {
        let ready = async {
            loop {
                let workers = self.workers().await;
                let is_ready = |worker: &&Value| worker["state"] == "ready";
                let newest = workers.iter().filter_map(|worker| worker["generation"].as_u64()).max();
                if workers.iter().filter(is_ready).count() == WORKERS && newest >= Some(generation) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        if tokio::time::timeout(START, ready).await.is_err() {
            panic!("four workers were not ready within {START:?}: {:?}", self.workers().await);
        }
    }

    /// The workers as the admin address tells them, by slot.
    pub(crate) async fn workers(&self) -> Vec<Value> {
        admin::workers(&admin::status(self.gateway()).await)
    }

    /// How many sessions are in that state, over all slots or on one.
    pub(crate) async fn sessions(&self, state: &str, slot: Option<usize>) -> u32 {
        let slot = slot.map(|slot| slot.to_string());
        let mut labels = vec![("state", state)];
        labels.extend(slot.as_deref().map(|slot| ("slot", slot)));
        admin::metrics(self.gateway()).await.sum(admin::metric::SESSIONS, &labels) as u32
    }

    /// How many sessions were lost since the start.
    pub(crate) async fn sessions_lost(&self) -> u32 {
        admin::metrics(self.gateway()).await.sum("gym_gateway_sessions_lost_total", &[]) as u32
    }

    /// Kills the worker of that slot with SIGKILL.
    pub(crate) async fn kill(&self, slot: usize) {
        let workers = self.workers().await;
        let pid = workers[slot]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a PID");
        processes::signal(pid, Signal::SIGKILL);
        processes::gone(pid).await;
    }

    /// Asserts that every session has ended and nothing is in flight, and stops the gateway.
    pub(crate) async fn finish(self) {
        for state in ["claimed", "open"] {
            admin::sessions_become(self.gateway(), state, 0.0).await;
        }
        self.0.finish().await;
    }
}
