use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::config::{Listen, ServerSettings};

const ALL: LeftOpen = LeftOpen {
    kind: false,
    session_start_routes: true,
    session_end_routes: true,
    routes_sessions_to_owner: true,
};

fn server(num_workers: u16) -> ServerConfig {
    ServerConfig {
        name: "counter".into(),
        kind: Kind::Resources,
        file: Some("a.yaml".into()),
        listen: Listen { written: "127.0.0.1:0".into(), address: ([127, 0, 0, 1], 0).into() },
        num_workers,
        launch: Launch::Command {
            argv: vec!["true".into()],
            directory: "/".into(),
            env: BTreeMap::new(),
            server_config: json!({}),
        },
        settings: ServerSettings { describe: Some(ALL), ..ServerSettings::default() },
    }
}

fn told(text: &Value) -> Description {
    Description::read(&text.to_string()).unwrap()
}

fn full() -> Value {
    json!({
        "kind": "resources",
        "session_cookie": "Counter___counter",
        "session_start_routes": ["/seed_session", "/begin"],
        "session_end_routes": ["/close_session", "/verify", "/finish"],
        "routes_sessions_to_owner": false,
        "multiple_workers_unsupported_reason": null,
        "of_a_later_version": {"x": [1]},
    })
}

#[test]
fn an_answer_needs_a_kind_alone() {
    let told = told(&json!({"kind": "responses_api_agents", "session_end_routes": null}));
    assert_eq!((told.kind, told.session_end_routes, told.session_cookie), (Kind::Agent, None, None));
}

#[test]
fn lines_before_the_object_are_passed_over_wherever_it_breaks_its_own() {
    let pretty = serde_json::to_string_pretty(&full()).unwrap();
    for output in [
        format!("{}\n", full()),
        format!("hello\n{{'a': 1}}\n{{}} and more\n{}\r\n\n", full()),
        format!("{{\"level\": \"info\"}}\n{pretty}\n"),
    ] {
        assert_eq!(Description::read(&output).unwrap(), told(&full()), "{output}");
    }
}

#[test]
fn what_is_no_description_is_said() {
    for (output, seen) in [
        ("", "it wrote nothing on its standard output, where one JSON object was expected"),
        ("usage: server [--socket PATH]", "its standard output does not end in a JSON object"),
        ("{\"kind\": \"resources\"}\nbye", "its standard output does not end in a JSON object"),
        ("[1]", "its standard output does not end in a JSON object"),
        ("{}", "what it wrote is no description: missing field `kind`"),
        (
            "{\"kind\": \"opera\"}",
            "what it wrote is no description: unknown kind \"opera\": one of resources,",
        ),
        (
            "{\"kind\": \"resources\", \"protocol\": \"opera\"}",
            "what it wrote is no description: unknown variant `opera`, expected one of `both`, `seed_verify`, `gymnasium`",
        ),
        (
            "{\"kind\": \"agent\", \"protocol\": \"gymnasium\"}",
            "it says that it is of kind agent and that its protocol is gymnasium, which is one of resources servers",
        ),
        (
            "{\"kind\": \"ors\", \"max_sessions_per_worker\": 3}",
            "it says that it is of kind ors and has max_sessions_per_worker, a limit of openenv servers",
        ),
        (
            "{\"kind\": \"openenv\", \"max_sessions_per_worker\": 0}",
            "what it wrote is no description: invalid value: integer `0`, expected a nonzero usize",
        ),
        (
            "{\"kind\": \"resources\", \"session_end_routes\": \"/x\"}",
            "what it wrote is no description: invalid type: string \"/x\", expected a sequence",
        ),
        (
            "{\"kind\": \"resources\", \"session_cookie\": \"a b\"}",
            "its session_cookie \"a b\" cannot be a cookie's name",
        ),
        (
            "{\"kind\": \"resources\", \"session_end_routes\": [\"/x\", \"y\"]}",
            "its route \"y\" is no path that begins with `/`, without a query",
        ),
    ] {
        let error = Description::read(output).unwrap_err();
        assert!(error.starts_with(seen), "{output}: {error}");
    }
}

#[test]
fn it_settles_what_the_config_leaves_open_but_for_the_protocols_own_routes() {
    let mut server = server(4);
    assert_eq!(server.settle(&told(&full()), None), Ok(Vec::new()));
    let settings = &server.settings;
    assert_eq!(settings.session_cookie.as_deref(), Some("Counter___counter"));
    assert_eq!(settings.session_start_routes, ["/begin"]);
    assert_eq!(settings.session_end_routes, ["/finish"]);
    assert!(!settings.routes_sessions_to_owner);
}

#[test]
fn the_routes_that_are_left_out_are_those_of_the_protocol_that_it_speaks() {
    let mut said = full();
    said["protocol"] = json!("gymnasium");
    let mut server = server(4);
    assert_eq!(server.settle(&told(&said), None), Ok(Vec::new()));
    assert_eq!(server.settings.protocol, Some(Protocol::Gymnasium));
    assert_eq!(server.settings.session_start_routes, ["/seed_session", "/begin"]);
    assert_eq!(server.settings.session_end_routes, ["/close_session", "/verify", "/finish"]);
}

#[test]
fn an_openenv_server_says_how_many_sessions_a_worker_takes() {
    let said = told(&json!({"kind": "openenv", "max_sessions_per_worker": 100}));
    let settled = |ours| {
        let mut config = ServerConfig { kind: Kind::OpenEnv, ..server(4) };
        config.settings.max_sessions_per_worker = ours;
        let overruled = config.settle(&said, None).unwrap();
        (config.settings.max_sessions_per_worker, overruled)
    };
    assert_eq!(settled(None), (Some(100), Vec::new()));
    let says = "server counter says max_sessions_per_worker: 100, and the config 7, which holds";
    assert_eq!(settled(Some(7)), (Some(7), vec![says.to_owned()]));
}

#[test]
fn what_it_does_not_say_stays() {
    let mut config = server(4);
    config.settings.session_end_routes = vec!["/stay".into()];
    let before = config.settings.clone();
    assert_eq!(config.settle(&told(&json!({"kind": "resources"})), None), Ok(Vec::new()));
    assert_eq!(config.settings, before);
}

#[test]
fn what_the_config_sets_holds_and_the_difference_is_told() {
    let mut config = server(4);
    config.settings = ServerSettings {
        describe: Some(LeftOpen::default()),
        session_cookie: Some("mine".into()),
        protocol: Some(Protocol::Both),
        session_start_routes: vec!["/begin".into()],
        session_end_routes: Vec::new(),
        ..ServerSettings::default()
    };
    let before = config.settings.clone();
    let mut said = full();
    said["protocol"] = json!("seed_verify");
    let overruled = config.settle(&told(&said), None).unwrap();
    assert_eq!(config.settings, before);
    assert_eq!(
        overruled,
        [
            "server counter says session_cookie: Counter___counter, and the config mine, which holds",
            "server counter says protocol: seed_verify, and the config both, which holds",
            "server counter says session_end_routes: [/finish], and the config [], which holds",
            "server counter says routes_sessions_to_owner: false, and the config true, which holds",
        ]
    );
}

#[test]
fn another_kind_is_an_error_unless_the_kind_is_open() {
    let agent = told(&json!({"kind": "agent"}));
    let mut config = server(1);
    assert_eq!(
        config.settle(&agent, None).unwrap_err().to_string(),
        "server counter: it says that it is of kind agent, and the config says resources\
         \n  what to do: put its block under `responses_api_agents`, or give the `command` of a server of kind resources"
    );
    config.file = None;
    let error = config.settle(&agent, None).unwrap_err();
    assert_eq!(error.advice, "leave --kind out, or say --kind agent");
    config.settings.describe = Some(LeftOpen { kind: true, ..ALL });
    assert_eq!(config.settle(&agent, None), Ok(Vec::new()));
    assert_eq!(config.kind, Kind::Agent);
}

#[test]
fn a_reason_against_several_workers_refuses_them_unless_the_config_knows_better() {
    let reason = told(
        &json!({"kind": "resources", "multiple_workers_unsupported_reason": "it keeps one board for all"}),
    );
    let mut several = server(4);
    assert_eq!(
        several.settle(&reason, None).unwrap_err().to_string(),
        "server counter: did not agree to num_workers: 4: it keeps one board for all\
         \n  what to do: set num_workers: 1 (or, if you know better, \
         gateway.servers.counter.multiple_workers_unsupported_reason: \"\")"
    );
    several.settings.multiple_workers_unsupported_reason = Some(String::new());
    assert!(several.settle(&reason, None).is_ok());
    assert!(server(1).settle(&reason, None).is_ok());
    let empty = told(&json!({"kind": "resources", "multiple_workers_unsupported_reason": " "}));
    assert!(server(4).settle(&empty, None).is_ok());
}

#[test]
fn the_secret_is_the_one_that_the_worker_takes() {
    let secret = |own: Option<&str>, block: Option<&str>, environment: Option<&str>| {
        let mut config = server(1);
        config.settings.session_secret = own.map(Into::into);
        if let (Launch::Command { server_config, .. }, Some(block)) = (&mut config.launch, block) {
            server_config["session_secret"] = json!(block);
        }
        let plain = told(&json!({"kind": "resources"}));
        config.settle(&plain, environment.map(Into::into)).map(|_| config.settings.session_secret)
    };
    let some = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(secret(None, None, None), Ok(None));
    assert_eq!(secret(None, None, Some("")), Ok(None));
    assert_eq!(secret(None, None, Some("e")), some("e"));
    assert_eq!(secret(None, Some("b"), Some("e")), some("b"));
    assert_eq!(secret(Some("s"), None, Some("e")), some("s"));
    assert_eq!(secret(Some("s"), Some("s"), None), some("s"));
    let error = secret(Some("our-secret"), Some("another"), None).unwrap_err().to_string();
    assert!(error.contains("another session_secret than"), "{error}");
    assert!(!error.contains("our-secret"), "{error}");
}

#[test]
fn a_kind_that_is_heard_of_brings_its_idle_time() {
    let mut config = server(1);
    (config.kind, config.file) = (Kind::Generic, None);
    config.settings.describe = Some(LeftOpen { kind: true, ..ALL });
    config.settle(&told(&json!({"kind": "ors"})), None).unwrap();
    assert_eq!((config.kind, config.settings.session_idle_timeout.as_secs()), (Kind::Ors, 900));
}
