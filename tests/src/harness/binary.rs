//! Finds the binaries under test, and builds the gateway's if cargo says that it is stale.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The gateway: `GYM_GATEWAY_BIN`, or the one that cargo builds for this profile.
pub fn gateway() -> &'static Path {
    static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    // A failed build is kept too: every other test would only repeat it.
    let path = PATH.get_or_init(|| match std::env::var_os("GYM_GATEWAY_BIN") {
        Some(path) => Some(PathBuf::from(path)),
        None => build(),
    });
    path.as_deref().expect("the gateway does not build")
}

/// The stub worker: cargo builds it before this package's tests.
pub fn stub_worker() -> PathBuf {
    let path = profile_directory().join("stub-worker");
    assert!(path.exists(), "{} is not built: cargo build -p gym-gateway-tests", path.display());
    path
}

/// `target/debug`, say: tests run from its `deps`.
fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().expect("own path");
    test.parent().and_then(Path::parent).expect("target/PROFILE/deps").to_owned()
}

fn build() -> Option<PathBuf> {
    let directory = profile_directory();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "-p", "gym-gateway", "--bin", "gym-gateway"]);
    if directory.ends_with("release") {
        command.arg("--release");
    }
    let status = command.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("run cargo");
    status.success().then(|| directory.join("gym-gateway"))
}
