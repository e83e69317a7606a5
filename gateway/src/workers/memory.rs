//! How much memory workers take.

use std::{collections::HashMap, io};

use procfs::process::all_processes;

/// Resident bytes by process group: a worker's group has the worker's process ID, and what it forked is in it unless it
/// left. Pages that processes share count for each of them. Reads `/proc`.
///
/// # Errors
/// The system's, if `/proc` cannot be read.
pub fn resident_by_group() -> io::Result<HashMap<i32, u64>> {
    let page = procfs::page_size();
    let mut groups = HashMap::new();
    // One that ends meanwhile takes none.
    for stat in all_processes().map_err(io::Error::other)?.flatten().filter_map(|process| process.stat().ok())
    {
        *groups.entry(stat.pgrp).or_default() += stat.rss * page;
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_takes_what_its_processes_take() {
        let mine = nix::unistd::getpgrp().as_raw();
        let seen = resident_by_group().unwrap()[&mine];
        // This process alone: a Rust test program is above 1 MiB, and no group above all of a big machine.
        assert!((1 << 20..1 << 45).contains(&seen), "{seen}");
        assert!(!resident_by_group().unwrap().contains_key(&i32::MAX));
    }
}
