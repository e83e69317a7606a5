//! The children that this process started itself, told apart from what falls to it as a subreaper.

use std::{
    collections::HashSet,
    io,
    process::{Child, Command, ExitStatus, Output},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Children that are no strays. Locked while one is being started, so that a sweep never sees it before it is in here.
static KNOWN: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

pub(crate) fn known() -> MutexGuard<'static, Option<HashSet<i32>>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Waits for its end, and for all that it wrote into its pipes.
    ///
    /// # Errors
    /// The system's, if it cannot be waited for.
    pub fn output(self) -> io::Result<Output> {
        let pid = self.pid();
        let output = self.0.wait_with_output();
        forget(pid);
        output
    }

    /// Kills it and waits for its end. Blocks, shortly.
    ///
    /// # Errors
    /// The system's, if it cannot be waited for.
    pub fn kill_and_wait(&mut self) -> io::Result<ExitStatus> {
        // It may have exited by itself.
        let _ = self.0.kill();
        let status = self.0.wait()?;
        forget(self.pid());
        Ok(status)
    }
}

fn forget(pid: i32) {
    if let Some(known) = &mut *known() {
        known.remove(&pid);
    }
}
