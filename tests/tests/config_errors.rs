//! Wrong configurations and command lines: exit 2 with file, key and what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::process::{Command, Output};

use gym_gateway_tests::harness::binary;
use serde_json::{Value, json};

/// Runs the gateway to its end in a folder with these files.
fn run(args: &[&str], files: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let Output { status, stdout, stderr } =
        Command::new(binary::gateway()).args(args).current_dir(directory.path()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn good() -> Value {
    json!({
        "stub": {"http_servers": {"stub": {
            "host": "127.0.0.1", "port": 0, "num_workers": 2, "command": [binary::stub_worker(), "--socket", "{socket}"],
        }}},
        "gateway": {"admin": "127.0.0.1:0"},
    })
}

/// Both `check` and `serve` refuse the file with 2 and say all of this.
#[track_caller]
fn refused(config: &Value, words: &[&str]) {
    refused_text(&serde_json::to_string_pretty(config).unwrap(), words);
}

#[track_caller]
fn refused_text(text: &str, words: &[&str]) {
    for command in ["check", "serve"] {
        let (code, _, said) = run(&[command, "my.yaml"], &[("my.yaml", text)]);
        assert_eq!(code, Some(2), "{command}: {said}");
        assert!(said.contains("my.yaml"), "{command} does not name the file: {said}");
        for word in words {
            assert!(said.contains(word), "{command}: no {word:?} in: {said}");
        }
        assert!(!said.contains("panicked"), "{said}");
    }
}

fn with(key: &str, value: Value) -> Value {
    let mut config = good();
    config["stub"]["http_servers"]["stub"][key] = value;
    config
}

#[test]
fn a_good_one_is_described() {
    let (code, out, said) = run(&["check", "my.yaml"], &[("my.yaml", &good().to_string())]);
    assert_eq!(code, Some(0), "{said}");
    assert!(out.contains("stub") && out.contains("127.0.0.1:0"), "{out}");
}

#[test]
fn those_who_are_not_asked_are_not_said_to_agree() {
    let gym = |script: &str, workers: u16, own: Value| {
        let block = json!({"entrypoint": script, "port": 0, "num_workers": workers});
        let mut own = own;
        own["python"] = json!("/bin/sh");
        own["directory"] = json!(".");
        (block, own)
    };
    let mut config = good();
    for (name, (block, own)) in [
        ("one", gym("no.sh", 1, json!({}))),
        ("settled", gym("no.sh", 2, json!({"multiple_workers_unsupported_reason": ""}))),
        ("agrees", gym("yes.sh", 3, json!({}))),
    ] {
        config[name] = json!({"resources_servers": {name: block}});
        config["gateway"]["servers"][name] = own;
    }
    let ask = |config: &Value| {
        let text = config.to_string();
        run(&["check", "--ask", "my.yaml"], &[("my.yaml", &text), ("yes.sh", "exit 0"), ("no.sh", "exit 3")])
    };
    let (code, out, said) = ask(&config);
    assert_eq!(code, Some(0), "{out}{said}");
    for line in [
        "stub: not asked: it runs a command, which is asked only with `describe: true`",
        "one: not asked: it has one worker",
        "settled: not asked: its multiple_workers_unsupported_reason is set",
        "agrees: can have 3 workers",
    ] {
        assert!(out.lines().any(|seen| seen == line), "no {line:?} in: {out}");
    }
    assert_eq!(said.matches("asking the server whether it can have several workers").count(), 1, "{said}");
    config["one"]["resources_servers"]["one"]["num_workers"] = json!(2);
    let (code, out, said) = ask(&config);
    assert_eq!(code, Some(1), "{out}{said}");
    assert!(out.contains("did not agree to num_workers: 2 in a dry run: it exited with status 3"), "{out}");
}

#[test]
fn a_misspelt_key_is_named_with_the_right_one() {
    refused(&with("num_wokers", json!(2)), &["num_wokers", "num_workers"]);
    refused(&with("queue_timeout", json!(2)), &["queue_timeout", "queue_timeout_seconds"]);
    let mut config = good();
    config["gateway"]["shutdwn_timeout_seconds"] = json!(3);
    refused(&config, &["shutdwn_timeout_seconds", "shutdown_timeout_seconds"]);
    let mut config = good();
    config["Gateway"] = json!({"threads": 1});
    config["other"] = json!({"resource_servers": {"other": {"port": 0}}});
    refused(&config, &["Gateway", "`gateway`", "other.resource_servers", "`resources_servers`"]);
}

#[test]
fn a_wrong_type_is_named_with_what_was_expected() {
    refused(&with("num_workers", json!("many")), &["num_workers", "many"]);
    refused(&with("queue_timeout_seconds", json!([1])), &["queue_timeout_seconds"]);
    refused(&with("command", json!("program --flag")), &["command", "list"]);
    refused(&with("port", json!(70_000)), &["port", "70000"]);
    refused(&with("routes_sessions_to_owner", json!("maybe")), &["routes_sessions_to_owner"]);
    let mut config = good();
    config["gateway"] = json!([]);
    refused(&config, &["gateway"]);
    refused_text("- a\n- b\n", &["map"]);
    refused_text("a: [1\n", &["my.yaml"]);
}

#[test]
fn no_workers_are_too_few() {
    refused(&with("num_workers", json!(0)), &["num_workers", "0"]);
    refused(&with("num_workers", json!(-1)), &["num_workers"]);
}

#[test]
fn several_problems_are_told_at_once() {
    let mut config = with("num_workers", json!(0));
    config["gateway"]["acess_log"] = json!(true);
    refused(&config, &["num_workers", "access_log"]);
}

#[test]
fn a_server_twice_is_an_error() {
    let text = good().to_string();
    for command in ["check", "serve"] {
        let (code, _, said) = run(&[command, "a.yaml", "b.yaml"], &[("a.yaml", &text), ("b.yaml", &text)]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("stub") && said.contains("a.yaml") && said.contains("b.yaml"), "{said}");
    }
    let twice = "stub: {http_servers: {stub: {port: 0, command: [sh]}}}\nstub: {http_servers: {stub: {port: 0, command: [sh]}}}\n";
    refused_text(twice, &["stub"]);
}

#[test]
fn an_entrypoint_or_interpreter_that_is_missing_is_named() {
    let gym = |own: Value| {
        json!({
            "stub": {"resources_servers": {"stub": {"entrypoint": "app.py", "host": "127.0.0.1", "port": 0}}},
            "gateway": {"servers": {"stub": own}},
        })
    };
    refused(&gym(json!({"directory": "."})), &["app.py"]);
    refused(&gym(json!({"directory": "nowhere"})), &["nowhere"]);
    refused(&gym(json!({"directory": ".", "python": "/no/python"})), &["/no/python"]);
    refused(&gym(json!({"pyton": "python3"})), &["pyton", "python"]);
}

#[test]
fn a_file_that_is_missing_or_names_nothing_is_an_error() {
    let (code, _, said) = run(&["serve", "none.yaml"], &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("none.yaml"), "{said}");
    refused_text("{}", &["server"]);
    let mut config = good();
    config["gateway"]["servers"] = json!({"stubb": {"python": "python3"}});
    refused(&config, &["stubb"]);
}

#[test]
fn an_interpolation_that_leads_nowhere_is_named() {
    refused(&with("port", json!("${nowhere.port}")), &["nowhere.port", "port"]);
    refused(&with("host", json!("${oc.env:GYM_GATEWAY_TEST_UNSET}")), &["GYM_GATEWAY_TEST_UNSET"]);
    let mut config = with("port", json!("${ports.stub}"));
    config["ports"] = json!({"stub": "${oc.env:GYM_GATEWAY_TEST_UNSET,0}"});
    let (code, _, said) = run(&["check", "my.yaml"], &[("my.yaml", &config.to_string())]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn the_command_line_is_checked() {
    for args in [
        &["serve"][..],
        &["no-such-command"],
        &["run", "--num-workers", "0", "--listen", "127.0.0.1:0", "--", "sh"],
        &["run", "--num-workers", "2", "--listen", "nonsense", "--", "sh"],
        &["run", "--num-workers", "2", "--listen", "127.0.0.1:0"],
        &["run", "--num-workers", "2", "--listen", "127.0.0.1:0", "--kind", "opera", "--", "sh"],
        &["run", "--num-workers", "2", "--listen", "127.0.0.1:0", "--", "/no/such/program"],
        &["serve", "--no-such-flag", "my.yaml"],
    ] {
        let (code, _, said) = run(args, &[]);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(!said.is_empty() && !said.contains("panicked"), "{args:?}: {said}");
    }
}

#[test]
fn help_names_every_command() {
    let (code, out, _) = run(&["--help"], &[]);
    assert_eq!(code, Some(0));
    for command in ["serve", "run", "check", "status", "sessions"] {
        assert!(out.contains(command), "{out}");
        let (code, help, _) = run(&[command, "--help"], &[]);
        assert_eq!(code, Some(0), "{command}");
        assert!(help.contains("Usage"), "{help}");
    }
    let (code, out, _) = run(&["--version"], &[]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("gym-gateway "), "{out}");
}
