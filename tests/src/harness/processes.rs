//! Processes, by `/proc`.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::poll;

/// Sends a signal to one process.
pub fn signal(pid: u32, signal: Signal) {
    kill(raw(pid), signal).expect("signal");
}

/// Whether the process runs: not gone, and no zombie.
pub fn runs(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name in parentheses may hold anything; the state follows it.
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// The process's parent.
pub fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// Waits until the process is gone.
pub async fn gone(pid: u32) {
    poll(&format!("the end of process {pid}"), async || (!runs(pid)).then_some(())).await;
}

/// The most memory that the process has ever held, in bytes.
pub fn peak_memory(pid: u32) -> u64 {
    memory(pid, "VmHWM:")
}

/// The memory that the process holds now, in bytes.
pub fn resident_memory(pid: u32) -> u64 {
    memory(pid, "VmRSS:")
}

fn memory(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a line of that name");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

fn raw(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("a PID"))
}
