//! Finds the binaries under test, and builds the gateway's if cargo says that it is stale.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The gateway: `GYM_GATEWAY_BIN`, or the one that cargo builds for this profile.
pub fn gateway() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| std::env::var_os("GYM_GATEWAY_BIN").map_or_else(build, PathBuf::from))
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

fn build() -> PathBuf {
    let directory = profile_directory();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "-p", "gym-gateway", "--bin", "gym-gateway"]);
    if directory.ends_with("release") {
        command.arg("--release");
    }
    let status = command.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("run cargo");
    assert!(status.success(), "the gateway does not build");
    directory.join("gym-gateway")
}
