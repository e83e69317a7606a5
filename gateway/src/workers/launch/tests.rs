use std::collections::BTreeMap;

use super::*;
use crate::workers::testing;

const ID: WorkerId = WorkerId { slot: 2, generation: 5 };

fn planned(argv: &[&str], env: &[(&str, &str)]) -> (Plan, BTreeMap<String, String>) {
    let mut server = testing::server("counter", 4);
    server.launch = Launch::Command {
        argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
        directory: "/srv".into(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        server_config: json!({"size": 3}),
    };
    let plan = plan(&server, ID, "/run/s2-g5.sock".into()).unwrap();
    let env = plan.spec.env.iter().cloned().collect();
    (plan, env)
}

#[test]
fn a_worker_is_told_who_it_is() {
    let (plan, env) = planned(&["server", "{socket}"], &[("MODE", "fast")]);
    assert_eq!(plan.spec.directory, "/srv");
    for (name, value) in [
        ("GYM_WORKER_SLOT", "2"),
        ("GYM_WORKER_GENERATION", "5"),
        ("GYM_NUM_WORKERS", "4"),
        ("GYM_SERVER_NAME", "counter"),
        ("GYM_SERVER_CONFIG", r#"{"size":3}"#),
        ("MODE", "fast"),
    ] {
        assert_eq!(env[name], value);
    }
}

#[test]
fn a_socket_in_the_command_means_a_socket_alone() {
    let (plan, env) = planned(&["server", "--uds={socket}"], &[]);
    assert_eq!(plan.spec.argv, ["server", "--uds=/run/s2-g5.sock"]);
    assert_eq!(plan.places.socket.as_deref(), Some(Path::new("/run/s2-g5.sock")));
    assert!(plan.places.port.is_none());
    assert_eq!(env["GYM_WORKER_SOCKET"], "/run/s2-g5.sock");
    assert!(!env.contains_key("PORT"));
    assert_eq!(plan.spec.socket.as_deref(), Some("/run/s2-g5.sock"));
}

#[test]
fn a_port_in_command_or_environment_means_a_port_alone() {
    for (argv, env) in
        [(&["server", "127.0.0.1:{port}"][..], &[][..]), (&["server"], &[("ADDRESS", ":{port}")])]
    {
        let (plan, filled) = planned(argv, env);
        let port = plan.places.port.as_ref().unwrap().address.port().to_string();
        assert!(plan.places.socket.is_none());
        assert_eq!(filled["PORT"], port);
        assert!(!filled.contains_key("GYM_WORKER_SOCKET"));
        assert!(plan.spec.argv.iter().chain(filled.values()).any(|text| text.ends_with(&format!(":{port}"))));
    }
}

#[test]
fn without_a_placeholder_the_environment_offers_both() {
    let (plan, env) = planned(&["server"], &[]);
    assert_eq!(env["PORT"], plan.places.port.as_ref().unwrap().address.port().to_string());
    assert_eq!(env["GYM_WORKER_SOCKET"], "/run/s2-g5.sock");
    assert!(plan.places.socket.is_some());
}

#[test]
fn an_address_belongs_to_one_worker() {
    let (one, two) = (planned(&["server", "{port}"], &[]).0, planned(&["server", "{port}"], &[]).0);
    assert_ne!(one.places.port.as_ref().unwrap().address, two.places.port.as_ref().unwrap().address);
}

#[test]
fn the_question_comes_in_a_worker_s_environment_with_nowhere_to_listen() {
    let mut server = testing::server("counter", 4);
    server.launch = Launch::Command {
        argv: ["server", "--at", "{socket}", "{port}"].map(str::to_owned).to_vec(),
        directory: "/srv".into(),
        env: BTreeMap::from([("MODE".to_owned(), "p{port}".to_owned())]),
        server_config: json!({"size": 3}),
    };
    let spec = plan_describe(&server).unwrap();
    assert_eq!(spec.argv, ["server", "--at", "/dev/null/nowhere", "0", "--describe"]);
    assert_eq!((spec.directory.as_str(), &spec.socket), ("/srv", &None));
    let env: BTreeMap<_, _> = spec.env.into_iter().collect();
    let expected = [
        ("GYM_NUM_WORKERS", "4"),
        ("GYM_SERVER_CONFIG", r#"{"size":3}"#),
        ("GYM_SERVER_NAME", "counter"),
        ("MODE", "p0"),
    ];
    assert_eq!(env, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    let error = plan_describe(&gym(json!({}))).unwrap_err();
    assert_eq!(error.to_string(), "server counter has no command");
}

#[test]
fn a_command_gets_the_secret_in_its_environment_alone() {
    let mut server = testing::server("counter", 4);
    server.settings.session_secret = Some("our-secret".into());
    let worker = plan(&server, ID, "/run/s2-g5.sock".into()).unwrap().spec;
    for spec in [worker, plan_describe(&server).unwrap()] {
        assert!(spec.env.contains(&("GYM_SESSION_SECRET".into(), "our-secret".into())));
        assert!(!spec.argv.iter().any(|word| word.contains("our-secret")));
    }
    let (plan, _) = planned(&["server"], &[]);
    assert!(!plan.spec.env.iter().any(|(name, _)| name == "GYM_SESSION_SECRET"));
}

fn gym(global_config: Value) -> ServerConfig {
    let mut server = testing::server("counter", 4);
    server.launch = Launch::NemoGym {
        python: "/venv/bin/python".into(),
        directory: "/gym/resources_servers/example".into(),
        entrypoint: "app.py".into(),
        kind_key: "resources_servers".into(),
        implementation: "example".into(),
        global_config,
        env: BTreeMap::from([("OWN".to_owned(), "1".to_owned())]),
    };
    server
}

fn gym_config(server: &ServerConfig, run: GymRun) -> (Plan, Value) {
    let plan = plan_gym(server, run).unwrap();
    assert!(plan.spec.env.contains(&("OWN".to_owned(), "1".to_owned())));
    let text = &plan.spec.env.iter().find(|(name, _)| name == "NEMO_GYM_CONFIG_DICT").unwrap().1;
    let config = serde_json::from_str(text).unwrap();
    (plan, config)
}

#[test]
fn a_gym_worker_gets_its_config_with_an_address_of_its_own_and_one_worker() {
    let server = gym(json!({
        "counter": {"resources_servers": {"example": {
            "entrypoint": "app.py", "host": "0.0.0.0", "port": 8000, "num_workers": 4, "x": "${other.y}"
        }}},
        "other": {"y": 1},
    }));
    let (plan, config) = gym_config(&server, GymRun { num_workers: 1, dry_run: false });
    let port = plan.places.port.as_ref().unwrap().address.port();
    assert_eq!(
        config,
        json!({
            "counter": {"resources_servers": {"example": {
                "entrypoint": "app.py", "host": "127.0.0.1", "port": port, "num_workers": 1, "x": "${other.y}"
            }}},
            "other": {"y": 1},
            "head_server": {"host": "127.0.0.1", "port": 11000},
            "default_host": "127.0.0.1",
            "dry_run": false,
        })
    );
    assert_eq!(plan.spec.argv, ["/venv/bin/python", "app.py"]);
    assert_eq!(plan.spec.directory, "/gym/resources_servers/example");
    let env: BTreeMap<_, _> = plan.spec.env.into_iter().collect();
    assert_eq!(env["NEMO_GYM_CONFIG_PATH"], "counter");
    assert_eq!(env["PYTHONUNBUFFERED"], "1");
}

#[test]
fn what_the_config_has_at_its_top_stays_but_for_a_dry_run_that_is_asked_for() {
    let block = json!({"resources_servers": {"example": {}}});
    let server = gym(json!({"counter": block, "default_host": "h", "head_server": 1, "dry_run": false}));
    let (_, config) = gym_config(&server, GymRun { num_workers: 4, dry_run: true });
    assert_eq!((&config["default_host"], &config["head_server"]), (&json!("h"), &json!(1)));
    assert_eq!(config["dry_run"], true);
    assert_eq!(config["counter"]["resources_servers"]["example"]["num_workers"], 4);
}

#[test]
fn a_config_without_the_server_s_block_is_an_error_that_names_it() {
    let error =
        plan_gym(&gym(json!({"counter": {}})), GymRun { num_workers: 1, dry_run: false }).unwrap_err();
    assert_eq!(error.to_string(), "no counter.resources_servers.example in the config");
}
