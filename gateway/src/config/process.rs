//! What a worker's process is besides its command: whose it is, its limits, its log file, its variables from files.

mod environment;
mod identity;
mod limits;
mod log_file;
mod rows;
mod size;

use std::{collections::BTreeMap, path::PathBuf};

pub(crate) use self::{environment::from_files, rows::rows};
use super::{
    keys::nearest,
    section::Section,
    yaml::{Entry, Value},
};
use crate::rlimit::{Rlimit, RlimitValue};

/// What a worker's process is besides its command. By default: what the gateway's own is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSettings {
    /// Its user.
    pub user: Option<User>,
    /// Its group ID; `None`: the user's own group.
    pub gid: Option<u32>,
    /// Its supplementary group IDs; `None`: the user's own.
    pub groups: Option<Vec<u32>>,
    /// Its niceness, -20 to 19.
    pub nice: Option<i32>,
    /// Its limits.
    pub rlimits: BTreeMap<Rlimit, RlimitValue>,
    /// Files with variables, read before each start; a later one wins.
    pub environment_files: Vec<PathBuf>,
    /// Variables whose values are in files, read before each start.
    pub variables_in_files: BTreeMap<String, PathBuf>,
    /// Where its output goes besides the log.
    pub log_file: Option<LogFileSettings>,
    /// Its cgroup.
    pub cgroup: Option<CgroupSettings>,
}

/// A user of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name; a number for one that the system has no name for.
    pub name: String,
    /// User ID.
    pub uid: u32,
    /// The ID of the user's own group.
    pub gid: u32,
    /// The IDs of the groups that the system has the user in.
    pub groups: Vec<u32>,
    /// The home folder.
    pub home: PathBuf,
}

/// A file for a worker's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFileSettings {
    /// The path; `{server}`, `{slot}` and `{generation}` in it are replaced.
    pub path: String,
    /// The size from which on it is rotated; default 100 MiB; 0: never.
    pub max_bytes: u64,
    /// How many rotated files are kept beside it (`.1` is the newest); default 5.
    pub keep: u32,
}

/// A cgroup of version 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupSettings {
    /// `memory.max` of each worker's own, in bytes.
    pub memory_max: u64,
    /// The cgroup's folder in which each worker gets its own; `None`: the gateway's.
    pub parent: Option<PathBuf>,
}

/// Reads the settings of a worker's process.
pub(crate) fn read(section: &Section<'_>) -> ProcessSettings {
    let identity = identity::read(section);
    ProcessSettings {
        user: identity.user,
        gid: identity.gid,
        groups: identity.groups,
        nice: limits::nice(section),
        rlimits: limits::rlimits(section),
        environment_files: environment::files(section),
        variables_in_files: environment::variables_in_files(section),
        log_file: log_file::read(section),
        cgroup: limits::cgroup(section),
    }
}

/// The entries of the map at `key`, of which only `known` are allowed.
fn entries(section: &Section<'_>, key: &str, known: &[&str]) -> Option<Vec<Entry>> {
    let node = section.node(key)?;
    let Value::Map(entries) = node.value else {
        section.complain(key, format!("expected a map of {}, got {}", known.join(", "), node.seen()));
        return None;
    };
    for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        let what = match nearest(&entry.key, known.iter().copied()) {
            Some(right) => format!("unknown key: did you mean `{right}`?"),
            None => format!("unknown key: it takes {}", known.join(", ")),
        };
        section.complain_at(entry.at, &format!("{key}.{}", entry.key), what);
    }
    Some(entries.into_iter().filter(|entry| known.contains(&entry.key.as_str())).collect())
}
