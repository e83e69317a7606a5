//! No worker, and nothing that it forked, outlives the gateway; not even after `kill -9` of gateway or keeper.

use std::{fs, path::PathBuf};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{gateway::Gateway, lives, until};

/// Children in the worker's group, in a session of their own, and twice forked, each with a pipe open and deaf to what
/// it can be deaf to; then the worker itself.
const FORKS: &str = "trap '' TERM INT HUP
    sleep 1000 & one=$!
    setsid sleep 1000 & two=$!
    three=$(setsid sh -c 'sleep 1000 >&2 & echo $!')
    echo forked: $one $two $three
    exec \"$0\" \"$@\"";

/// The worker's process ID, its keeper's, and those of what the worker forked.
struct Family {
    worker: i32,
    keeper: i32,
    forked: Vec<i32>,
}

fn family(gateway: &mut Gateway) -> Family {
    let ready = gateway.tells();
    assert!(ready.starts_with("ready 0.1 pid Some("), "{ready}");
    let worker: i32 = ready.split(['(', ')']).nth(1).unwrap().parse().unwrap();
    let output = ready.split_once("forked: ").unwrap().1;
    let forked: Vec<i32> = output.split(' ').map_while(|word| word.parse().ok()).collect();
    assert_eq!(forked.len(), 3, "{ready}");
    let family = Family { worker, keeper: parent(worker), forked };
    assert!(family.forked.iter().chain([&worker, &family.keeper]).all(|pid| lives(*pid)));
    assert_ne!(family.keeper, gateway.process.id().cast_signed());
    family
}

fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat[stat.rfind(')').unwrap()..].split(' ').nth(2).unwrap().parse().unwrap()
}

fn kill9(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

/// The folders of the sockets of the gateway with this process ID.
fn run_dirs(pid: u32) -> Vec<PathBuf> {
    let bases = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).into_iter().chain(["/tmp".into()]);
    let entries = bases.filter_map(|base| fs::read_dir(base).ok()).flatten().flatten();
    let ours = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("gym-gateway-{pid}-")));
    ours.map(|entry| entry.path()).collect()
}

#[test]
fn nothing_outlives_a_killed_gateway() {
    let mut gateway = Gateway::start(FORKS);
    let family = family(&mut gateway);
    let pid = gateway.process.id();
    assert_eq!(run_dirs(pid).len(), 1);
    kill9(pid.cast_signed());
    for pid in family.forked.iter().chain([&family.worker, &family.keeper]) {
        until("the gateway's death takes everything", || !lives(*pid));
    }
    assert!(run_dirs(pid).is_empty(), "the keeper removes the socket's folder before it ends");
}

#[test]
fn nothing_of_the_worker_outlives_a_killed_keeper_and_the_slot_comes_back() {
    let mut gateway = Gateway::start(FORKS);
    let family = family(&mut gateway);
    kill9(family.keeper);
    let exited = gateway.tells();
    assert!(exited.starts_with("exited 0.1: was killed because its keeper died"), "{exited}");
    // The exit is told when all are dead: no waiting here.
    for pid in family.forked.iter().chain([&family.worker, &family.keeper]) {
        assert!(!lives(*pid), "{pid} is left");
    }
    assert!(gateway.tells().starts_with("ready 0.2"));
    let pid = gateway.process.id();
    drop(gateway);
    until("the next keeper removes the folder, which no dead one's socket is in", || {
        run_dirs(pid).is_empty()
    });
}

#[test]
fn a_killed_worker_s_forks_are_gone_when_its_slot_is_back() {
    let mut gateway = Gateway::start(FORKS);
    let family = family(&mut gateway);
    kill9(family.worker);
    let exited = gateway.tells();
    assert!(exited.starts_with("exited 0.1: was killed by SIGKILL"), "{exited}");
    assert!(gateway.tells().starts_with("ready 0.2"));
    assert!(!family.forked.iter().any(|pid| lives(*pid)));
}

#[test]
fn a_stop_in_order_leaves_nothing() {
    let mut gateway = Gateway::start(FORKS);
    let family = family(&mut gateway);
    let pid = gateway.process.id();
    drop(gateway.process.stdin.take());
    let exited = gateway.tells();
    assert!(exited.starts_with("exited 0.1: was killed by SIGKILL"), "it is deaf to SIGTERM: {exited}");
    assert_eq!(gateway.tells(), "stopped");
    assert!(!family.forked.iter().chain([&family.worker, &family.keeper]).any(|pid| lives(*pid)));
    assert!(run_dirs(pid).is_empty());
}
