//! How much memory workers take.

use std::{collections::HashMap, io};

use procfs::process::all_processes;

/// The resident memory of every process, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Resident {
    parents: HashMap<i32, i32>,
    /// By parent: each child with its bytes.
    children: HashMap<i32, Vec<(i32, u64)>>,
}

impl Resident {
    /// Reads `/proc`; blocks.
    ///
    /// # Errors
    /// The system's, if `/proc` cannot be read.
    pub fn read() -> io::Result<Self> {
        let page = procfs::page_size();
        // One that ends meanwhile takes none.
        let all = all_processes().map_err(io::Error::other)?.flatten().filter_map(|one| one.stat().ok());
        Ok(Self::of(all.map(|stat| (stat.pid, stat.ppid, stat.rss * page))))
    }

    /// Of processes: each with its parent and its bytes.
    pub(crate) fn of(processes: impl IntoIterator<Item = (i32, i32, u64)>) -> Self {
        let mut all = Self::default();
        for (pid, parent, bytes) in processes {
            all.parents.insert(pid, parent);
            all.children.entry(parent).or_default().push((pid, bytes));
        }
        all
    }

    /// Bytes of a worker with everything that it started, wherever that went: all that descends from its keeper, whose
    /// only own child it is and who adopts its orphans. Pages that processes share count for each of them. `None`: there
    /// is no such process.
    pub fn of_worker(&self, pid: i32) -> Option<u64> {
        let keeper = *self.parents.get(&pid)?;
        let (mut parents, mut sum) = (vec![keeper], 0);
        while let Some(parent) = parents.pop() {
            for (child, bytes) in self.children.get(&parent).into_iter().flatten() {
                sum += bytes;
                parents.push(*child);
            }
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_takes_what_its_keeper_s_tree_takes() {
        // Keeper 10, worker 11 with the child 12, and 14, whose parent 13 has exited.
        let all =
            Resident::of([(10, 1, 1), (11, 10, 20), (12, 11, 300), (14, 10, 4000), (20, 1, 9), (21, 20, 9)]);
        assert_eq!(all.of_worker(11), Some(4320));
        assert_eq!(all.of_worker(21), Some(9));
        assert_eq!(all.of_worker(99), None);
    }

    #[test]
    fn this_process_takes_some() {
        let seen = Resident::read().unwrap().of_worker(nix::unistd::getpid().as_raw()).unwrap();
        // A Rust test program is above 1 MiB, and no tree above all of a big machine.
        assert!((1 << 20..1 << 45).contains(&seen), "{seen}");
    }
}
