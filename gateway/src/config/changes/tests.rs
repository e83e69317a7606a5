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
        assert_eq!(gym(changed).starts_otherwise(&old.started_as()), differs, "{path}");
    }
    let mut more = global();
    more["newcomer"] = json!({"resources_servers": {"newcomer": {"port": 5}}});
    assert!(!gym(more).starts_otherwise(&old.started_as()));
    let mut nicer = gym(global());
    nicer.settings.process.nice = Some(5);
    assert!(nicer.starts_otherwise(&old.started_as()));
    let mut python = gym(global());
    if let Launch::NemoGym { python, .. } = &mut python.launch {
        *python = "other".into();
    }
    assert!(python.starts_otherwise(&old.started_as()));
}

#[test]
fn a_command_is_another_by_its_block_but_not_by_its_front() {
    let command = |kind, server_config| {
        let (argv, directory, env) = (vec!["./server".into()], "/".into(), Default::default());
        let launch = Launch::Command { argv, directory, env, server_config };
        ServerConfig { kind, launch, ..gym(json!({})) }
    };
    let differ = |kind, old, new| command(kind, new).starts_otherwise(&command(kind, old).started_as());
    assert!(!differ(
        Kind::Resources,
        json!({"port": 1, "num_workers": 2}),
        json!({"port": 1, "num_workers": 3})
    ));
    assert!(differ(Kind::Resources, json!({"steps": 1}), json!({"steps": 2})));
    assert!(differ(Kind::Generic, json!({"port": 1}), json!({"port": 2})), "its own, of whatever meaning");
    assert!(command(Kind::Resources, json!({})).starts_otherwise(&gym(json!({})).started_as()));
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
