//! What a reload finds changed: which settings hold at once, which only after a restart, and whether workers would be
//! started in another way.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::model::{GatewaySettings, Kind, Launch, ServerConfig, ServerSettings};

/// Keys whose value has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedKeys {
    /// They hold from now on.
    pub at_once: Vec<&'static str>,
    /// They need a restart of the gateway; until then the old values hold.
    pub after_restart: Vec<&'static str>,
}

macro_rules! changed {
    ($old:expr, $new:expr; $($field:ident: $key:literal),* $(,)?) => {{
        let mut keys = Vec::new();
        $(if $old.$field != $new.$field { keys.push($key); })*
        keys
    }};
}

impl GatewaySettings {
    /// What of `new` holds while the gateway runs, and which keys have changed.
    pub fn changed_to(&self, new: &Self) -> (Self, ChangedKeys) {
        let keys = ChangedKeys {
            at_once: changed!(self, new;
                shutdown_timeout: "shutdown_timeout_seconds",
                worker_stop_timeout: "worker_stop_timeout_seconds",
                max_buffered_bytes: "max_buffered_bytes",
                access_log: "access_log",
            ),
            after_restart: changed!(self, new; admin: "admin", threads: "threads"),
        };
        let held = Self {
            admin: self.admin,
            threads: self.threads,
            shutdown_timeout: new.shutdown_timeout,
            worker_stop_timeout: new.worker_stop_timeout,
            max_buffered_bytes: new.max_buffered_bytes,
            access_log: new.access_log,
        };
        (held, keys)
    }
}

impl ServerSettings {
    /// What of `new` holds while the gateway runs, and which keys have changed. What names sessions, and starts and ends
    /// them, stays: open sessions hang on it.
    pub fn changed_to(&self, new: &Self) -> (Self, ChangedKeys) {
        let mut keys = ChangedKeys {
            at_once: changed!(self, new;
                multiple_workers_unsupported_reason: "multiple_workers_unsupported_reason",
                session_close_retry_window: "session_close_retry_window_seconds",
                session_idle_timeout: "session_idle_timeout_seconds",
                max_naming_body_bytes: "max_naming_body_bytes",
                queue_timeout: "queue_timeout_seconds",
                start_timeout: "start_timeout_seconds",
                worker_timeout: "worker_timeout_seconds",
                worker_idle_timeout: "worker_idle_timeout_seconds",
                client_idle_timeout: "client_idle_timeout_seconds",
                restart_backoff: "restart_backoff_seconds",
                restart_backoff_max: "restart_backoff_max_seconds",
                max_start_failures: "max_start_failures",
                failed_retry: "failed_retry_seconds",
                drain_timeout: "drain_timeout_seconds",
                max_surge: "max_surge",
            ),
            after_restart: changed!(self, new;
                session_cookie: "session_cookie",
                session_secret: "session_secret",
                protocol: "protocol",
                session_start_routes: "session_start_routes",
                session_end_routes: "session_end_routes",
                routes_sessions_to_owner: "routes_sessions_to_owner",
                lost_session_retention: "lost_session_retention_seconds",
                max_lost_sessions: "max_lost_sessions",
            ),
        };
        keys.at_once.extend(self.limits.changed_to(&new.limits));
        keys.at_once.extend(self.elastic.changed_to(&new.elastic));
        (self.held(new.clone()), keys)
    }

    /// `new`, but for what has to stay. A new setting does not compile here until somebody has decided where it belongs.
    fn held(&self, new: Self) -> Self {
        let old = self.clone();
        Self {
            session_cookie: old.session_cookie,
            session_secret: old.session_secret,
            protocol: old.protocol,
            session_start_routes: old.session_start_routes,
            session_end_routes: old.session_end_routes,
            routes_sessions_to_owner: old.routes_sessions_to_owner,
            lost_session_retention: old.lost_session_retention,
            max_lost_sessions: old.max_lost_sessions,
            describe: new.describe,
            multiple_workers_unsupported_reason: new.multiple_workers_unsupported_reason,
            session_close_retry_window: new.session_close_retry_window,
            session_idle_timeout: new.session_idle_timeout,
            max_naming_body_bytes: new.max_naming_body_bytes,
            queue_timeout: new.queue_timeout,
            start_timeout: new.start_timeout,
            worker_timeout: new.worker_timeout,
            worker_idle_timeout: new.worker_idle_timeout,
            client_idle_timeout: new.client_idle_timeout,
            restart_backoff: new.restart_backoff,
            restart_backoff_max: new.restart_backoff_max,
            max_start_failures: new.max_start_failures,
            failed_retry: new.failed_retry,
            drain_timeout: new.drain_timeout,
            max_surge: new.max_surge,
            limits: new.limits,
            elastic: new.elastic,
        }
    }
}

impl ServerConfig {
    /// Whether a worker of this config would be another than one that is started in that way.
    ///
    /// A NeMo Gym worker is given the config of all servers. What counts of it is what the worker can mean: its own block
    /// without front address and number of workers, the values beside the blocks, and the blocks that its own one names.
    pub fn starts_otherwise(&self, than: &Launch) -> bool {
        match (&self.launch, than) {
            (
                Launch::NemoGym {
                    python,
                    directory,
                    entrypoint,
                    kind_key,
                    implementation,
                    global_config,
                    env,
                },
                Launch::NemoGym {
                    python: old_python,
                    directory: old_directory,
                    entrypoint: old_entrypoint,
                    kind_key: old_kind_key,
                    implementation: old_implementation,
                    global_config: old_global_config,
                    env: old_env,
                },
            ) => {
                (python, directory, entrypoint, kind_key, implementation, env)
                    != (old_python, old_directory, old_entrypoint, old_kind_key, old_implementation, old_env)
                    || what_counts(&self.name, global_config) != what_counts(&self.name, old_global_config)
            }
            (
                Launch::Command { argv, directory, env, server_config },
                Launch::Command {
                    argv: old_argv,
                    directory: old_directory,
                    env: old_env,
                    server_config: old_server_config,
                },
            ) => {
                // A server of NeMo Gym's kinds gets its block, front and all.
                let is_gyms = self.kind.is_nemo_gym();
                let counts = |config| if is_gyms { without_front(config) } else { Value::clone(config) };
                (argv, directory, env) != (old_argv, old_directory, old_env)
                    || counts(server_config) != counts(old_server_config)
            }
            _ => true,
        }
    }
}

/// A block without its front address and number of workers.
fn without_front(block: &Value) -> Value {
    let mut block = block.clone();
    if let Some(block) = block.as_object_mut() {
        block.retain(|key, _| !["host", "port", "num_workers"].contains(&key.as_str()));
    }
    block
}

/// What a NeMo Gym worker of the server `name` can mean of the config of all servers.
fn what_counts(name: &str, global: &Value) -> Map<String, Value> {
    let mut words = BTreeSet::new();
    if let Some(own) = global.get(name) {
        texts(own, &mut words);
    }
    let is_named =
        |other: &str| words.iter().any(|word| *word == other || word.contains(&format!("${{{other}")));
    let entries = global.as_object().into_iter().flatten();
    let counts = entries.filter(|(key, value)| *key == name || !is_server(value) || is_named(key));
    counts.map(|(key, value)| (key.clone(), without_fronts(value, key == name))).collect()
}

fn is_server(value: &Value) -> bool {
    let mut kinds = Kind::ALL.into_iter().filter(|kind| kind.is_nemo_gym());
    value.as_object().is_some_and(|map| kinds.any(|kind| map.contains_key(kind.key())))
}

fn texts<'a>(value: &'a Value, words: &mut BTreeSet<&'a str>) {
    match value {
        Value::String(text) => _ = words.insert(text),
        Value::Array(values) => values.iter().for_each(|value| texts(value, words)),
        Value::Object(map) => map.values().for_each(|value| texts(value, words)),
        _ => {}
    }
}

/// A server's block without what its front has of it: the number of workers, and in the worker's own block its address.
fn without_fronts(value: &Value, own: bool) -> Value {
    let mut value = value.clone();
    let kinds = value.as_object_mut().into_iter().flat_map(|kinds| kinds.values_mut());
    for block in kinds.filter_map(Value::as_object_mut).flat_map(|kind| kind.values_mut()) {
        let Some(block) = block.as_object_mut() else { continue };
        block.shift_remove("num_workers");
        if own {
            block.shift_remove("host");
            block.shift_remove("port");
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::config::{Kind, Listen};

    fn gym(global_config: Value) -> ServerConfig {
        ServerConfig {
            name: "agent".into(),
            kind: Kind::Agent,
            file: None,
            listen: Listen { written: "127.0.0.1:0".into(), address: ([127, 0, 0, 1], 0).into() },
            num_workers: 1,
            launch: Launch::NemoGym {
                python: "python".into(),
                directory: "/".into(),
                entrypoint: "app.py".into(),
                kind_key: "responses_api_agents".into(),
                implementation: "simple".into(),
                global_config,
                env: Default::default(),
            },
            settings: ServerSettings::default(),
        }
    }

    fn global() -> Value {
        json!({
            "agent": {"responses_api_agents": {"simple": {
                "host": "127.0.0.1", "port": 1, "num_workers": 1, "steps": 3, "resources_server": {"name": "counter"},
            }}},
            "counter": {"resources_servers": {"counter": {"port": 2, "num_workers": 4}}},
            "other": {"resources_servers": {"other": {"port": 3}}},
            "policy": "small",
        })
    }

    #[test]
    fn a_gym_worker_is_another_only_by_what_it_can_mean() {
        let old = gym(global());
        let rows: [(&str, Value, bool); 9] = [
            ("/agent/responses_api_agents/simple/port", json!(9), false),
            ("/agent/responses_api_agents/simple/num_workers", json!(9), false),
            ("/agent/responses_api_agents/simple/steps", json!(9), true),
            ("/counter/resources_servers/counter/port", json!(9), true),
            ("/counter/resources_servers/counter/num_workers", json!(9), false),
            ("/other/resources_servers/other/port", json!(9), false),
            ("/other", json!(null), true),
            ("/policy", json!("large"), true),
            ("/agent/responses_api_agents/simple/resources_server/name", json!("${other.x}"), true),
        ];
        for (path, value, differs) in rows {
            let mut changed = global();
            *changed.pointer_mut(path).unwrap() = value;
            assert_eq!(gym(changed).starts_otherwise(&old.launch), differs, "{path}");
        }
        let mut more = global();
        more["newcomer"] = json!({"resources_servers": {"newcomer": {"port": 5}}});
        assert!(!gym(more).starts_otherwise(&old.launch));
        let mut python = gym(global());
        if let Launch::NemoGym { python, .. } = &mut python.launch {
            *python = "other".into();
        }
        assert!(python.starts_otherwise(&old.launch));
    }

    #[test]
    fn a_command_is_another_by_its_block_but_not_by_its_front() {
        let command = |kind, server_config| {
            let (argv, directory, env) = (vec!["./server".into()], "/".into(), Default::default());
            let launch = Launch::Command { argv, directory, env, server_config };
            ServerConfig { kind, launch, ..gym(json!({})) }
        };
        let differ = |kind, old, new| command(kind, new).starts_otherwise(&command(kind, old).launch);
        assert!(!differ(
            Kind::Resources,
            json!({"port": 1, "num_workers": 2}),
            json!({"port": 1, "num_workers": 3})
        ));
        assert!(differ(Kind::Resources, json!({"steps": 1}), json!({"steps": 2})));
        assert!(
            differ(Kind::Generic, json!({"port": 1}), json!({"port": 2})),
            "its own, of whatever meaning"
        );
        assert!(command(Kind::Resources, json!({})).starts_otherwise(&gym(json!({})).launch));
    }

    #[test]
    fn what_sessions_hang_on_stays_until_a_restart() {
        let old = ServerSettings::default();
        let new = ServerSettings {
            session_cookie: Some("sid".into()),
            queue_timeout: Duration::from_secs(1),
            drain_timeout: None,
            ..ServerSettings::default()
        };
        let (held, keys) = old.changed_to(&new);
        assert_eq!(keys.at_once, ["queue_timeout_seconds", "drain_timeout_seconds"]);
        assert_eq!(keys.after_restart, ["session_cookie"]);
        assert_eq!(held, ServerSettings { session_cookie: None, ..new });
        assert_eq!(old.changed_to(&old).1, ChangedKeys::default());
    }

    #[test]
    fn threads_and_the_admin_address_need_a_restart() {
        let old = GatewaySettings::default();
        let new = GatewaySettings { admin: None, threads: old.threads + 1, access_log: true, ..old.clone() };
        let (held, keys) = old.changed_to(&new);
        assert_eq!((keys.at_once, keys.after_restart), (vec!["access_log"], vec!["admin", "threads"]));
        assert_eq!(held, GatewaySettings { access_log: true, ..old });
    }
}
