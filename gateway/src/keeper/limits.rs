//! The limit on open files: raised for the gateway, given back to its workers.

use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// `RLIMIT_NOFILE`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct NofileLimit {
    /// What holds.
    pub soft: u64,
    /// How far it may be raised.
    pub hard: u64,
}

static ORIGINAL: OnceLock<NofileLimit> = OnceLock::new();

/// Raises the limit on open files as far as it goes, and returns what it was. Call it once, at the start.
///
/// Workers get the original limit back: programs that use `select`, or close every descriptor they may have, break or
/// crawl under a high one.
///
/// # Errors
/// The system's, if the limit cannot be read or set.
pub fn raise_nofile_limit() -> std::io::Result<NofileLimit> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let original = *ORIGINAL.get_or_init(|| NofileLimit { soft, hard });
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(original)
}

/// The limit before [`raise_nofile_limit`]; `None` if that was never called.
pub fn original_nofile() -> Option<NofileLimit> {
    ORIGINAL.get().copied()
}

/// Sets this process's limit.
pub(crate) fn set_nofile(limit: NofileLimit) -> nix::Result<()> {
    setrlimit(Resource::RLIMIT_NOFILE, limit.soft, limit.hard)
}
