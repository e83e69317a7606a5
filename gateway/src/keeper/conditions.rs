//! What a worker's process takes on before its command runs: between the keeper's fork and the worker's own program.

use nix::{
    errno::Errno,
    sys::resource::{getrlimit, setrlimit},
    unistd::{Gid, Uid, getegid, geteuid, getgroups, setgid, setgroups, setuid},
};
use serde::{Deserialize, Serialize};

use super::cgroup::Cgroup;
use crate::rlimit::{Rlimit, RlimitValue};

/// What a worker's process is to be besides its command; by default what its keeper is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Conditions {
    /// User ID.
    pub uid: Option<u32>,
    /// Group ID.
    pub gid: Option<u32>,
    /// Supplementary group IDs, in place of those that it would have.
    pub groups: Option<Vec<u32>>,
    /// Niceness, from -20 to 19.
    pub nice: Option<i32>,
    /// Limits.
    pub rlimits: Vec<(Rlimit, RlimitValue)>,
    /// A cgroup of its own.
    pub cgroup: Option<Cgroup>,
}

impl Conditions {
    /// Makes this process so, in the order in which it still may.
    ///
    /// # Errors
    /// What cannot be done, why, and what to do.
    pub(crate) fn take_on(&self) -> Result<(), String> {
        if let Some(cgroup) = &self.cgroup {
            cgroup.join()?;
        }
        self.set_nice()?;
        for (limit, value) in &self.rlimits {
            set_rlimit(*limit, *value)?;
        }
        self.set_identity()
    }

    fn set_nice(&self) -> Result<(), String> {
        let Some(nice) = self.nice else { return Ok(()) };
        rustix::process::setpriority_process(None, nice).map_err(|error| {
            format!(
                "cannot set `nice` to {nice}: {error}: only root (or CAP_SYS_NICE, or the limit `nice`) may go below what \
                 the gateway has; raise it, or leave it out"
            )
        })
    }

    fn set_identity(&self) -> Result<(), String> {
        if let Some(groups) = &self.groups {
            set_groups(groups)?;
        }
        if let Some(gid) = self.gid.map(Gid::from_raw).filter(|gid| *gid != getegid()) {
            setgid(gid).map_err(|error| not_permitted(&format!("take on the group {gid}"), error))?;
        }
        if let Some(uid) = self.uid.map(Uid::from_raw).filter(|uid| *uid != geteuid()) {
            setuid(uid).map_err(|error| not_permitted(&format!("become the user {uid}"), error))?;
        }
        Ok(())
    }
}

fn set_groups(groups: &[u32]) -> Result<(), String> {
    let sorted = |mut groups: Vec<u32>| {
        groups.sort_unstable();
        groups.dedup();
        groups
    };
    let have = getgroups().unwrap_or_default().into_iter().map(Gid::as_raw).collect();
    if sorted(have) == sorted(groups.to_vec()) {
        return Ok(());
    }
    let gids: Vec<Gid> = groups.iter().copied().map(Gid::from_raw).collect();
    setgroups(&gids)
        .map_err(|error| not_permitted(&format!("take on the supplementary groups {groups:?}"), error))
}

fn not_permitted(what: &str, error: Errno) -> String {
    let whoami = geteuid();
    format!(
        "cannot {what}: {error}: the gateway runs as user {whoami} and needs root, or CAP_SETUID and CAP_SETGID, for that; start it \
         so, or as the user whose workers these are to be, and leave `user`, `group` and `supplementary_groups` out"
    )
}

fn set_rlimit(limit: Rlimit, value: RlimitValue) -> Result<(), String> {
    setrlimit(limit.resource(), value.soft, value.hard).map_err(|error| {
        let name = limit.name();
        let hard = match getrlimit(limit.resource()) {
            Ok((_, hard)) => RlimitValue::both(hard).to_string(),
            Err(error) => error.to_string(),
        };
        format!(
            "cannot set the limit `{name}` to {value}: {error}: without root (or CAP_SYS_RESOURCE) none can go above the \
             gateway's own hard limit, which is {hard}; ask for less in `limits`, or start the gateway with more \
             (systemd: Limit{}=, containers: ulimits)",
            name.to_uppercase()
        )
    })
}
