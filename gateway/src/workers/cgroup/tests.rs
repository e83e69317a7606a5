use std::process::id;

use super::*;

const MOUNTS: &str = "\
24 1 0:21 / /proc rw,nosuid - proc proc rw
30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
";

/// A folder that looks like a cgroup.
fn cgroup(controllers: &str, subtree: &str, procs: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in
        [("cgroup.controllers", controllers), ("cgroup.subtree_control", subtree), ("cgroup.procs", procs)]
    {
        fs::write(folder.path().join(file), text).unwrap();
    }
    folder
}

fn subtree(cgroup: &Path) -> String {
    fs::read_to_string(cgroup.join("cgroup.subtree_control")).unwrap()
}

#[test]
fn the_gateway_s_cgroup_is_found_among_the_mounts() {
    let own = "4:memory:/a\n0::/system.slice/gym.service\n";
    assert_eq!(folder(MOUNTS, own), Some("/sys/fs/cgroup/system.slice/gym.service".into()));
    assert_eq!(folder(MOUNTS, "0::/\n"), Some("/sys/fs/cgroup".into()));
    assert_eq!(folder(MOUNTS, "4:memory:/a\n"), None);
    assert_eq!(folder(MOUNTS.lines().next().unwrap(), own), None);
    let part = MOUNTS.replace("0:27 / ", "0:27 /system.slice ");
    assert_eq!(folder(&part, own), Some("/sys/fs/cgroup/gym.service".into()));
    assert_eq!(folder(&part, "0::/user.slice"), None);
}

#[test]
fn a_gateway_that_is_alone_moves_down_and_hands_the_controller_on() {
    let own = cgroup("cpu memory pids\n", "", &format!("{}\n", id()));
    assert_eq!(around(own.path()).unwrap(), own.path());
    let moved = fs::read_to_string(own.path().join("gateway/cgroup.procs")).unwrap();
    assert_eq!(moved, id().to_string());
    assert_eq!(subtree(own.path()), "+memory");
    fs::write(own.path().join("cgroup.subtree_control"), "cpu memory\n").unwrap();
    fs::write(own.path().join("cgroup.procs"), "1\n").unwrap();
    assert_eq!(around(own.path()).unwrap(), own.path(), "ready already");
}

#[test]
fn a_gateway_that_was_put_below_stays_there() {
    let parent = cgroup("memory\n", "", "");
    let own = parent.path().join("gateway");
    fs::create_dir(&own).unwrap();
    assert_eq!(around(&own).unwrap(), parent.path());
    assert_eq!(subtree(parent.path()), "+memory");
}

#[test]
fn who_else_is_there_is_left_alone() {
    let own = cgroup("memory\n", "", &format!("{}\n1\n", id()));
    assert!(around(own.path()).unwrap_err().contains("holds other processes too, such as 1"));
    assert!(!own.path().join("gateway").exists());
    assert_eq!(subtree(own.path()), "");
}

#[test]
fn without_the_controller_it_is_said_what_to_do() {
    let parent = cgroup("cpu pids\n", "", "");
    let why = prepare(Some(parent.path())).unwrap_err();
    for part in
        ["`cgroup`", "has no memory controller (it has: cpu pids)", "Delegate=memory", "leave `cgroup` out"]
    {
        assert!(why.contains(part), "{part}: {why}");
    }
    let why = prepare(Some(Path::new("/no/such"))).unwrap_err();
    assert!(why.contains("cannot read /no/such/cgroup.controllers: No such file"), "{why}");
}
