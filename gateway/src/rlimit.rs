//! The system's limits for a process, by the names that `setrlimit`, systemd and container engines have for them.

use nix::sys::resource::{RLIM_INFINITY, Resource};
use serde::{Deserialize, Serialize};

/// One of the limits of `setrlimit(2)`, by its name without `RLIMIT_`, in small letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the manual page setrlimit(2) has a paragraph on each")]
pub enum Rlimit {
    As,
    Core,
    Cpu,
    Data,
    Fsize,
    Locks,
    Memlock,
    Msgqueue,
    Nice,
    Nofile,
    Nproc,
    Rss,
    Rtprio,
    Rttime,
    Sigpending,
    Stack,
}

use Rlimit::{
    As, Core, Cpu, Data, Fsize, Locks, Memlock, Msgqueue, Nice, Nofile, Nproc, Rss, Rtprio, Rttime,
    Sigpending, Stack,
};

impl Rlimit {
    /// All of them.
    pub const ALL: [Rlimit; 16] = [
        As, Core, Cpu, Data, Fsize, Locks, Memlock, Msgqueue, Nice, Nofile, Nproc, Rss, Rtprio, Rttime,
        Sigpending, Stack,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            As => "as",
            Core => "core",
            Cpu => "cpu",
            Data => "data",
            Fsize => "fsize",
            Locks => "locks",
            Memlock => "memlock",
            Msgqueue => "msgqueue",
            Nice => "nice",
            Nofile => "nofile",
            Nproc => "nproc",
            Rss => "rss",
            Rtprio => "rtprio",
            Rttime => "rttime",
            Sigpending => "sigpending",
            Stack => "stack",
        }
    }

    /// Whether it counts bytes.
    pub fn is_bytes(self) -> bool {
        matches!(self, As | Core | Data | Fsize | Memlock | Msgqueue | Rss | Stack)
    }

    pub(crate) fn resource(self) -> Resource {
        match self {
            As => Resource::RLIMIT_AS,
            Core => Resource::RLIMIT_CORE,
            Cpu => Resource::RLIMIT_CPU,
            Data => Resource::RLIMIT_DATA,
            Fsize => Resource::RLIMIT_FSIZE,
            Locks => Resource::RLIMIT_LOCKS,
            Memlock => Resource::RLIMIT_MEMLOCK,
            Msgqueue => Resource::RLIMIT_MSGQUEUE,
            Nice => Resource::RLIMIT_NICE,
            Nofile => Resource::RLIMIT_NOFILE,
            Nproc => Resource::RLIMIT_NPROC,
            Rss => Resource::RLIMIT_RSS,
            Rtprio => Resource::RLIMIT_RTPRIO,
            Rttime => Resource::RLIMIT_RTTIME,
            Sigpending => Resource::RLIMIT_SIGPENDING,
            Stack => Resource::RLIMIT_STACK,
        }
    }
}

/// A limit's two values, in the system's own units: bytes, seconds (`cpu`), microseconds (`rttime`), or a count.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct RlimitValue {
    /// What holds.
    pub soft: u64,
    /// How far the process may raise it.
    pub hard: u64,
}

impl RlimitValue {
    /// No limit.
    pub const UNLIMITED: u64 = RLIM_INFINITY;

    /// The same for both.
    pub fn both(value: u64) -> Self {
        Self { soft: value, hard: value }
    }
}

impl std::fmt::Display for RlimitValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let one = |value: u64| match value {
            Self::UNLIMITED => "unlimited".to_owned(),
            value => value.to_string(),
        };
        if self.soft == self.hard {
            f.write_str(&one(self.soft))
        } else {
            write!(f, "{{soft: {}, hard: {}}}", one(self.soft), one(self.hard))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_written_by_its_name() {
        for limit in Rlimit::ALL {
            assert_eq!(serde_json::to_value(limit).unwrap(), limit.name());
            assert_eq!(format!("{:?}", limit.resource()), format!("RLIMIT_{}", limit.name().to_uppercase()));
        }
    }

    #[test]
    fn values_are_shown_as_they_are_written() {
        assert_eq!(RlimitValue::both(0).to_string(), "0");
        let value = RlimitValue { soft: 1024, hard: RlimitValue::UNLIMITED };
        assert_eq!(value.to_string(), "{soft: 1024, hard: unlimited}");
    }
}
