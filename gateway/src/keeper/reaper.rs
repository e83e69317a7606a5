//! The gateway's own children: the living keepers, and what falls to it when a keeper dies before its worker's family.

use std::{
    collections::HashSet,
    io,
    process::{Child, Command, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use nix::{
    sys::{
        prctl,
        signal::{Signal, kill, killpg},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, getpid},
};

use super::family;

/// How long the killed may take to die.
const SWEEP_LIMIT: Duration = Duration::from_secs(5);

/// Children that are no strays. Locked while one is being started, so that a sweep never sees it before it is in here.
static KNOWN: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

fn known() -> MutexGuard<'static, Option<HashSet<i32>>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the one that orphaned descendants fall to. The gateway calls it once, at its start.
///
/// From then on every child that was not started by [`spawn_known`] is taken for what a dead keeper's worker left behind,
/// and killed when a keeper dies: a program that calls this must start all its children that way.
///
/// # Errors
/// The system's, if it refuses.
pub fn become_subreaper() -> io::Result<()> {
    prctl::set_child_subreaper(true)?;
    known().get_or_insert_default();
    Ok(())
}

/// A child that is not taken for a stray while it lives.
#[derive(Debug)]
pub struct KnownChild(Child);

/// Starts a child that the gateway knows of.
///
/// # Errors
/// As [`Command::spawn`].
pub fn spawn_known(command: &mut Command) -> io::Result<KnownChild> {
    let mut known = known();
    let child = command.spawn()?;
    if let Some(known) = &mut *known {
        known.insert(child.id().cast_signed());
    }
    Ok(KnownChild(child))
}

impl KnownChild {
    /// Its process ID.
    pub fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    /// Kills it and waits for its end. Blocks, shortly.
    ///
    /// # Errors
    /// The system's, if it cannot be waited for.
    pub fn kill_and_wait(&mut self) -> io::Result<ExitStatus> {
        // It may have exited by itself.
        let _ = self.0.kill();
        let status = self.0.wait()?;
        if let Some(known) = &mut *known() {
            known.remove(&self.pid());
        }
        Ok(status)
    }
}

/// Reaps those of the dead that nobody knows, and kills nobody: what a process 1 has to do for everyone whose parent is
/// gone. Reads all of `/proc`.
///
/// # Errors
/// The system's, if `/proc` cannot be read.
pub fn reap_strangers() -> io::Result<()> {
    let known = known();
    let Some(known) = &*known else { return Ok(()) };
    for child in family::children_of(getpid())?.into_iter().filter(|pid| !known.contains(&pid.as_raw())) {
        // One that lives is left alone.
        is_reaped(child);
    }
    Ok(())
}

/// Kills and reaps the children that nobody knows: the family of `worker`, whose keeper died. Blocks, shortly. Does
/// nothing in a process that is no subreaper. Returns those that would not die.
pub(crate) fn sweep_strays(worker: Option<i32>) -> io::Result<Vec<i32>> {
    let known = known();
    let Some(known) = &*known else { return Ok(Vec::new()) };
    let began = Instant::now();
    loop {
        let strays: Vec<Pid> =
            family::children_of(getpid())?.into_iter().filter(|pid| !known.contains(&pid.as_raw())).collect();
        if let Some(worker) = strays.iter().find(|pid| Some(pid.as_raw()) == worker) {
            // Not reaped yet, so the group is still its own.
            let _ = killpg(*worker, Signal::SIGKILL);
        }
        for stray in &strays {
            let _ = kill(*stray, Signal::SIGKILL);
        }
        let alive: Vec<i32> = strays.iter().filter(|pid| !is_reaped(**pid)).map(|pid| pid.as_raw()).collect();
        if strays.is_empty() || began.elapsed() > SWEEP_LIMIT {
            return Ok(alive);
        }
        if !alive.is_empty() {
            // A killed process takes a moment, and only then do its children fall to this one.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn is_reaped(pid: Pid) -> bool {
    waitpid(pid, Some(WaitPidFlag::WNOHANG)) != Ok(WaitStatus::StillAlive)
}
