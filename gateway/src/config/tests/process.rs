//! What a worker's process is besides its command.

use std::{collections::BTreeMap, path::Path};

use super::{Folder, counter};
use crate::{
    config::{CgroupSettings, ErrorList, LogFileSettings, ProcessSettings, User, describe, from_files},
    rlimit::{Rlimit, RlimitValue},
};

/// The counter server with these keys in its block for the gateway, one a line.
fn with(keys: &str) -> String {
    let keys: String = keys.lines().map(|line| format!("      {}\n", line.trim_start())).collect();
    counter("port: 8000") + "gateway:\n  servers:\n    counter:\n" + &keys
}

fn read(folder: &Folder, keys: &str) -> Result<ProcessSettings, ErrorList> {
    Ok(folder.load(&[&with(keys)])?.servers.remove(0).settings.process)
}

#[test]
fn everything_that_can_be_said() {
    let folder = Folder::new();
    folder.write("hf.token", "");
    folder.write("more.env", "");
    let said = read(
        &folder,
        r#"user: root
           group: 12
           supplementary_groups: [0, 44]
           nice: 5
           limits: {nofile: 65536, core: 0, as: 8GiB, stack: {soft: 8MiB, hard: unlimited}, cpu: 60}
           environment: {PLAIN: 1, HF_TOKEN: {file: hf.token}}
           environment_files: [more.env]
           cgroup: {memory_max: 2GiB, parent: /sys/fs/cgroup/gym}
           log_file: {path: "logs/{server}-{slot}.log", max_bytes: 1MiB, keep: 2}"#,
    )
    .unwrap();
    let root = said.user.clone().unwrap();
    assert_eq!((root.name.as_str(), root.uid, root.gid), ("root", 0, 0));
    assert_eq!(root.home, nix::unistd::User::from_name("root").unwrap().unwrap().dir);
    let rlimits = BTreeMap::from([
        (Rlimit::Nofile, RlimitValue::both(65_536)),
        (Rlimit::Core, RlimitValue::both(0)),
        (Rlimit::As, RlimitValue::both(8 << 30)),
        (Rlimit::Stack, RlimitValue { soft: 8 << 20, hard: RlimitValue::UNLIMITED }),
        (Rlimit::Cpu, RlimitValue::both(60)),
    ]);
    let expected = ProcessSettings {
        user: Some(root),
        gid: Some(12),
        groups: Some(vec![0, 44]),
        nice: Some(5),
        rlimits,
        environment_files: vec![folder.path("more.env")],
        variables_in_files: BTreeMap::from([("HF_TOKEN".into(), folder.path("hf.token"))]),
        log_file: Some(LogFileSettings {
            path: folder.path("logs/{server}-{slot}.log").to_str().unwrap().into(),
            max_bytes: 1 << 20,
            keep: 2,
        }),
        cgroup: Some(CgroupSettings { memory_max: 2 << 30, parent: Some("/sys/fs/cgroup/gym".into()) }),
    };
    assert_eq!(said, expected);
}

#[test]
fn short_forms() {
    let folder = Folder::new();
    let said =
        read(&folder, "log_file: w.log\nuser: 4294000000\ngroup: 7\ncgroup: {memory_max: 1048576}").unwrap();
    let file = said.log_file.unwrap();
    assert_eq!((Path::new(&file.path), file.max_bytes, file.keep), (&*folder.path("w.log"), 100 << 20, 5));
    // One that the system has no name for.
    let user =
        User { name: "4294000000".into(), uid: 4_294_000_000, gid: 7, groups: vec![7], home: "/".into() };
    assert_eq!(said.user, Some(user));
    assert_eq!(said.cgroup, Some(CgroupSettings { memory_max: 1 << 20, parent: None }));
    assert_eq!(read(&folder, "nice: null").unwrap(), ProcessSettings::default());
}

#[test]
#[rustfmt::skip]
fn what_is_wrong_is_named_with_its_line() {
    let folder = Folder::new();
    for (keys, error) in [
        ("nice: 20", "nice: expected a whole number from -20 (first) to 19 (last), got the number 20"),
        ("nice: low", "nice: expected a whole number from -20 (first) to 19 (last), got the text \"low\""),
        ("user: no-such-user-here", "user: this system has no user no-such-user-here: create it (useradd --system no-such-user-here), or correct the name"),
        ("user: 4294000000", "user: this system has no user 4294000000, and so no group for it: give `group` as well"),
        ("user: -1", "user: expected a user's name or number, got the number -1"),
        ("user: 4294967295", "user: expected a user's name or number, got the number 4294967295"),
        ("group: no-such-group-here", "group: this system has no group no-such-group-here: create it (groupadd --system no-such-group-here), or correct the name"),
        ("supplementary_groups: video", "supplementary_groups: expected a list of groups, like [video, render], got the text \"video\""),
        ("limits: 7", "limits: expected a map, like {nofile: 65536}, got the number 7"),
        ("limits: {LimitNOFILE: 7}", "limits.LimitNOFILE: no such limit: did you mean `nofile`?"),
        ("limits: {nofiles: 7}", "limits.nofiles: no such limit: did you mean `nofile`?"),
        ("limits: {memory: 7}", "limits.memory: no such limit: there are as, core, cpu, data, fsize, locks, memlock, msgqueue, nice, nofile, nproc, rss, rtprio, rttime, sigpending, stack"),
        ("limits: {nofile: 8GiB}", "limits.nofile: expected a whole number, `unlimited`, or a map of `soft` and `hard`, got the text \"8GiB\""),
        ("limits: {as: 8GB}", "limits.as: expected a number of bytes, or one with KiB, MiB, GiB or TiB, `unlimited`, or a map of `soft` and `hard`, got the text \"8GB\""),
        ("limits: {core: {soft: 1}}", "limits.core: expected a number of bytes, or one with KiB, MiB, GiB or TiB, `unlimited`, or a map of `soft` and `hard`, got a map of 1 keys"),
        ("limits: {nofile: {soft: 2, hard: 1}}", "limits.nofile: {soft: 2, hard: 1}: what holds (`soft`) is above how far it may be raised (`hard`)"),
        ("cgroup: 8GiB", "cgroup: expected a map of memory_max, parent, got the text \"8GiB\""),
        ("cgroup: {parent: /sys/fs/cgroup}", "cgroup: has no `memory_max`: give it, like {memory_max: 8GiB}"),
        ("cgroup: {memory_max: 8GiB, parent: gym}", "cgroup.parent: expected the folder of a cgroup, like /sys/fs/cgroup/gym, got the text \"gym\""),
        ("cgroup: {memory_max: 1000}", "cgroup.memory_max: expected a number of bytes, or one with KiB, MiB, GiB or TiB, at least 1MiB, got the number 1000"),
        ("cgroup: {memory_max: 8GiB, memory_mx: 8GiB}", "cgroup.memory_mx: unknown key: did you mean `memory_max`?"),
        ("log_file: 7", "log_file: expected a path, like \"logs/{server}-{slot}.log\", got the number 7"),
        ("log_file: logs/", "log_file: \"logs/\" names no file: give one, like \"logs/{server}-{slot}.log\""),
        ("log_file: \"{worker}.log\"", "log_file: \"{worker}.log\": in braces it takes {server}, {slot}, {generation} alone"),
        ("log_file: {max_bytes: 1MiB}", "log_file: has no `path`: give it, like {path: \"logs/{slot}.log\"}"),
        ("log_file: {path: a, max_bytes: 10}", "log_file.max_bytes: expected a number of bytes, or one with KiB, MiB, GiB or TiB, at least 4096, or 0 for no end, got the number 10"),
        ("log_file: {path: a, keep: many}", "log_file.keep: expected a whole number from 0 to 1000, got the text \"many\""),
        ("environment_files: [no.env]", "environment_files: there is no file no.env"),
        ("environment: {HF_TOKEN: {file: absent}}", "environment.HF_TOKEN: there is no file absent"),
        ("environment: {HF_TOKEN: {file: 7}}", "environment.HF_TOKEN: expected the path of a file, got the number 7"),
        ("environment: {HF_TOKEN: {path: no}}", "environment.HF_TOKEN: expected text, or {file: PATH} with the file that holds it"),
        ("environment: {GYM_WORKER_SLOT: {file: server}}", "environment: GYM_WORKER_SLOT is set by the gateway for each worker: take it out"),
        // A secret is not shown even where it is wrong.
        ("session_secret: 1234", "session_secret: expected text, got something else: put it in quotes"),
    ] {
        assert_eq!(folder.errors(&[&with(keys)]), [format!("a.yaml:9: gateway.servers.counter.{error}")], "{keys}");
    }
}

#[test]
fn files_are_read_anew_each_time_and_say_no_secret() {
    let folder = Folder::new();
    folder.write("token", "canary-1\n");
    folder.write("one.env", "# keys\nA=1\nB='x y'\n");
    folder.write("two.env", "A=2\r\nHF_TOKEN=other\n");
    let settings =
        read(&folder, "environment: {HF_TOKEN: {file: token}}\nenvironment_files: [one.env, two.env]")
            .unwrap();
    let now = || from_files(&settings).map(BTreeMap::from_iter);
    let expected = |token: &str| {
        let pairs = [("A", "2"), ("B", "x y"), ("HF_TOKEN", token)];
        Ok(BTreeMap::from(pairs.map(|(name, value)| (name.to_owned(), value.to_owned()))))
    };
    assert_eq!(now(), expected("canary-1"));
    folder.write("token", "canary-2\nwith another line\n\n");
    assert_eq!(now(), expected("canary-2\nwith another line\n"));
    folder.write("token", "canary\0");
    let why = now().unwrap_err();
    assert!(why.contains("`environment.HF_TOKEN`: ") && why.contains("/token holds a NUL byte"), "{why}");
    assert!(!why.contains("canary"), "{why}");
    std::fs::remove_file(folder.path("token")).unwrap();
    assert!(now().unwrap_err().contains("/token: No such file"));
    folder.write("two.env", "A=2\ncanary\n");
    let why = now().unwrap_err();
    assert!(why.contains("two.env:2: expected NAME=value") && !why.contains("canary"), "{why}");
}

#[test]
fn check_shows_it_without_what_is_in_the_files() {
    let folder = Folder::new();
    folder.write("token", "canary");
    folder.write("one.env", "A=canary");
    let keys = r#"environment: {HF_TOKEN: {file: token}, OPEN: canary}
        environment_files: [one.env]
        session_secret: canary
        user: root
        limits: {core: 0, nofile: {soft: 1, hard: unlimited}}
        cgroup: {memory_max: 1GiB}
        log_file: a.log"#;
    let said = describe(&folder.load(&[&with(keys)]).unwrap());
    let said = said.replace(&format!("{}/", folder.0.path().display()), "");
    let rows: Vec<_> = said.lines().skip_while(|line| !line.starts_with("  with")).collect();
    let expected = [
        "  with      OPEN, HF_TOKEN",
        "  session_secret: given (default: the cookie's name)",
        "  environment_files: [one.env] (default: [])",
        "  user: root (0) (default: the gateway's)",
        "  limits: {core: 0, nofile: {soft: 1, hard: unlimited}} (default: the gateway's)",
        "  cgroup: {memory_max: 1073741824} (default: none)",
        "  log_file: {path: a.log, max_bytes: 104857600, keep: 5} (default: none)",
    ];
    assert_eq!(rows, expected);
}
