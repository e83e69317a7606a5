//! Good input: the typed values.

use std::time::Duration;

use super::{Folder, counter};
use crate::config::{GatewaySettings, Kind, Launch, Protocol, ServerSettings, describe};

#[test]
fn an_unmodified_server_by_its_own_yaml() {
    let folder = Folder::new();
    let config = folder
        .load(&[&format!(
            "dry_run: false\nmodel: ${{not.here}}\n{}gateway: {{admin: '127.0.0.1:9090'}}\n",
            counter("port: 8000\nnum_workers: 4\nsession_close_retry_window_seconds: 1.5\ncommand: not the gateway's")
        )])
        .unwrap();
    assert_eq!(config.gateway.admin, Some("127.0.0.1:9090".parse().unwrap()));
    let [server] = config.servers.as_slice() else { panic!("one server") };
    assert_eq!((server.name.as_str(), server.kind, server.num_workers), ("counter", Kind::Resources, 4));
    assert_eq!(server.listen.address, "127.0.0.1:8000".parse().unwrap());
    assert_eq!(server.file, Some(folder.path("a.yaml")));
    assert_eq!(server.settings.session_close_retry_window, Duration::from_millis(1500));
    let Launch::NemoGym { python, directory, entrypoint, kind_key, implementation, global_config, env } =
        &server.launch
    else {
        panic!("{:?}", server.launch)
    };
    assert_eq!(python, &folder.path("bin/python3"));
    assert_eq!(directory, &folder.path("resources_servers/counter"));
    assert_eq!((entrypoint.to_str(), kind_key.as_str()), (Some("app.py"), "resources_servers"));
    assert_eq!((implementation.as_str(), env.len()), ("counter", 0));
    let expected = serde_json::json!({
        "dry_run": false,
        "model": "${not.here}",
        "counter": {"resources_servers": {"counter": {
            "entrypoint": "app.py", "port": 8000, "num_workers": 4, "session_close_retry_window_seconds": 1.5,
            "command": "not the gateway's",
        }}},
    });
    assert_eq!(global_config, &expected);
}

#[test]
fn without_settings_everything_has_its_default() {
    let config = Folder::new().load(&[&counter("port: 8000")]).unwrap();
    assert_eq!(config.gateway, GatewaySettings::default());
    assert_eq!(config.servers[0].settings, ServerSettings::default());
    assert_eq!(config.servers[0].num_workers, 1);
}

#[test]
fn the_admin_address_may_be_switched_off() {
    let config = Folder::new().load(&[&(counter("port: 8000") + "gateway: {admin: off}\n")]).unwrap();
    assert_eq!(config.gateway.admin, None);
}

#[test]
fn a_gym_server_may_be_another_program() {
    let folder = Folder::new();
    let text = "
        bonus: 7
        counter:
          resources_servers:
            counter: {port: 0, host: localhost, step: '${bonus}', num_workers: 2}
        gateway:
          servers:
            counter:
              command: [./server, --level, 010, '{socket}']
              environment: {LEVEL: 0x10, NAME: x}
              session_cookie: sid
              protocol: gymnasium
              session_start_routes: [/begin]
              worker_timeout_seconds: 5
              routes_sessions_to_owner: off
              multiple_workers_unsupported_reason: ''
    ";
    let config = folder.load(&[text]).unwrap();
    let server = &config.servers[0];
    let Launch::Command { argv, directory, env, server_config } = &server.launch else { panic!() };
    let program = folder.path("./server").display().to_string();
    assert_eq!(argv, &[program.as_str(), "--level", "010", "{socket}"]);
    assert_eq!(directory, folder.0.path());
    assert_eq!(
        env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
        ["LEVEL=0x10", "NAME=x"]
    );
    assert_eq!(server_config["step"], 7);
    assert_eq!(server.listen.written, "localhost:0");
    assert!(server.listen.address.is_ipv4());
    let expected = ServerSettings {
        session_cookie: Some("sid".into()),
        protocol: Some(Protocol::Gymnasium),
        session_start_routes: vec!["/begin".into()],
        worker_timeout: Some(Duration::from_secs(5)),
        routes_sessions_to_owner: false,
        multiple_workers_unsupported_reason: Some(String::new()),
        ..ServerSettings::default()
    };
    assert_eq!(server.settings, expected);
}

#[test]
fn the_generic_kind_takes_its_settings_in_its_block() {
    let folder = Folder::new();
    let web = "
        web:
          http_servers:
            web:
              command: [python3, app.py]
              port: 8001
              host: '::1'
              working_directory: bin
              config: {a: [1, yes]}
              queue_timeout_seconds: 0
              session_close_retry_window_seconds: 9
    ";
    let config = folder.load(&[web, &counter("port: 8000")]).unwrap();
    let [web, counter] = config.servers.as_slice() else { panic!("two servers") };
    assert_eq!((web.kind, web.listen.written.as_str()), (Kind::Generic, "[::1]:8001"));
    let Launch::Command { argv, directory, server_config, .. } = &web.launch else { panic!() };
    assert_eq!(argv, &[folder.path("bin/python3").display().to_string().as_str(), "app.py"]);
    assert_eq!(directory, &folder.path("bin"));
    assert_eq!(server_config, &serde_json::json!({"a": [1, true]}));
    assert_eq!(web.settings.queue_timeout, Duration::ZERO);
    assert_eq!(web.settings.session_close_retry_window, Duration::from_secs(9));
    // Gym does not know the gateway's kinds: its workers do not hear of them.
    let Launch::NemoGym { global_config, .. } = &counter.launch else { panic!() };
    assert!(global_config.get("web").is_none(), "{global_config}");
}

#[test]
fn so_do_those_of_the_other_protocols() {
    let folder = Folder::new();
    for (key, kind, idle) in [
        ("openenv_servers", Kind::OpenEnv, 86_400),
        ("ors_servers", Kind::Ors, 900),
        ("mcp_servers", Kind::Mcp, 86_400),
    ] {
        let text =
            format!("env: {{{key}: {{env: {{command: [./server, '{{port}}'], port: 0, num_workers: 3}}}}}}");
        let config = folder.load(&[&text]).unwrap();
        let server = &config.servers[0];
        assert_eq!((server.kind, server.num_workers), (kind, 3));
        assert_eq!(server.settings, ServerSettings::of(kind));
        assert_eq!(server.settings.session_idle_timeout, Duration::from_secs(idle));
    }
    let text = "env: {ors_servers: {env: {command: [./server], port: 0, session_idle_timeout_seconds: 60}}}";
    let config = folder.load(&[text]).unwrap();
    assert_eq!(config.servers[0].settings.session_idle_timeout, Duration::from_secs(60));
}

#[test]
fn what_is_only_a_little_like_the_gateway_s_keys_is_gym_s() {
    let text = counter("port: 8000\nnum_workers: 2\nnum_worker: 9\nprot: 1\nmax_workers: 3")
        + "gateway_url: x\n"
        + "two: {resource_servers: text, resource_server_ids: {a: 1}, mcp_servers_of_mine: {}}\n"
        // A server with a name like the gateway's.
        + "gateways: {resources_servers: {counter: {entrypoint: app.py, port: 8001}}}\n"
        + "left: {resources_servers: {counter: {entrypoint: app.py, prot: 8002}}}\n";
    let config = Folder::new().load(&[&text]).unwrap();
    let names: Vec<_> = config.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["counter", "gateways"]);
    assert_eq!(config.left_to_gym, ["left"]);
}

#[test]
fn what_has_no_port_or_is_composed_by_gym_is_left_to_gym() {
    let text = counter("port: 8000")
        + "agent: {responses_api_agents: {simple_agent: {entrypoint: app.py, num_workers: 8}}}\n"
        + "copy: {_inherit_from: agent, responses_api_agents: {simple_agent: {port: 1}}}\n";
    let config = Folder::new().load(&[&text]).unwrap();
    assert_eq!(config.servers.len(), 1);
    assert_eq!(config.left_to_gym, ["agent", "copy"]);
    let Launch::NemoGym { global_config, .. } = &config.servers[0].launch else { panic!() };
    assert!(global_config.get("agent").is_some());
}

#[test]
fn the_interpreter_and_the_folder_are_found_in_order() {
    let folder = Folder::new();
    let server =
        |name: &str| format!("{name}: {{resources_servers: {{{name}: {{port: 0, entrypoint: app.py}}}}}}\n");
    let script = |text: &str, variables: &[(&str, &str)]| {
        let config = folder.load_with(&[text], variables).unwrap();
        let Launch::NemoGym { python, directory, .. } = config.servers[0].launch.clone() else { panic!() };
        let short =
            |path: std::path::PathBuf| path.strip_prefix(folder.0.path()).unwrap().display().to_string();
        (short(python), short(directory))
    };
    let (venv, active) = (folder.path("env"), "env/bin/python".to_owned());
    let variables = [("VIRTUAL_ENV", venv.to_str().unwrap())];
    folder.program("env/bin/python");
    // In the site-packages of the active environment.
    folder.write("env/packages/resources_servers/far/app.py", "");
    assert_eq!(
        script(&server("far"), &variables),
        (active.clone(), "env/packages/resources_servers/far".into())
    );
    // In those of the given interpreter.
    folder.program("other/bin/python");
    folder.write("other/packages/resources_servers/far/app.py", "");
    let given = server("far") + "gateway: {servers: {far: {python: other/bin/python}}}\n";
    assert_eq!(
        script(&given, &variables),
        ("other/bin/python".into(), "other/packages/resources_servers/far".into())
    );
    // Beside the config, and its own environment is first.
    folder.write("resources_servers/far/app.py", "");
    assert_eq!(script(&server("far"), &variables), (active, "resources_servers/far".into()));
    folder.program("resources_servers/far/.venv/bin/python");
    let own = "resources_servers/far/.venv/bin/python".to_owned();
    assert_eq!(script(&server("far"), &variables), (own, "resources_servers/far".into()));
}

#[test]
fn gateway_settings_of_several_files_are_united_and_paths_stay_beside_their_file() {
    let folder = Folder::new();
    folder.program("deploy/bin/server");
    let deploy = folder
        .write("deploy/gateway.yaml", "gateway: {threads: 2, servers: {counter: {command: [bin/server]}}}");
    let main = folder.write(
        "main.yaml",
        &(counter("port: 8000") + "gateway: {threads: 2, servers: {counter: {queue_timeout_seconds: 1}}}"),
    );
    let surroundings =
        crate::config::surroundings::Surroundings::made_up(folder.0.path(), &[], super::packages);
    let config = crate::config::load_in(&[deploy.clone(), main.clone()], &surroundings).unwrap();
    let Launch::Command { argv, directory, .. } = &config.servers[0].launch else { panic!() };
    assert_eq!(argv, &[folder.path("deploy/bin/server").display().to_string()]);
    assert_eq!(directory, &folder.path("deploy"));
    assert_eq!(
        (config.gateway.threads, config.servers[0].settings.queue_timeout),
        (2, Duration::from_secs(1))
    );
}

#[test]
fn check_tells_what_differs_from_the_defaults() {
    let folder = Folder::new();
    let text = counter("port: 8000\nnum_workers: 4")
        + "agent: {responses_api_agents: {a: {entrypoint: app.py}}}\n"
        + "gateway: {admin: 'localhost:9090', servers: {counter: {queue_timeout_seconds: 2.5, session_secret: hidden, environment: {KEY: hidden}}}}\n";
    let said = describe(&folder.load(&[&text]).unwrap()).replace(&folder.0.path().display().to_string(), "");
    let expected = "1 server, admin address 127.0.0.1:9090

counter (resources_servers) on 127.0.0.1:8000, 4 workers
  from      /a.yaml
  starts    /bin/python3 app.py
  in        /resources_servers/counter
  with      KEY
  session_secret: given (default: the cookie's name)
  queue_timeout_seconds: 2.5 (default: 10)

left to Gym (no port, or composed by Gym): agent
";
    assert_eq!(said, expected);
}

#[test]
fn the_examples_in_deploy_load() {
    let folder = Folder::new();
    folder.program("target/release/examples/counter");
    folder.write("resources_servers/math_with_code/app.py", "");
    let load = |name: &str, text: &str| {
        let file = folder.write(name, text);
        let path = folder.path("bin").display().to_string();
        let variables = [("PATH", path.as_str())];
        let made_up =
            crate::config::surroundings::Surroundings::made_up(folder.0.path(), &variables, super::packages);
        crate::config::load_in(&[file], &made_up).unwrap()
    };
    let counter = load("deploy/counter.yaml", include_str!("../../../../deploy/counter.yaml"));
    assert_eq!((counter.servers.len(), counter.servers[0].num_workers), (1, 4));
    let gym = load("deploy/nemo_gym.yaml", include_str!("../../../../deploy/nemo_gym.yaml"));
    assert_eq!((gym.servers.len(), gym.servers[0].listen.address.port()), (1, 8000));
    assert_eq!(gym.left_to_gym, ["math_with_code_simple_agent"]);
}
