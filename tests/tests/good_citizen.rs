//! What a worker's process is besides its command: whose it is, its limits, its niceness, its cgroup.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
};

use gym_gateway_tests::harness::{Gateway, admin, binary, poll, processes};
use nix::{
    sys::signal::Signal,
    unistd::{Uid, User, geteuid},
};
use serde_json::{Value, json};

/// Root may do all that is tried here; without it there is nothing to see.
fn is_root(test: &str) -> bool {
    if geteuid().is_root() {
        return true;
    }
    eprintln!("SKIPPED {test}: only root can start processes as another user");
    false
}

/// A program where everyone can run it: the test's own folder.
fn for_everyone(directory: &Path, program: &Path, name: &str) -> String {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    let copy = directory.join(name);
    fs::hard_link(program, &copy).or_else(|_| fs::copy(program, &copy).map(drop)).unwrap();
    copy.to_str().unwrap().to_owned()
}

/// A configuration with one server of one worker, with these settings.
fn serve(directory: &Path, settings: &Value) -> Vec<String> {
    let mut block = json!({"port": 0, "num_workers": 1});
    block.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let config = json!({
        "gateway": {"admin": "127.0.0.1:0", "threads": 1},
        "stub": {"http_servers": {"stub": block}},
    });
    let file = directory.join("gateway.yaml");
    fs::write(&file, config.to_string()).unwrap();
    vec!["serve".into(), file.to_str().unwrap().into()]
}

/// The stub worker with these settings.
fn launch(settings: &Value) -> Gateway {
    Gateway::launch(|directory| {
        let stub = for_everyone(directory, &binary::stub_worker(), "stub-worker");
        let mut settings = settings.clone();
        settings["command"] = json!([stub, "--socket", "{socket}"]);
        serve(directory, &settings)
    })
}

async fn worker(gateway: &Gateway) -> Value {
    admin::workers(&admin::status(gateway).await).remove(0)
}

async fn pid(gateway: &Gateway) -> u32 {
    worker(gateway).await["pid"].as_u64().unwrap().try_into().unwrap()
}

/// A line of `/proc/PID/status`, in words.
fn status(pid: u32, name: &str) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.split_whitespace().map(str::to_owned).collect()
}

/// The two values of a line of `/proc/PID/limits`.
fn limit(pid: u32, name: &str) -> [String; 2] {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let mut words = line.split_whitespace().map(str::to_owned);
    [words.next().unwrap(), words.next().unwrap()]
}

fn niceness(pid: u32) -> i64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap().parse().unwrap()
}

fn variable(pid: u32, name: &str) -> Option<String> {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let mut variables = environ.split(|&b| b == 0).map(String::from_utf8_lossy);
    variables.find_map(|variable| Some(variable.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

/// What the gateway says when it cannot start, and its exit code.
async fn fails(gateway: &Gateway) -> String {
    let status = gateway.exit().await;
    gateway.log().ended().await;
    assert_eq!(status.code(), Some(1), "{}", gateway.log().text());
    gateway.log().text()
}

#[track_caller]
fn says(said: &str, what: &[&str]) {
    for what in what {
        assert!(said.contains(what), "no {what:?} in:\n{said}");
    }
}

fn nobody() -> User {
    User::from_name("nobody").unwrap().unwrap()
}

#[tokio::test]
async fn a_worker_is_whose_and_how_it_is_told_to_be() {
    if !is_root("a_worker_is_whose_and_how_it_is_told_to_be") {
        return;
    }
    let gateway = launch(&json!({
        "user": "nobody",
        "supplementary_groups": [12, 34],
        "nice": 7,
        "limits": {"nofile": {"soft": 200, "hard": 300}, "core": 0, "as": "64GiB"},
    }));
    gateway.ready().await;
    let (pid, nobody) = (pid(&gateway).await, nobody());
    let four = |id: u32| vec![id.to_string(); 4];
    assert_eq!(status(pid, "Uid"), four(nobody.uid.as_raw()));
    assert_eq!(status(pid, "Gid"), four(nobody.gid.as_raw()));
    assert_eq!(status(pid, "Groups"), ["12", "34"]);
    assert_eq!(niceness(pid), 7);
    assert_eq!(limit(pid, "Max open files"), ["200", "300"]);
    assert_eq!(limit(pid, "Max core file size"), ["0", "0"]);
    assert_eq!(limit(pid, "Max address space"), [(64_u64 << 30).to_string(), (64_u64 << 30).to_string()]);
    assert_eq!(variable(pid, "USER").as_deref(), Some("nobody"));
    assert_eq!(variable(pid, "HOME").as_deref(), nobody.dir.to_str());
    // It listens in a folder that is its own.
    gateway.get("/echo").send().await.assert(200);
    // The keeper and the gateway stay what they are.
    let keeper = processes::parent(pid).unwrap();
    assert_eq!(
        (status(keeper, "Uid"), niceness(keeper)),
        (status(gateway.pid(), "Uid"), niceness(gateway.pid()))
    );
    gateway.finish().await;
    assert!(!processes::runs(pid));
}

#[tokio::test]
async fn one_of_another_user_dies_with_its_keeper_too() {
    if !is_root("one_of_another_user_dies_with_its_keeper_too") {
        return;
    }
    let gateway = launch(&json!({"user": "nobody"}));
    gateway.ready().await;
    let old = pid(&gateway).await;
    let keeper = processes::parent(old).unwrap();
    // The gateway would kill it too, if it could.
    gateway.signal(Signal::SIGSTOP);
    processes::signal(keeper, Signal::SIGKILL);
    processes::gone(old).await;
    gateway.signal(Signal::SIGCONT);
    let new = poll("another worker", async || {
        u32::try_from(worker(&gateway).await["pid"].as_u64()?).ok().filter(|new| *new != old)
    })
    .await;
    gateway.signal(Signal::SIGKILL);
    processes::gone(new).await;
}

#[tokio::test]
async fn what_is_not_permitted_is_a_failed_start_that_says_what_to_do() {
    if !is_root("what_is_not_permitted_is_a_failed_start_that_says_what_to_do") {
        return;
    }
    let hard = limit(std::process::id(), "Max processes")[1].clone();
    let above = hard.parse::<u64>().ok().map(|hard| hard + 1);
    let mut cases = vec![
        (
            json!({"user": "root"}),
            vec!["cannot give the folder", "user root", "only a gateway that runs as root"],
        ),
        (json!({"group": 0}), vec!["could not run its command", "cannot take on the group 0", "CAP_SETGID"]),
        (json!({"supplementary_groups": [0, 12]}), vec!["the supplementary groups [0, 12]", "CAP_SETGID"]),
        (json!({"nice": -5}), vec!["cannot set `nice` to -5", "CAP_SYS_NICE"]),
    ];
    if let Some(above) = above {
        cases.push((json!({"limits": {"nproc": above}}), vec!["the limit `nproc`", "LimitNPROC="]));
    }
    for (settings, what) in cases {
        let nobody = nobody();
        let mut own = String::new();
        let gateway = Gateway::launch_as(
            Path::new("/usr/bin/env"),
            |command, _| {
                command.uid(nobody.uid.as_raw()).gid(nobody.gid.as_raw());
            },
            |directory| {
                own = for_everyone(directory, binary::gateway(), "gym-gateway");
                let stub = for_everyone(directory, &binary::stub_worker(), "stub-worker");
                let mut settings = settings.clone();
                settings["command"] = json!([stub, "--socket", "{socket}"]);
                let mut args = serve(directory, &settings);
                args.insert(0, own.clone());
                args.extend(["--log-format".into(), "json".into()]);
                args
            },
        );
        says(&fails(&gateway).await, &what);
    }
}

#[tokio::test]
async fn a_user_that_the_gateway_is_already_needs_no_root() {
    let me = User::from_uid(Uid::effective()).unwrap().unwrap();
    let gateway = launch(&json!({"user": me.name, "group": me.gid.as_raw()}));
    gateway.ready().await;
    assert_eq!(status(pid(&gateway).await, "Uid"), status(gateway.pid(), "Uid"));
    gateway.finish().await;
}

/// A folder that looks like a cgroup that hands the memory controller down.
fn made_up_cgroup(directory: &Path) -> String {
    let parent = directory.join("cgroup");
    fs::create_dir(&parent).unwrap();
    for file in ["cgroup.controllers", "cgroup.subtree_control"] {
        fs::write(parent.join(file), "cpu memory pids\n").unwrap();
    }
    parent.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_worker_that_the_kernel_kills_for_its_memory_is_counted_and_told() {
    // What the kernel does, the worker does here: it counts the kill, and kills.
    let kill = "for d in \"$0\"/stub-1.*; do echo 'oom_kill 1' > \"$d/memory.events\"; done; kill -9 $$";
    let gateway = Gateway::launch(|directory| {
        let parent = made_up_cgroup(directory);
        let stub = binary::stub_worker();
        let command = format!(
            "if [ $GYM_WORKER_SLOT.$GYM_WORKER_GENERATION = 1.1 ]; then {kill}; fi; exec \"$1\" --socket \"$2\""
        );
        let settings = json!({
            "command": ["sh", "-c", command, parent, stub, "{socket}"],
            "cgroup": {"memory_max": "16MiB", "parent": parent},
            "num_workers": 2,
        });
        serve(directory, &settings)
    });
    gateway.front_listens().await;
    let died = gateway.log().event("a death", |event| event["to"] == "died").await.unwrap();
    assert_eq!(died["reason"], "it was killed by the kernel: memory.max of 16777216 bytes reached");
    says(died["message"].as_str().unwrap(), &["cgroup.memory_max"]);
    let metrics = admin::metrics_until(&gateway, "a kill", |metrics| {
        metrics.sum("gym_gateway_worker_oom_kills_total", &[]) == 1.0
    })
    .await;
    assert_eq!(metrics.sum("gym_gateway_worker_oom_kills_total", &[("slot", "1")]), 1.0);
    let worker = admin::workers(&admin::status(&gateway).await).remove(1);
    assert_eq!(worker["oom_kills"], 1);
    says(worker["last_failure"]["exit"].as_str().unwrap(), &["memory.max of 16777216 bytes reached"]);
}

#[tokio::test]
async fn a_cgroup_that_cannot_be_had_is_a_failed_start_that_says_what_to_do() {
    let gateway = Gateway::launch(|directory| {
        let settings = json!({
            "command": ["true"],
            "cgroup": {"memory_max": "1GiB", "parent": directory},
        });
        serve(directory, &settings)
    });
    says(
        &fails(&gateway).await,
        &["could not be started", "cgroup.controllers: No such file", "Delegate=memory"],
    );
}

/// A real cgroup that workers can have theirs in; removed at the end.
struct RealCgroup(std::path::PathBuf);

impl RealCgroup {
    fn new(test: &str) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let handed_down = fs::read_to_string(root.join("cgroup.subtree_control")).unwrap_or_default();
        let path = root.join(format!("gym-gateway-test-{}", std::process::id()));
        let made = handed_down.split_whitespace().any(|controller| controller == "memory")
            && fs::create_dir(&path).is_ok();
        if !made {
            eprintln!("SKIPPED {test}: no cgroup of version 2 with the memory controller can be made here");
            return None;
        }
        // So that memory runs out, and is not swapped out.
        let _ = fs::write(path.join("memory.swap.max"), "0");
        Some(Self(path))
    }

    fn workers(&self) -> usize {
        fs::read_dir(&self.0).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
    }
}

impl Drop for RealCgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[tokio::test]
async fn the_kernel_kills_a_worker_that_takes_more_memory_than_its_cgroup_has() {
    let Some(cgroup) =
        RealCgroup::new("the_kernel_kills_a_worker_that_takes_more_memory_than_its_cgroup_has")
    else {
        return;
    };
    let gateway = Gateway::launch(|directory| {
        let settings = json!({
            // Keeps the last line, and there is no end to it.
            "command": ["tail", "/dev/zero"],
            "cgroup": {"memory_max": "16MiB", "parent": cgroup.0},
        });
        serve(directory, &settings)
    });
    says(&fails(&gateway).await, &["it was killed by the kernel: memory.max of 16777216 bytes reached"]);
    assert_eq!(cgroup.workers(), 0, "its cgroup is removed");
}
