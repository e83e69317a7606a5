//! The files in `deploy/`: they parse, the gateway takes its configurations, and none cuts a stop short.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use gym_gateway::config::GatewaySettings;

/// Other programs' YAML; what is not here is the gateway's.
const OTHERS: [&str; 2] = ["container/compose.yaml", "kubernetes/gym-gateway.yaml"];

const GATEWAY: &str = env!("CARGO_BIN_EXE_gym-gateway");

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("deploy")
}

fn text(name: &str) -> String {
    fs::read_to_string(deploy().join(name)).unwrap()
}

/// All YAML files, by their names below `deploy`.
fn yaml_files() -> Vec<String> {
    let (mut folders, mut files) = (vec![deploy()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
                files.push(path.strip_prefix(deploy()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}

/// A folder with what the configurations name, in the places where they look for it.
fn surroundings() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for program in ["bin/python3", "bin/gym-counter", "target/release/examples/counter"] {
        let path = folder.path().join(program);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // NeMo Gym's servers are looked for in this interpreter's site-packages too.
        fs::write(&path, "#!/bin/sh\necho /nowhere\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = folder.path().join("resources_servers/math_with_code/app.py");
    fs::create_dir_all(script.parent().unwrap()).unwrap();
    fs::write(script, "").unwrap();
    folder
}

/// Puts a configuration where it belongs, and has the gateway check it.
fn check(name: &str, text: &str) {
    let folder = surroundings();
    let file = folder.path().join("deploy").join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    let checked = Command::new(GATEWAY)
        .arg("check")
        .arg(&file)
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", folder.path().join("bin"))
        .output()
        .unwrap();
    assert!(checked.status.success(), "{name}: {}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn the_gateway_takes_its_configurations() {
    let files = yaml_files();
    for other in OTHERS {
        assert!(files.iter().any(|file| file == other), "{other} is gone: take it out of this test");
    }
    let own: Vec<_> = files.iter().filter(|file| !OTHERS.contains(&file.as_str())).collect();
    assert!(own.len() >= 3, "{own:?}");
    for name in own {
        check(name, &text(name));
    }
}

#[test]
fn the_gateway_takes_the_configuration_in_the_config_map() {
    let kubernetes = text("kubernetes/gym-gateway.yaml");
    let block = kubernetes.lines().skip_while(|line| *line != "  gateway.yaml: |").skip(1);
    let config: Vec<_> = block.map_while(|line| line.strip_prefix("    ")).collect();
    assert!(config.len() > 5, "{config:?}");
    check("gateway.yaml", &config.join("\n"));
}

#[test]
fn other_programs_files_are_yaml() {
    for name in OTHERS {
        let text = text(name);
        for event in granit_parser::Parser::new_from_str(&text) {
            event.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

/// The whole number behind this text.
fn number_after(name: &str, key: &str) -> u64 {
    let text = text(name);
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(key)).expect(key);
    rest.trim().trim_end_matches('s').parse().unwrap()
}

#[test]
fn a_stop_is_given_more_time_than_it_takes() {
    let settings = GatewaySettings::default();
    let takes = (settings.shutdown_timeout + settings.worker_stop_timeout).as_secs();
    for (name, key) in [
        ("systemd/gym-gateway.service", "TimeoutStopSec="),
        ("container/compose.yaml", "stop_grace_period:"),
        ("kubernetes/gym-gateway.yaml", "terminationGracePeriodSeconds:"),
    ] {
        assert!(number_after(name, key) >= takes + 5, "{name}: {key}");
    }
}

#[test]
fn signals_reach_the_gateway_and_nobody_else() {
    let unit = text("systemd/gym-gateway.service");
    for line in ["KillMode=process", "Type=notify", "OOMPolicy=continue", "RestartPreventExitStatus=2"] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    let image = text("container/Dockerfile");
    for line in ["STOPSIGNAL SIGTERM", "ENTRYPOINT [\"gym-gateway\"]"] {
        assert!(image.lines().any(|found| found == line), "{line}");
    }
    let root = deploy().parent().unwrap().to_owned();
    let copied = image.lines().filter_map(|line| line.strip_prefix("COPY deploy/"));
    for file in copied.map(|rest| rest.split(' ').next().unwrap()) {
        assert!(root.join("deploy").join(file).is_file(), "deploy/{file}");
    }
}

#[test]
fn systemd_takes_the_unit() {
    if !Command::new("systemd-analyze").arg("--version").output().is_ok_and(|said| said.status.success()) {
        eprintln!("SKIPPED systemd_takes_the_unit: there is no systemd-analyze");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gym-gateway.service");
    let unit = text("systemd/gym-gateway.service");
    assert!(unit.contains("/usr/local/bin/gym-gateway"));
    fs::write(&file, unit.replace("/usr/local/bin/gym-gateway", GATEWAY)).unwrap();
    let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success(), "{said}");
    // Warnings name the unit, or the line of its file; others' are theirs.
    let own: Vec<_> = said.lines().filter(|line| line.contains("gym-gateway.service")).collect();
    assert!(own.is_empty(), "{own:?}");
}
