//! The gateway as process 1 of a container: it ends on SIGTERM, and reaps whoever has lost its parent.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path, process::Command};

use gym_gateway_tests::harness::{Gateway, Setup, binary, poll, processes};
use nix::sys::signal::Signal;

/// Whether this machine lets us have PID namespaces.
fn can_unshare(test: &str) -> bool {
    let tried = Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).output();
    let can =
        tried.is_ok_and(|tried| tried.status.success()) && Command::new("nsenter").arg("-V").output().is_ok();
    if !can {
        eprintln!("SKIPPED {test}: no PID namespace can be made here (it needs root, unshare and nsenter)");
    }
    can
}

fn launch() -> Gateway {
    let setup = Setup::generic().workers(1);
    Gateway::launch_copy(Path::new("unshare"), |directory| {
        let file = setup.write(directory).to_string_lossy().into_owned();
        let gateway = binary::gateway().to_str().unwrap();
        let args = [
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
            gateway,
            "serve",
            "--log-format",
            "json",
            &file,
        ];
        args.map(str::to_owned).to_vec()
    })
}

/// Its children, dead or alive.
fn children(parent: u32) -> Vec<u32> {
    let everyone = fs::read_dir("/proc").unwrap();
    let pids = everyone.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| processes::parent(*pid) == Some(parent)).collect()
}

fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn it_reaps_strangers_and_ends_in_order() {
    if !can_unshare("it_reaps_strangers_and_ends_in_order") {
        return;
    }
    let gateway = launch();
    gateway.ready().await;
    let [one] = children(gateway.pid())[..] else { panic!("unshare has one child") };
    let keepers = children(one);

    // As `docker exec` would: a shell that leaves a child behind.
    let target = one.to_string();
    let left = Command::new("nsenter")
        .args(["--target", &target, "--pid", "--mount", "sh", "-c", "sleep 1000 >/dev/null 2>&1 &"])
        .status()
        .unwrap();
    assert!(left.success());
    let orphan = poll("the orphan is the gateway's", async || {
        children(one).into_iter().find(|pid| !keepers.contains(pid))
    })
    .await;
    assert!(processes::runs(orphan), "it is left alone while it lives");
    processes::signal(orphan, Signal::SIGKILL);
    poll("the orphan is reaped", async || (!is_there(orphan)).then_some(())).await;
    gateway.get("/echo").send().await.assert(200);

    let workers: Vec<u32> = keepers.iter().flat_map(|keeper| children(*keeper)).collect();
    assert!(!workers.is_empty());
    processes::signal(one, Signal::SIGTERM);
    let status = gateway.exit().await;
    assert_eq!(status.code(), Some(0), "{}", gateway.log().text());
    for pid in workers {
        assert!(!processes::runs(pid));
    }
}
