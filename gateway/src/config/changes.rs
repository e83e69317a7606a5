//! What a reload finds changed: which settings hold at once, which only after a restart, and whether workers would be
//! started in another way.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    model::{GatewaySettings, Kind, Launch, ServerConfig, ServerSettings},
    process::ProcessSettings,
};

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
                max_sessions_per_worker: "max_sessions_per_worker",
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
        // The folder of the workers' sockets is that user's.
        if self.process.user != new.process.user {
            keys.after_restart.push("user");
        }
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
            process: ProcessSettings { user: old.process.user, ..new.process },
            describe: new.describe,
            multiple_workers_unsupported_reason: new.multiple_workers_unsupported_reason,
            session_close_retry_window: new.session_close_retry_window,
            session_idle_timeout: new.session_idle_timeout,
            max_sessions_per_worker: new.max_sessions_per_worker,
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

/// What a worker is started as: what of a config only a new process can have.
#[derive(Clone, Debug, PartialEq)]
pub struct StartedAs {
    /// How it is started.
    pub launch: Launch,
    /// What its process is besides.
    pub process: ProcessSettings,
}

impl ServerConfig {
    /// What its workers are started as.
    pub fn started_as(&self) -> StartedAs {
        StartedAs { launch: self.launch.clone(), process: self.settings.process.clone() }
    }

    /// The same, but for what workers are started as.
    #[must_use]
    pub fn with_workers(&self, started_as: &StartedAs) -> Self {
        let StartedAs { launch, process } = started_as.clone();
        let settings = ServerSettings { process, ..self.settings.clone() };
        Self { launch, settings, ..self.clone() }
    }

    /// Whether a worker of this config would be another than one that is started as that.
    ///
    /// A NeMo Gym worker is given the config of all servers. What counts of it is what the worker can mean: its own block
    /// without front address and number of workers, the values beside the blocks, and the blocks that its own one names.
    pub fn starts_otherwise(&self, than: &StartedAs) -> bool {
        self.settings.process != than.process || self.is_launched_otherwise(&than.launch)
    }

    fn is_launched_otherwise(&self, than: &Launch) -> bool {
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
mod tests;
