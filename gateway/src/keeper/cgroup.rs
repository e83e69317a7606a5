//! A worker's own cgroup (version 2): made by its keeper, joined by the process before its command runs, read and
//! removed when nothing of it is left.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// A cgroup with a limit on memory.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Cgroup {
    /// Its folder, which is made; the one around it hands the memory controller down.
    pub path: PathBuf,
    /// `memory.max`, in bytes.
    pub memory_max: u64,
}

impl Cgroup {
    /// Makes it. If its memory runs out, all that is in it is killed: half a worker would be worse than none.
    pub(crate) fn create(&self) -> Result<(), String> {
        let path = self.path.display();
        fs::create_dir(&self.path).map_err(|error| format!("cannot create the cgroup {path}: {error}"))?;
        for (file, value) in
            [("memory.max", self.memory_max.to_string()), ("memory.oom.group", "1".to_owned())]
        {
            if let Err(error) = fs::write(self.path.join(file), value) {
                let _ = fs::remove_dir(&self.path);
                return Err(format!("cannot set {file} in the cgroup {path}: {error}"));
            }
        }
        Ok(())
    }

    /// Moves this process into it.
    pub(crate) fn join(&self) -> Result<(), String> {
        fs::write(self.path.join("cgroup.procs"), "0")
            .map_err(|error| format!("cannot join the cgroup {}: {error}", self.path.display()))
    }

    /// How often the kernel killed a process of it because its memory had run out.
    pub(crate) fn oom_kills(&self) -> u64 {
        // A cgroup that cannot be read is one that nobody was killed in: the exit is told as it was seen.
        let events = fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
    }

    /// Removes it and what was made below it; nobody may be in it any more.
    ///
    /// # Errors
    /// The system's, but for one that is gone already.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match remove_tree(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}

/// The files in it are the kernel's, and go with it.
fn remove_tree(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_counted_by_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let cgroup = Cgroup { path: folder.path().join("one"), memory_max: 1 << 20 };
        assert_eq!(cgroup.oom_kills(), 0);
        cgroup.create().unwrap();
        assert_eq!(fs::read_to_string(cgroup.path.join("memory.max")).unwrap(), "1048576");
        assert_eq!(fs::read_to_string(cgroup.path.join("memory.oom.group")).unwrap(), "1");
        let events = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n";
        fs::write(cgroup.path.join("memory.events"), events).unwrap();
        assert_eq!(cgroup.oom_kills(), 2);
        assert!(cgroup.create().unwrap_err().contains("exists"), "one that is there is somebody's");
    }

    #[test]
    fn a_worker_s_own_cgroups_go_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let cgroup = Cgroup { path: folder.path().join("one"), memory_max: 1 };
        fs::create_dir_all(cgroup.path.join("a/b")).unwrap();
        cgroup.remove().unwrap();
        assert!(!cgroup.path.exists());
        cgroup.remove().unwrap();
    }
}
