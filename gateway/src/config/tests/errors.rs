//! Bad input: what the user reads.

use super::{Folder, counter};
use crate::config::{
    Kind,
    command::{RunOptions, from_command_in},
    surroundings::Surroundings,
};

/// One file, and all of its errors.
#[rustfmt::skip]
fn table() -> Vec<(String, Vec<&'static str>)> {
    let port = counter("port: 8000");
    let block = |keys: &str| counter(keys);
    let gateway = |keys: &str| format!("{port}gateway:\n  {keys}\n");
    let server = |keys: &str| format!("{port}gateway:\n  servers:\n    counter: {{{keys}}}\n");
    let http = |keys: &str| format!("web:\n  http_servers:\n    web: {{{keys}}}\n");
    vec![
        ("a: [1".into(), vec!["a.yaml:1: not valid YAML: unclosed bracket '[' (column 4)"]),
        ("[1, 2]".into(), vec!["a.yaml:1: expected a map of servers at the top, got a list of 2"]),
        ("a: 1\n---\nb: 2\n".into(), vec!["a.yaml:2: a second YAML document: keep one document in a file"]),
        ("a: 1\nb: 2\na: 3\n".into(), vec!["a.yaml:3: the key `a` stands twice, here and in line 1: keep one"]),
        ("".into(), vec!["a.yaml: no server to serve, since none is described; a server is served if its block `{name: {kind: {implementation: {...}}}}` has a `port`"]),
        (block(""), vec!["a.yaml: no server to serve: a server is served if its block `{name: {kind: {implementation: {...}}}}` has a `port`; without one, and so left to Gym: counter"]),
        // Types and ranges.
        (block("port: 8000\nnum_workers: four"), vec!["a.yaml:6: counter.resources_servers.counter.num_workers: expected a whole number, got the text \"four\""]),
        (block("port: 8000\nnum_workers: 0"), vec!["a.yaml:6: counter.resources_servers.counter.num_workers: expected a whole number from 1 to 1024, got the number 0"]),
        (block("port: 8000\nnum_workers: 1025"), vec!["a.yaml:6: counter.resources_servers.counter.num_workers: expected a whole number from 1 to 1024, got the number 1025"]),
        (block("port: 8000\nnum_workers: 2.5"), vec!["a.yaml:6: counter.resources_servers.counter.num_workers: expected a whole number, got the number 2.5"]),
        (block("port: 8000\nnum_workers: \"4\""), vec!["a.yaml:6: counter.resources_servers.counter.num_workers: expected a whole number, got the text \"4\""]),
        (block("port: 65536"), vec!["a.yaml:5: counter.resources_servers.counter.port: expected a whole number from 0 to 65535, got the number 65536"]),
        (block("port: -1"), vec!["a.yaml:5: counter.resources_servers.counter.port: expected a whole number from 0 to 65535, got the number -1"]),
        (block("port: 8000\nhost: [a]"), vec!["a.yaml:6: counter.resources_servers.counter.host: expected text, got a list of 1"]),
        (block("port: ???"), vec!["a.yaml:5: counter.resources_servers.counter.port: is still to be given (`???`): give it a value"]),
        (gateway("threads: yes"), vec!["a.yaml:7: gateway.threads: expected a whole number, got the truth value true (yes)"]),
        (gateway("access_log: 1"), vec!["a.yaml:7: gateway.access_log: expected true or false, got the number 1"]),
        (gateway("max_buffered_bytes: 0"), vec!["a.yaml:7: gateway.max_buffered_bytes: expected a whole number from 1 to 1099511627776, got the number 0"]),
        (gateway("shutdown_timeout_seconds: -1"), vec!["a.yaml:7: gateway.shutdown_timeout_seconds: expected a number of seconds from 0 to a hundred years, got the number -1"]),
        (gateway("shutdown_timeout_seconds: .nan"), vec!["a.yaml:7: gateway.shutdown_timeout_seconds: expected a number of seconds from 0 to a hundred years, got the number NaN"]),
        (gateway("shutdown_timeout_seconds: 1e12"), vec!["a.yaml:7: gateway.shutdown_timeout_seconds: expected a number of seconds from 0 to a hundred years, got the number 1000000000000"]),
        (gateway("shutdown_timeout_seconds: 10s"), vec!["a.yaml:7: gateway.shutdown_timeout_seconds: expected a number of seconds, got the text \"10s\""]),
        (gateway("admin: 9090"), vec!["a.yaml:7: gateway.admin: expected host:port, like 127.0.0.1:9090, or off, got the number 9090"]),
        (gateway("admin: localhost"), vec!["a.yaml:7: gateway.admin: expected host:port, like 127.0.0.1:8000 or [::1]:8000, got the text \"localhost\""]),
        (gateway("admin: 127.0.0.1:8000"), vec!["a.yaml:7: gateway.admin: is also the address of the server counter: change one port"]),
        (gateway("on_gateway_death: keep"), vec!["a.yaml:7: gateway.on_gateway_death: this version cannot keep workers for the next gateway yet: leave the key out, workers are killed"]),
        (gateway("servers: [counter]"), vec!["a.yaml:7: gateway.servers: expected a map, got a list of 1"]),
        (format!("{port}gateway: yes\n"), vec!["a.yaml:6: gateway: expected a map, got the truth value true (yes)"]),
        // Keys.
        (gateway("admn: 127.0.0.1:9090"), vec!["a.yaml:7: gateway.admn: unknown key: did you mean `admin`?"]),
        (gateway("zzz: 1"), vec!["a.yaml:7: gateway.zzz: unknown key: `gateway` takes admin, threads, shutdown_timeout_seconds, worker_stop_timeout_seconds, max_buffered_bytes, access_log, on_gateway_death, servers"]),
        (server("queue_timeout: 3"), vec!["a.yaml:8: gateway.servers.counter.queue_timeout: unknown key: did you mean `queue_timeout_seconds`?"]),
        (server("num_workers: 3"), vec!["a.yaml:8: gateway.servers.counter.num_workers: does not belong here but in a NeMo Gym server's own block or the block of an `http_servers`, `openenv_servers`, `ors_servers` or `mcp_servers` server: move it"]),
        (server("max_surge: 0"), vec!["a.yaml:8: gateway.servers.counter.max_surge: expected a whole number from 1 to 1024, got the number 0"]),
        (format!("{port}gateway:\n  servers:\n    conter: {{}}\n"), vec!["a.yaml:8: gateway.servers.conter: no such server: did you mean `counter`?"]),
        (format!("{port}gateway:\n  servers:\n    blackjack: {{}}\n"), vec!["a.yaml:8: gateway.servers.blackjack: no such server: the files describe counter"]),
        // Almost the gateway's: Gym's own values pass, these do not.
        (format!("{port}gatway:\n  threads: 1\n"), vec!["a.yaml:6: gatway: unknown key: did you mean `gateway`?"]),
        (format!("{port}Gateway:\n  threads: 1\n"), vec!["a.yaml:6: Gateway: unknown key: did you mean `gateway`?"]),
        (format!("{port}GATEWAYS:\n"), vec!["a.yaml:6: GATEWAYS: unknown key: did you mean `gateway`?"]),
        (format!("{port}two:\n  resource_servers:\n    two: {{port: 1}}\n"), vec!["a.yaml:7: two.resource_servers: no such kind: did you mean `resources_servers`?"]),
        (format!("{port}two:\n  http_server: {{two: {{port: 1}}}}\ngateway: {{servers: {{two: {{}}}}}}\n"), vec!["a.yaml:7: two.http_server: no such kind: did you mean `http_servers`?"]),
        ("two: {responses_api_agent: {two: {port: 1}}}".into(), vec!["a.yaml:1: two.responses_api_agent: no such kind: did you mean `responses_api_agents`?"]),
        (block("port: 8000\nnum_worker: 4"), vec!["a.yaml:6: counter.resources_servers.counter.num_worker: unknown key: did you mean `num_workers`?"]),
        (counter("host: localhost\nprot: 8000") + "gateway: {servers: {counter: {}}}\n", vec!["a.yaml:6: counter.resources_servers.counter.port: missing; there is `prot`: did you mean `port`?"]),
        (counter("host: localhost") + "gateway: {servers: {counter: {}}}\n", vec!["a.yaml:4: counter.resources_servers.counter.port: missing: give the port of the front address, like 8000"]),
        // Server settings.
        (server("session_start_routes: [reset]"), vec!["a.yaml:8: gateway.servers.counter.session_start_routes: expected paths that begin with `/`, without a query, got \"reset\""]),
        (server("protocol: seedverify"), vec!["a.yaml:8: gateway.servers.counter.protocol: unknown protocol \"seedverify\": one of both, seed_verify, gymnasium"]),
        ("a: {responses_api_agents: {a: {port: 1}}}\ngateway: {servers: {a: {command: [./server], protocol: both}}}".into(), vec!["a.yaml:2: gateway.servers.a.protocol: only servers under `resources_servers` have a choice of protocols, and this one is of kind agent: leave it out"]),
        (server("session_cookie: \"a b\""), vec!["a.yaml:8: gateway.servers.counter.session_cookie: \"a b\" cannot be a cookie's name: letters, digits and !#$%&'*+-.^_`|~ only"]),
        (server("restart_backoff_seconds: 90"), vec!["a.yaml:8: gateway.servers.counter.restart_backoff_seconds: the first wait, 90 s, is longer than the longest, 60 s"]),
        (server("start_timeout_seconds: 0"), vec!["a.yaml:8: gateway.servers.counter.start_timeout_seconds: expected more than 0 seconds, got the number 0"]),
        (server("environment: {DEBUG: yes}"), vec!["a.yaml:8: gateway.servers.counter.environment.DEBUG: expected text, got the truth value true (yes): put it in quotes"]),
        (server("environment: {GYM_WORKER_SLOT: 3}"), vec!["a.yaml:8: gateway.servers.counter.environment: GYM_WORKER_SLOT is set by the gateway for each worker: take it out"]),
        (counter("port: 8000\nnum_workers: 4") + "gateway:\n  servers:\n    counter: {multiple_workers_unsupported_reason: it keeps a file}\n",
         vec!["a.yaml:1: counter.resources_servers.counter.num_workers: 4 workers, but this server must have one: it keeps a file. Set num_workers: 1"]),
        // How it starts.
        ("counter: {resources_servers: {counter: {port: 8000}}}".into(), vec!["a.yaml:1: counter.resources_servers.counter.entrypoint: missing: give the script, like app.py (or `gateway.servers.<name>.command`)"]),
        ("counter: {resources_servers: {counter: {port: 8000, entrypoint: /app.py}}}".into(), vec!["a.yaml:1: counter.resources_servers.counter.entrypoint: expected a path inside of the server's folder, got \"/app.py\": give its folder as `gateway.servers.<name>.directory`"]),
        (server("python: .venv/bin/python"), vec!["a.yaml:8: gateway.servers.counter.python: there is no interpreter .venv/bin/python: correct the path, or make the environment"]),
        (server("python: python9"), vec!["a.yaml:8: gateway.servers.counter.python: found no interpreter python9 in PATH (bin)"]),
        (server("directory: nowhere"), vec!["a.yaml:8: gateway.servers.counter.directory: there is no folder nowhere"]),
        (server("directory: bin"), vec!["a.yaml:8: gateway.servers.counter.directory: there is no entrypoint bin/app.py"]),
        ("x: {resources_servers: {y: {port: 1, entrypoint: app.py}}}".into(), vec!["a.yaml:1: gateway.servers.x.directory: found no entrypoint; looked for resources_servers/y/app.py, packages/resources_servers/y/app.py. Give `directory`, or `python` of the environment that has the server"]),
        (server("command: ./server"), vec!["a.yaml:8: gateway.servers.counter.command: expected a list, like [./server, \"{socket}\"], got the text \"./server\""]),
        (server("command: [./nothing]"), vec!["a.yaml:8: gateway.servers.counter.command: ./nothing is not a program that can be run: build it, or correct the path"]),
        (server("command: [nothing]"), vec!["a.yaml:8: gateway.servers.counter.command: found no program nothing in PATH (bin)"]),
        (server("command: []"), vec!["a.yaml:8: gateway.servers.counter.command: empty: give a program and its arguments, like [./server, \"{socket}\"]"]),
        (server("describe: true"), vec!["a.yaml:8: gateway.servers.counter.describe: stands without a `command`, and only a command can be asked: leave it out"]),
        (server("command: [./server], environment: {GYM_SESSION_SECRET: x}"), vec!["a.yaml:8: gateway.servers.counter.environment: GYM_SESSION_SECRET is set by the gateway for each worker: give `session_secret` instead"]),
        (server("command: [./server], python: python3"), vec!["a.yaml:8: gateway.servers.counter.python: stands beside `command`, which needs no interpreter: keep one of them"]),
        (counter("") + "gateway: {servers: {counter: {}}}\n", vec!["a.yaml:4: counter.resources_servers.counter.port: missing: give the port of the front address, like 8000"]),
        // Kinds and shapes.
        ("echo: {openenv_servers: {echo: {port: 1}}}".into(), vec!["a.yaml:1: echo.openenv_servers.echo.command: missing: give the program and its arguments, like [./server, \"{socket}\"]"]),
        ("echo: {ors_servers: {echo: {port: 1, command: [./server], session_cookie: sid}}}".into(), vec!["a.yaml:1: echo.ors_servers.echo.session_cookie: the protocol of `ors_servers` names sessions without a cookie: leave it out"]),
        ("echo: {mcp_servers: {echo: {port: 1, command: [./server]}}}\ngateway: {servers: {echo: {}}}".into(), vec!["a.yaml:2: gateway.servers.echo: an `mcp_servers` server takes its settings in its own block: move them there"]),
        ("c: {resources_servers: {a: {port: 1}, b: {port: 2}}}".into(), vec!["a.yaml:1: c: resources_servers: expected one implementation with its block, {kind: {implementation: {...}}}, got `a`: a map of 1 keys, `b`: a map of 1 keys"]),
        ("c: {resources_servers: {port: 1}}".into(), vec!["a.yaml:1: c: resources_servers: expected one implementation with its block, {kind: {implementation: {...}}}, got `port`: the number 1"]),
        ("c:\n  resources_servers: {c: {}}\n  port: 1\n".into(), vec!["a.yaml:1: c: expected one key, the server's kind, got resources_servers, port: settings go into its implementation's block"]),
        ("c: {_inherit_from: d, resources_servers: {c: {port: 1}}}\ngateway: {servers: {c: {}}}".into(), vec!["a.yaml:1: c: Gym composes this server from another (`_inherit_from` and the like), which the gateway does not: write its block out to have it served"]),
        (http("port: 1"), vec!["a.yaml:3: web.http_servers.web.command: missing: give the program and its arguments, like [./server, \"{socket}\"]"]),
        (http("command: [./server]"), vec!["a.yaml:3: web.http_servers.web.port: missing: give the port of the front address, like 8000"]),
        (http("command: [./server], port: 1, entrypoint: app.py"), vec!["a.yaml:3: web.http_servers.web.entrypoint: does not belong here but in a NeMo Gym server's own block: move it"]),
        (http("command: [./server], port: 1, config: 7"), vec!["a.yaml:3: web.http_servers.web.config: expected a map, got the number 7"]),
        (http("command: [./server], port: 1") + "gateway: {servers: {web: {}}}\n", vec!["a.yaml:4: gateway.servers.web: an `http_servers` server takes its settings in its own block: move them there"]),
        // Addresses.
        (http("command: [./server], port: 8000") + &port, vec!["a.yaml: counter: the address 127.0.0.1:8000 is also that of web (127.0.0.1:8000): change one port"]),
        (http("command: [./server], port: 8000, host: 0.0.0.0") + &port, vec!["a.yaml: counter: the address 127.0.0.1:8000 is also that of web (0.0.0.0:8000): change one port"]),
        // All at once, in the order of the file.
        (block("port: x\nnum_workers: 0") + "gateway:\n  bogus_key_of_mine: 1\n  threads: no\n", vec![
            "a.yaml:5: counter.resources_servers.counter.port: expected a whole number, got the text \"x\"",
            "a.yaml:6: counter.resources_servers.counter.num_workers: expected a whole number from 1 to 1024, got the number 0",
            "a.yaml:8: gateway.bogus_key_of_mine: unknown key: `gateway` takes admin, threads, shutdown_timeout_seconds, worker_stop_timeout_seconds, max_buffered_bytes, access_log, on_gateway_death, servers",
            "a.yaml:9: gateway.threads: expected a whole number, got the truth value false (no)",
        ]),
    ]
}

#[test]
fn every_fault_names_its_place_what_was_seen_and_what_to_do() {
    let mut wrong = Vec::new();
    for (text, expected) in table() {
        let seen = Folder::new().errors(&[&text]);
        if seen != expected {
            wrong.push(format!("{text}\n  expected {expected:#?}\n  seen     {seen:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn files_that_contradict_each_other_are_both_named() {
    let port = counter("port: 8000");
    let folder = Folder::new();
    assert_eq!(
        folder.errors(&[&port, &port]),
        ["b.yaml:1: counter: the server `counter` already stands in a.yaml:1: rename one"]
    );
    let (first, second) =
        (format!("{port}gateway: {{threads: 1, access_log: on}}"), "gateway: {access_log: on, threads: 2}");
    assert_eq!(
        folder.errors(&[&first, second]),
        ["b.yaml:1: gateway.threads: already set to another value in a.yaml:6: keep one"]
    );
    assert_eq!(
        folder.errors(&[&format!("{port}dry_run: true"), "dry_run: false"]),
        ["b.yaml:1: dry_run: already set to another value in a.yaml:6: keep one"]
    );
    assert!(folder.load(&[&format!("{port}dry_run: true"), "dry_run: on"]).is_ok());
}

#[test]
fn a_file_that_cannot_be_read_and_no_file_at_all_are_errors() {
    let folder = Folder::new();
    let surroundings = Surroundings::made_up(folder.0.path(), &[], super::packages);
    let missing = crate::config::load_in(&[folder.path("none.yaml")], &surroundings).unwrap_err().to_string();
    assert!(missing.contains("none.yaml: cannot be read: No such file"), "{missing}");
    let none = crate::config::load_in(&[], &surroundings).unwrap_err().to_string();
    assert_eq!(none, "no config file given: name at least one");
    let file = folder.write("a.yaml", &counter("port: 8000"));
    let twice = crate::config::load_in(&[file.clone(), file], &surroundings).unwrap_err().to_string();
    assert!(twice.contains("a.yaml: given twice: name each file once"), "{twice}");
}

#[test]
fn nested_aliases_do_not_fill_the_memory() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let last = format!("*a{}", level - 1);
        text += &format!("a{level}: &a{level} [{}]\n", [last.as_str(); 10].join(", "));
    }
    let errors = Folder::new().errors(&[&text]);
    assert_eq!(errors, ["a.yaml:6: more than 1000000 values, aliases followed: write less"]);
}

#[test]
fn run_names_the_option_that_is_wrong() {
    let folder = Folder::new();
    let surroundings = Surroundings::made_up(folder.0.path(), &[("PATH", "/nowhere")], super::packages);
    let options = RunOptions {
        kind: None,
        listen: "8000".into(),
        num_workers: 0,
        cookie: Some("a=b".into()),
        session_secret: None,
        admin: None,
        name: None,
        argv: vec!["srv".into()],
        describe: false,
        access_log: false,
    };
    let errors = from_command_in(options.clone(), &surroundings).unwrap_err();
    assert_eq!(
        errors.0,
        [
            "--listen: expected host:port, like 127.0.0.1:8000 or [::1]:8000, got the text \"8000\"",
            "--num-workers: expected a whole number from 1 to 1024, got 0",
            "command: found no program srv in PATH (/nowhere)",
            "--cookie: \"a=b\" cannot be a cookie's name",
        ]
    );
    let right = RunOptions {
        listen: "[::1]:0".into(),
        num_workers: 3,
        cookie: None,
        kind: Some(Kind::Resources),
        argv: vec!["./server".into(), "{socket}".into()],
        ..options
    };
    let config = from_command_in(right, &surroundings).unwrap();
    let server = &config.servers[0];
    assert_eq!((server.name.as_str(), server.kind, server.num_workers), ("server", Kind::Resources, 3));
    assert_eq!(server.listen.written, "[::1]:0");
}
