//! What the process does to its surroundings: exits, signals, children that outlive their parent.

use std::{
    io::Write,
    os::fd::OwnedFd,
    process::{Command, ExitCode, Stdio},
};

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::{Behaviour, Options, report::Reporter};

/// What the stub prints before it exits at once: the gateway is to show its last lines.
pub const LAST_WORDS: &str = "stub: cannot find the answer to everything";

/// The reason that a refused dry run gives.
pub const SEVERAL_REFUSED: &str = "stub keeps all its boards in one dict";

/// Runs as one of the stub's own helpers, if the arguments say so.
pub(super) fn helper(args: &[String]) -> Option<ExitCode> {
    match args.first().map(String::as_str) {
        Some("stray-parent") => Some(stray_parent(&args[1])),
        Some("stray") => Some(stray(&args[1])),
        _ => None,
    }
}

/// Behaviours of a process that never gets as far as listening.
pub(super) fn before_listening(options: &Options) -> Option<ExitCode> {
    if options.dry_run && options.has(Behaviour::RefuseSeveral) {
        eprintln!("ValueError: {SEVERAL_REFUSED}");
        return Some(ExitCode::FAILURE);
    }
    if options.dry_run {
        return Some(ExitCode::SUCCESS);
    }
    if options.has(Behaviour::Hoard) {
        // Written to, or it would not be resident.
        Box::leak(vec![1_u8; 64 << 20].into_boxed_slice());
    }
    if options.has(Behaviour::ExitAtOnce) {
        println!("stub: starting");
        eprintln!("{LAST_WORDS}");
        return Some(ExitCode::from(3));
    }
    None
}

/// What the process was started with: its ID, and what the gateway tells it.
pub(super) fn surroundings() -> Vec<(&'static str, Value)> {
    let variable = |name: &str| std::env::var(name).ok();
    let config = variable("GYM_SERVER_CONFIG").and_then(|text| serde_json::from_str(&text).ok());
    vec![
        ("pid", std::process::id().into()),
        ("config", config.unwrap_or_default()),
        ("secret", variable("GYM_SESSION_SECRET").into()),
        ("name", variable("GYM_SERVER_NAME").into()),
        ("num_workers", variable("GYM_NUM_WORKERS").into()),
        ("given_socket", variable("GYM_WORKER_SOCKET").into()),
    ]
}

/// SIGTERM ends the process with status 0 after it was reported, unless it is to be ignored.
pub(super) fn watch_signals(options: &Options, reporter: &Reporter) {
    let ignore = options.has(Behaviour::IgnoreSigterm);
    let reporter = reporter.clone();
    let mut terms = signal(SignalKind::terminate()).expect("SIGTERM");
    tokio::spawn(async move {
        while terms.recv().await.is_some() {
            reporter.event("sigterm", &[]);
            if !ignore {
                std::process::exit(0);
            }
        }
    });
}

/// Starts a child that starts a child in a session of its own, with the listening socket, and exits.
pub(super) fn fork_stray(listener: OwnedFd, options: &Options) {
    let report = options.report.clone().unwrap_or_default();
    let status = Command::new(std::env::current_exe().expect("own path"))
        .arg("stray-parent")
        .arg(report)
        .env("STUB_SLOT_OF_STRAY", options.slot.to_string())
        .stdin(Stdio::from(listener))
        .status()
        .expect("start the stray's parent");
    assert!(status.success(), "the stray's parent failed");
}

#[expect(clippy::zombie_processes, reason = "it is to be orphaned")]
fn stray_parent(report: &str) -> ExitCode {
    let child = Command::new(std::env::current_exe().expect("own path"))
        .args(["stray", report])
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start the stray");
    // Its first byte: it has left this session and group.
    let mut first = [0; 1];
    std::io::Read::read_exact(&mut child.stdout.expect("piped"), &mut first).expect("the stray speaks");
    ExitCode::SUCCESS
}

fn stray(report: &str) -> ExitCode {
    nix::unistd::setsid().expect("setsid");
    let mut options = Options::default();
    options.report = (!report.is_empty()).then(|| report.into());
    options.slot = std::env::var("STUB_SLOT_OF_STRAY").ok().and_then(|slot| slot.parse().ok()).unwrap_or(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(async {
        let reporter = Reporter::connect(&options);
        reporter.event("stray", &[("pid", std::process::id().into())]);
        std::io::stdout().write_all(b"!").and_then(|()| std::io::stdout().flush()).expect("speak");
        std::future::pending().await
    })
}
