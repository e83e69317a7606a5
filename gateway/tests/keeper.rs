//! A keeper and real processes: what it reports, and that nothing outlives anyone.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{path::Path, time::Duration};

use gym_gateway::keeper::{Exit, Keeper, NofileLimit, Order, Report, StartSpec, Stream};

const PATIENCE: Duration = Duration::from_secs(20);

fn spec(argv: &[&str]) -> StartSpec {
    StartSpec {
        argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
        directory: "/".into(),
        env: vec![("GREETING".into(), "hello".into())],
        nofile: None,
        conditions: Box::default(),
        socket: None,
    }
}

async fn start(spec: StartSpec) -> Keeper {
    let mut keeper = Keeper::spawn(Path::new(env!("CARGO_BIN_EXE_gym-gateway"))).await.unwrap();
    keeper.order(&Order::Start(spec)).await.unwrap();
    keeper
}

async fn next(keeper: &mut Keeper) -> Option<Report> {
    tokio::time::timeout(PATIENCE, keeper.next()).await.expect("the keeper says something in time")
}

/// All reports to the end, but for the process ID.
async fn all(argv: &[&str]) -> Vec<Report> {
    let mut keeper = start(spec(argv)).await;
    let mut reports = Vec::new();
    while let Some(report) = next(&mut keeper).await {
        reports.push(match report {
            Report::Started { .. } => Report::Started { pid: 0 },
            other => other,
        });
    }
    let ending = keeper.end().await.unwrap();
    assert!(ending.orderly && ending.left.is_empty(), "{ending:?}");
    reports
}

fn stdout(line: &str) -> Report {
    Report::Output { stream: Stream::Stdout, line: line.into() }
}

/// A line of output that is a process ID.
async fn pid_said(keeper: &mut Keeper) -> i32 {
    loop {
        if let Report::Output { line, .. } = next(keeper).await.expect("the worker says its process ID") {
            return line.trim().parse().unwrap();
        }
    }
}

/// Whether the process is there and not dead.
fn lives(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

async fn dies(pid: i32) {
    tokio::time::timeout(PATIENCE, async {
        while lives(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("process {pid} still lives"));
}

#[tokio::test]
async fn a_worker_s_whole_life_is_reported() {
    let mut reports = all(&["sh", "-c", "echo $GREETING; echo oops >&2; pwd; printf end; exit 3"]).await;
    reports.sort_by_key(|report| matches!(report, Report::Output { stream: Stream::Stderr, .. }));
    assert_eq!(reports.pop(), Some(Report::Output { stream: Stream::Stderr, line: "oops".into() }));
    let position = |report: &Report| reports.iter().position(|one| one == report);
    assert_eq!(position(&Report::Started { pid: 0 }), Some(0));
    assert!(position(&Report::Exited(Exit::Code(3))).is_some());
    reports.retain(|report| !matches!(report, Report::Exited(_)));
    assert_eq!(reports[1..], [stdout("hello"), stdout("/"), stdout("end"), Report::Gone { left: vec![] }]);
}

#[tokio::test]
async fn a_killed_worker_is_reported_by_its_signal() {
    let reports = all(&["sh", "-c", "kill -SEGV $$"]).await;
    assert!(reports.contains(&Report::Exited(Exit::Signal(11))), "{reports:?}");
}

#[tokio::test]
async fn a_command_that_cannot_be_run_is_a_failed_start() {
    for (argv, reason) in [
        ("/no/such/program", "cannot run /no/such/program: No such file"),
        ("/etc/passwd", "cannot run /etc/passwd: Permission denied"),
    ] {
        let reports = all(&[argv]).await;
        let said = |text: &str| text.starts_with(reason);
        assert!(
            reports.iter().any(|report| matches!(report, Report::StartFailed { error } if said(error))),
            "{reports:?}"
        );
        assert!(!reports.iter().any(|report| matches!(report, Report::Started { .. })));
        assert!(
            reports.iter().any(|report| matches!(report, Report::Output { line, .. } if said(line))),
            "it is in the worker's output too: {reports:?}"
        );
    }
    let mut keeper = start(StartSpec { directory: "/no/such/folder".into(), ..spec(&["true"]) }).await;
    loop {
        match next(&mut keeper).await.expect("the start's failure is reported") {
            Report::StartFailed { error } => return assert!(error.contains("/no/such/folder"), "{error}"),
            report => assert!(!matches!(report, Report::Started { .. })),
        }
    }
}

#[tokio::test]
async fn a_worker_has_no_input_and_its_own_limit_on_open_files() {
    let (_, hard) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    let spec = StartSpec {
        nofile: Some(NofileLimit { soft: 123, hard }),
        ..spec(&["sh", "-c", "ulimit -Sn; readlink /proc/$$/fd/0"])
    };
    let mut keeper = start(spec).await;
    let mut lines = Vec::new();
    while let Some(report) = next(&mut keeper).await {
        if let Report::Output { line, .. } = report {
            lines.push(line);
        }
    }
    assert_eq!(lines, ["123", "/dev/null"]);
}

#[tokio::test]
async fn a_command_line_beyond_the_system_s_limit_is_a_failed_start() {
    let huge = "x".repeat(200 * 1024);
    let reports = all(&["sh", "-c", "true", &huge]).await;
    assert!(
        matches!(&reports[0], Report::StartFailed { error } if error.contains("too long")),
        "no such report"
    );
    assert_eq!(reports[1..], [Report::Gone { left: vec![] }]);
}

#[tokio::test]
async fn more_output_than_any_buffer_holds_comes_whole() {
    let reports = all(&["sh", "-c", "seq 300000; head -c 100000 /dev/zero | tr '\\0' x"]).await;
    let lines: Vec<&str> = reports
        .iter()
        .filter_map(|report| match report {
            Report::Output { line, .. } => Some(line.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(lines.len(), 300_002);
    assert!(lines[..300_000].iter().enumerate().all(|(i, line)| line.parse() == Ok(i + 1)));
    assert_eq!(lines[300_000].len(), 64 * 1024);
    assert_eq!(lines[300_001].len(), 100_000 - 64 * 1024);
}

#[tokio::test]
async fn a_writer_waits_for_a_gateway_that_does_not_read_and_its_exit_overtakes_its_output() {
    let mut keeper = start(spec(&["sh", "-c", "echo $$; exec yes"])).await;
    let pid = pid_said(&mut keeper).await;
    // Blocked in its write once socket, keeper and pipe are full.
    let blocked = async {
        while !std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap().contains("pipe")
            && !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") S ")
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, blocked).await.expect("the writer waits");
    keeper.order(&Order::Signal(15)).await.unwrap();
    let mut behind = 0;
    while next(&mut keeper).await.expect("an exit") != Report::Exited(Exit::Signal(15)) {}
    while next(&mut keeper).await.is_some() {
        behind += 1;
    }
    assert!(behind > 10_000, "only {behind} reports came after the exit");
    assert!(keeper.end().await.unwrap().orderly);
}

#[tokio::test]
async fn what_a_worker_leaves_behind_is_killed_even_with_its_pipes_open() {
    // In its group, in a session of its own, and twice forked.
    let script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!;
                  (setsid sh -c 'sleep 1000 & echo $!; exec sleep 1000' &) ; exec sleep 1000";
    let mut keeper = start(spec(&["sh", "-c", script])).await;
    let Some(Report::Started { pid }) = next(&mut keeper).await else { panic!("not started") };
    let left = [pid_said(&mut keeper).await, pid_said(&mut keeper).await, pid_said(&mut keeper).await];
    assert!(left.iter().all(|pid| lives(*pid)));
    keeper.order(&Order::Signal(9)).await.unwrap();
    while let Some(report) = next(&mut keeper).await {
        assert!(matches!(&report, Report::Exited(Exit::Signal(9)) | Report::Gone { .. }), "{report:?}");
    }
    // Nothing is left when the keeper has said so: no waiting here.
    assert!(!left.iter().any(|pid| lives(*pid)));
    assert!(!lives(pid));
    assert!(keeper.end().await.unwrap().orderly);
}

#[tokio::test]
async fn killing_takes_a_worker_that_ignores_every_signal() {
    let script = "trap '' TERM INT HUP; setsid sleep 1000 & echo $!; while :; do sleep 1; done";
    let mut keeper = start(spec(&["sh", "-c", script])).await;
    let child = pid_said(&mut keeper).await;
    keeper.order(&Order::Signal(15)).await.unwrap();
    keeper.order(&Order::Kill).await.unwrap();
    let mut exit = None;
    while let Some(report) = next(&mut keeper).await {
        if let Report::Exited(how) = report {
            exit = Some(how);
        }
    }
    assert_eq!(exit, Some(Exit::Signal(9)));
    assert!(!lives(child));
}

#[tokio::test]
async fn strays_that_die_while_the_worker_lives_are_reaped() {
    let mut keeper = start(spec(&["sh", "-c", "(sh -c 'echo $$' &); exec sleep 1000"])).await;
    let stray = pid_said(&mut keeper).await;
    let reaped = async {
        while Path::new(&format!("/proc/{stray}")).exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reaped).await.expect("the stray is reaped");
}

#[tokio::test]
async fn the_gateway_s_end_of_the_socket_closing_kills_everything() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("folder/s0-g1.sock");
    std::fs::create_dir(socket.parent().unwrap()).unwrap();
    std::fs::write(&socket, "").unwrap();
    let mut keeper = start(StartSpec {
        socket: Some(socket.to_str().unwrap().into()),
        ..spec(&["sh", "-c", "trap '' TERM HUP; (setsid sleep 1000 & echo $!); echo $$; exec sleep 1000"])
    })
    .await;
    let pids = [pid_said(&mut keeper).await, pid_said(&mut keeper).await];
    drop(keeper);
    for pid in pids {
        dies(pid).await;
    }
    let removed = async {
        while socket.parent().unwrap().exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, removed).await.expect("its socket's folder is removed");
}

#[tokio::test]
async fn a_keeper_has_a_session_of_its_own_and_survives_stop_signals() {
    let mut keeper = start(spec(&["sh", "-c", "echo $$; exec sleep 1000"])).await;
    let worker = pid_said(&mut keeper).await;
    let pid = nix::unistd::Pid::from_raw(keeper.pid());
    assert_eq!(nix::unistd::getsid(Some(pid)).unwrap(), pid);
    let group = nix::unistd::getpgid(Some(nix::unistd::Pid::from_raw(worker))).unwrap();
    assert_eq!(group.as_raw(), worker);
    for signal in [nix::sys::signal::SIGTERM, nix::sys::signal::SIGINT, nix::sys::signal::SIGHUP] {
        nix::sys::signal::kill(pid, signal).unwrap();
    }
    keeper.order(&Order::Signal(15)).await.unwrap();
    assert_eq!(next(&mut keeper).await, Some(Report::Exited(Exit::Signal(15))));
    assert_eq!(next(&mut keeper).await, Some(Report::Gone { left: vec![] }));
}

#[tokio::test]
async fn a_worker_dies_with_its_keeper() {
    let mut keeper = start(spec(&["sh", "-c", "echo $$; exec sleep 1000"])).await;
    let worker = pid_said(&mut keeper).await;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(keeper.pid()), nix::sys::signal::SIGKILL).unwrap();
    assert_eq!(next(&mut keeper).await, None);
    assert!(!keeper.end().await.unwrap().orderly);
    dies(worker).await;
}
