//! The cgroup (version 2) around the workers' own: found, and made ready to hand the memory controller down.
//!
//! A cgroup that hands controllers down may hold no processes itself. So the gateway, where it is in that cgroup, first
//! moves itself and what it has started into one below, named `gateway`; a service manager that puts it there to begin with
//! (systemd: `DelegateSubgroup=gateway`) spares it that.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use nix::unistd::getpid;

use crate::keeper::tree_of;

/// The gateway's own cgroup below the one around the workers'.
const OWN: &str = "gateway";

const ADVICE: &str = "have the gateway started in a cgroup of its own that it may manage (systemd: Delegate=memory and \
    DelegateSubgroup=gateway; by hand: systemd-run --scope -p Delegate=memory; containers: a writable /sys/fs/cgroup of version 2), or name one \
    as `cgroup.parent`, or leave `cgroup` out";

/// The folder in which workers can have cgroups of their own: `parent`, or the gateway's.
///
/// # Errors
/// There is none, or it may not be used: why, and what to do.
pub(super) fn prepare(parent: Option<&Path>) -> Result<PathBuf, String> {
    // Slots start at the same time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let prepared = match parent {
        Some(parent) => hand_down(parent).map(|()| parent.to_owned()),
        None => own_folder().and_then(|own| around(&own)),
    };
    prepared.map_err(|why| format!("workers cannot have the cgroups that `cgroup` asks for: {why}; {ADVICE}"))
}

/// Makes the cgroup of a gateway that is in `own` ready.
fn around(own: &Path) -> Result<PathBuf, String> {
    let parent = match own.parent() {
        Some(parent) if own.ends_with(OWN) => parent,
        _ => own,
    };
    if !is_handed_down(parent)? && parent == own {
        move_down(own)?;
    }
    hand_down(parent)?;
    Ok(parent.to_owned())
}

/// Moves this gateway and what it has started from `cgroup` to one below it.
fn move_down(cgroup: &Path) -> Result<(), String> {
    let shown = cgroup.display();
    let tree =
        tree_of(getpid()).map_err(|error| format!("cannot tell what the gateway has started: {error}"))?;
    let own: HashSet<String> = tree.into_iter().map(|pid| pid.to_string()).collect();
    let procs = read(&cgroup.join("cgroup.procs"))?;
    if let Some(other) = procs.lines().find(|pid| !own.contains(*pid)) {
        return Err(format!("the gateway's cgroup {shown} holds other processes too, such as {other}"));
    }
    let below = cgroup.join(OWN);
    match fs::create_dir(&below) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(format!("cannot create a cgroup in {shown}: {error}"));
        }
        _ => {}
    }
    for pid in procs.lines() {
        match fs::write(below.join("cgroup.procs"), pid) {
            // It has ended meanwhile.
            Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => {}
            Err(error) => return Err(format!("cannot move process {pid} to {}: {error}", below.display())),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Has the cgroup hand the memory controller down.
fn hand_down(cgroup: &Path) -> Result<(), String> {
    let shown = cgroup.display();
    let controllers = read(&cgroup.join("cgroup.controllers"))?;
    if !has_memory(&controllers) {
        return Err(format!("the cgroup {shown} has no memory controller (it has: {})", controllers.trim()));
    }
    if is_handed_down(cgroup)? {
        return Ok(());
    }
    fs::write(cgroup.join("cgroup.subtree_control"), "+memory")
        .map_err(|error| format!("the cgroup {shown} cannot hand the memory controller down: {error}"))
}

fn is_handed_down(cgroup: &Path) -> Result<bool, String> {
    Ok(has_memory(&read(&cgroup.join("cgroup.subtree_control"))?))
}

fn has_memory(controllers: &str) -> bool {
    controllers.split_whitespace().any(|controller| controller == "memory")
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// The folder of the gateway's own cgroup.
fn own_folder() -> Result<PathBuf, String> {
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    let own = read(Path::new("/proc/self/cgroup"))?;
    folder(&mounts, &own)
        .ok_or_else(|| "there is no cgroup of version 2 mounted that holds the gateway".into())
}

/// From `/proc/self/mountinfo` and `/proc/self/cgroup` to a folder.
fn folder(mounts: &str, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        // ID, parent, device, root, mount point, options, optional fields, `-`, type, ...
        let (mount, kind) = line.split_once(" - ")?;
        let fields: Vec<&str> = mount.split(' ').collect();
        let (root, point) = (*fields.get(3)?, *fields.get(4)?);
        let below = Path::new(own).strip_prefix(root).ok()?;
        // Without the separator that an empty rest would leave.
        let point = Path::new(point);
        let folder = if below.as_os_str().is_empty() { point.to_owned() } else { point.join(below) };
        kind.starts_with("cgroup2 ").then_some(folder)
    })
}

#[cfg(test)]
mod tests;
